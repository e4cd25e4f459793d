//! Policies that this server can run: policies of the folder, by name, and policies of the store,
//! by digest.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::StreamExt as _;
use tokio::sync::Semaphore;

use super::PolicyComponent;
use crate::boxed;
use crate::compiler::Compiler;
use crate::component_file::{component_files, read_component};
use crate::engine::POLICY_SLOTS;
use crate::error::LoadError;
use crate::load::parallel_compilations;

/// Name of the policies' folder within the plugin folder.
pub(crate) const FOLDER: &str = "policies";
/// Most components from the store that stay loaded: more than the rules of most servers name.
const MOST_LOADED: usize = 200;

/// A file that is not a usable policy.
#[derive(Clone, Debug)]
pub struct RefusedPolicy {
    pub file: String,
    /// Reason why it was refused.
    pub error: String,
}

/// Loaded policies of the folder and of the store.
pub struct PolicyComponents {
    compiler: Compiler,
    folder: Vec<Arc<PolicyComponent>>,
    refused: Vec<RefusedPolicy>,
    stored: Mutex<HashMap<String, Arc<PolicyComponent>>>,
    slots: Arc<Semaphore>,
}

impl PolicyComponents {
    /// Loads the policies next to these plugins. Unusable files are logged, and listed by
    /// [`refused`](PolicyComponents::refused).
    pub(crate) async fn of_folder(compiler: Compiler, plugins: &Path) -> PolicyComponents {
        let slots = Arc::new(Semaphore::new(POLICY_SLOTS));
        let mut all = PolicyComponents {
            compiler,
            folder: Vec::new(),
            refused: Vec::new(),
            stored: Mutex::default(),
            slots,
        };
        // Without such a folder there are no policies.
        let files = component_files(&plugins.join(FOLDER)).unwrap_or_default();
        let loading = files.into_iter().map(|file| async { (file.clone(), all.load_file(file).await) });
        // Loads in the order of file names, whichever compiles first. Of two policies with the same
        // name, the first is used.
        let loaded: Vec<_> = futures::stream::iter(loading).buffered(parallel_compilations()).collect().await;
        for (file, loaded) in loaded {
            match loaded {
                Ok(policy) if all.named(&policy.description().name).is_none() => {
                    let (name, version) = (&policy.description().name, &policy.description().version);
                    tracing::info!(policy = name, version, digest = policy.digest(), "policy loaded");
                    all.folder.push(Arc::new(policy));
                }
                Ok(policy) => {
                    all.refuse(&file, format!("another policy has the name {}", policy.description().name))
                }
                Err(error) => all.refuse(&file, error.reason()),
            }
        }
        all
    }

    fn refuse(&mut self, file: &Path, error: String) {
        let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tracing::error!(file, error, "could not load a policy; rules that use it deny everything");
        self.refused.push(RefusedPolicy { file, error });
    }

    async fn load_file(&self, file: PathBuf) -> Result<PolicyComponent, LoadError> {
        let path = file.clone();
        let read = tokio::task::spawn_blocking(move || read_component(&path)).await;
        let read =
            read.map_err(|error| error.to_string()).and_then(|read| read.map_err(|error| error.to_string()));
        let bytes = read.map_err(|error| LoadError::Plugin {
            file: file.clone(),
            reason: format!("the file cannot be read: {error}"),
        })?;
        PolicyComponent::load(&self.compiler, Arc::clone(&self.slots), &file, bytes.into()).await
    }

    pub fn folder(&self) -> &[Arc<PolicyComponent>] {
        &self.folder
    }

    /// Unusable files of the folder.
    pub fn refused(&self) -> &[RefusedPolicy] {
        &self.refused
    }

    /// The folder's policy of this name.
    pub fn named(&self, name: &str) -> Option<&Arc<PolicyComponent>> {
        self.folder.iter().find(|policy| policy.description().name == name)
    }

    /// Returns the folder's policy of this name, or the loaded policy with this digest.
    pub fn find(&self, name_or_digest: &str) -> Option<Arc<PolicyComponent>> {
        let stored = || self.stored().get(name_or_digest).cloned();
        self.named(name_or_digest).cloned().or_else(stored)
    }

    /// Loads a policy from the store. `Plugin` states why it is not a policy.
    #[boxed]
    pub async fn load(&self, name: &str, bytes: Bytes) -> Result<Arc<PolicyComponent>, LoadError> {
        let loaded = PolicyComponent::load(&self.compiler, Arc::clone(&self.slots), Path::new(name), bytes);
        let policy = Arc::new(loaded.await?);
        let mut stored = self.stored();
        if stored.len() >= MOST_LOADED {
            // Evicts an arbitrary entry. The server loads an evicted policy again when it needs it.
            if let Some(digest) = stored.keys().next().cloned() {
                stored.remove(&digest);
            }
        }
        stored.insert(policy.digest().to_owned(), Arc::clone(&policy));
        Ok(policy)
    }

    fn stored(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<PolicyComponent>>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
