//! The policies that this server can run: those of the folder, by their names, and those of the store, by their digests.

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
use crate::engine::POLICY_PLACES;
use crate::error::LoadError;
use crate::load::side_by_side;

/// Where they lie in the folder of plugins.
pub(crate) const FOLDER: &str = "policies";
/// Components of the store that are kept loaded: more than the rules of most servers name.
const MOST_LOADED: usize = 200;

/// Why a file is no policy.
#[derive(Clone, Debug)]
pub struct RefusedPolicy {
    /// Its name.
    pub file: String,
    /// What is wrong with it.
    pub error: String,
}

/// See the module.
pub struct PolicyComponents {
    compiler: Compiler,
    folder: Vec<Arc<PolicyComponent>>,
    refused: Vec<RefusedPolicy>,
    stored: Mutex<HashMap<String, Arc<PolicyComponent>>>,
    places: Arc<Semaphore>,
}

impl PolicyComponents {
    /// With the policies beside these plugins. A file that is none is told by [`refused`](PolicyComponents::refused) and in the log.
    pub(crate) async fn of_folder(compiler: Compiler, plugins: &Path) -> PolicyComponents {
        let places = Arc::new(Semaphore::new(POLICY_PLACES));
        let mut all = PolicyComponents {
            compiler,
            folder: Vec::new(),
            refused: Vec::new(),
            stored: Mutex::default(),
            places,
        };
        // Where there is no such folder, there are none.
        let files = component_files(&plugins.join(FOLDER)).unwrap_or_default();
        let loading = files.into_iter().map(|file| async { (file.clone(), all.load_file(file).await) });
        // In the order of their names, whichever is compiled first: of two of one name the first is the policy.
        let loaded: Vec<_> = futures::stream::iter(loading).buffered(side_by_side()).collect().await;
        for (file, loaded) in loaded {
            match loaded {
                Ok(policy) if all.named(&policy.description().name).is_none() => {
                    let (name, version) = (&policy.description().name, &policy.description().version);
                    tracing::info!(policy = name, version, digest = policy.digest(), "loaded a policy");
                    all.folder.push(Arc::new(policy));
                }
                Ok(policy) => all.refuse(&file, format!("another is called {}", policy.description().name)),
                Err(error) => all.refuse(&file, error.reason()),
            }
        }
        all
    }

    fn refuse(&mut self, file: &Path, error: String) {
        let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        tracing::error!(file, error, "a policy cannot be loaded; rules that name it deny everything");
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
        PolicyComponent::load(&self.compiler, Arc::clone(&self.places), &file, bytes.into()).await
    }

    /// Those of the folder.
    pub fn folder(&self) -> &[Arc<PolicyComponent>] {
        &self.folder
    }

    /// Files of the folder that are none.
    pub fn refused(&self) -> &[RefusedPolicy] {
        &self.refused
    }

    /// The folder's policy of this name.
    pub fn named(&self, name: &str) -> Option<&Arc<PolicyComponent>> {
        self.folder.iter().find(|policy| policy.description().name == name)
    }

    /// The one of this name in the folder, or of this digest if it is loaded.
    pub fn find(&self, name_or_digest: &str) -> Option<Arc<PolicyComponent>> {
        let stored = || self.stored().get(name_or_digest).cloned();
        self.named(name_or_digest).cloned().or_else(stored)
    }

    /// Loads one of the store, unless it is. `Plugin` says why it is no policy.
    #[boxed]
    pub async fn load(&self, name: &str, bytes: Bytes) -> Result<Arc<PolicyComponent>, LoadError> {
        let loaded = PolicyComponent::load(&self.compiler, Arc::clone(&self.places), Path::new(name), bytes);
        let policy = Arc::new(loaded.await?);
        let mut stored = self.stored();
        if stored.len() >= MOST_LOADED {
            // Any of them: whoever needs it loads it again.
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
