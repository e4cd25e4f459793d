//! All plugins of a server, the set that serves, and the inspection of one file without a server.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use bytes::Bytes;
use packhouse_store::{RepositoryId, Store};

use crate::boxed;
use crate::compiler::{CompiledFolders, Compiler};
use crate::config::{Limits, RuntimeConfig};
use crate::contract;
use crate::description::Description;
use crate::engine::EngineOptions;
use crate::error::LoadError;
use crate::folder::PluginFolder;
use crate::load;
use crate::loader::{FolderPlugins, Loader};
use crate::plugin::Plugin;
use crate::plugin_set::PluginSet;
use crate::policy::PolicyComponents;
use crate::recording::Recorder;

pub struct Runtime {
    loader: Loader,
    folder: PluginFolder,
    /// Files of the folder that were not compiled when this runtime was created.
    uncompiled: Vec<PathBuf>,
    /// Plugins loaded from the store.
    stored: Mutex<Vec<Arc<Plugin>>>,
    serving: RwLock<Arc<PluginSet>>,
    policies: PolicyComponents,
}

/// Plugins of a folder that have no store yet.
pub struct Examined {
    config: RuntimeConfig,
    found: load::FolderComponents,
}

impl Examined {
    /// Creates the plugins with this store. Unusable files are left out and listed by
    /// [`Runtime::refused`]. A configured plugin without a file is an error.
    pub fn with(self, store: &Store) -> Result<Runtime, LoadError> {
        let (loader, folder) = Loader::of(self.found, self.config, store.clone())?;
        let FolderPlugins { folder, uncompiled, policies } = folder;
        let serving = PluginSet::new(folder.plugins(), std::collections::HashMap::new());
        let (stored, serving) = (Mutex::default(), RwLock::new(Arc::new(serving)));
        Ok(Runtime { loader, folder, uncompiled, stored, serving, policies })
    }
}

impl Runtime {
    /// Loads every `*.wasm` of the configured folder, compiling in parallel. A file that cannot be
    /// loaded is an error that names the file, what was expected and what was found. Two plugins of
    /// one format, and a configured plugin without a file, are errors as well.
    #[boxed]
    pub async fn load(config: RuntimeConfig, store: Store) -> Result<Runtime, LoadError> {
        let runtime = Runtime::examine(config).await?.with(&store)?;
        match runtime.folder.take_refused() {
            Some(refused) => Err(refused),
            None => Ok(runtime),
        }
    }

    /// Does the part of [`Runtime::load`] that needs no store, so that the caller can open the
    /// store at the same time.
    #[boxed]
    pub async fn examine(config: RuntimeConfig) -> Result<Examined, LoadError> {
        Ok(Examined { found: load::find(&config, true).await?, config })
    }

    /// Loads only files that were compiled before. [`Runtime::uncompiled`] lists the others.
    /// Compiles all files if only a compilation can show whether a configured plugin exists.
    #[boxed]
    pub async fn examine_cached(config: RuntimeConfig) -> Result<Examined, LoadError> {
        let found = load::find(&config, false).await?;
        if found.uncompiled.is_empty() || found.knows(config.per_plugin.keys()) {
            return Ok(Examined { found, config });
        }
        Runtime::examine(config).await
    }

    /// Files of the folder that were not compiled when this runtime was created, the smallest
    /// first.
    pub fn uncompiled(&self) -> &[PathBuf] {
        &self.uncompiled
    }

    /// Returns the last cached description for this format or file name. The next version's
    /// description is most likely similar.
    pub fn last_description(&self, name: &str) -> Option<Arc<Description>> {
        self.loader.last_description(name)
    }

    /// Compiles an uncompiled file. The runtime then lists it as a plugin of the folder, or as
    /// refused.
    #[boxed]
    pub async fn compile_file(&self, file: &Path) {
        self.loader.compile_file(file, &self.folder).await;
    }

    /// Refuses configured plugins that do not exist, once all files are compiled.
    pub fn finish_compiling(&self) {
        self.loader.check_names(&self.folder);
    }

    /// Returns the set that serves now. A caller that needs several facts takes the set once.
    pub fn current(&self) -> Arc<PluginSet> {
        Arc::clone(&self.serving.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves with this set from now on. Running calls end on the plugins that they began with.
    pub fn serve(&self, set: PluginSet) {
        *self.serving.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
    }

    /// Drops components of the store that are not in the serving set.
    pub fn drop_unserved(&self) {
        let current = self.current();
        self.stored().retain(|plugin| current.all().any(|serving| Arc::ptr_eq(serving, plugin)));
    }

    pub fn policies(&self) -> &PolicyComponents {
        &self.policies
    }

    /// Drops all pieces that plugins memoized. Call it after a change of the releases that may be
    /// offered, because no commit announces such a change.
    pub fn forget_pieces(&self) {
        self.loader.forget_pieces();
    }

    pub fn recorder(&self) -> &Recorder {
        &self.loader.recorder
    }

    /// Returns true if no component of the serving set is awaited.
    pub fn is_whole(&self) -> bool {
        self.current().awaited().is_empty()
    }

    /// Active plugin of the format.
    pub fn plugin(&self, format: &str) -> Option<Arc<Plugin>> {
        self.current().plugin(format).cloned()
    }

    /// Plugin that serves a repository of this format.
    pub fn plugin_of(&self, repository: RepositoryId, format: &str) -> Option<Arc<Plugin>> {
        self.current().serving(repository, format).cloned()
    }

    /// Plugins of the folder, sorted by format, including plugins that do not serve.
    pub fn folder(&self) -> Vec<Arc<Plugin>> {
        self.folder.plugins()
    }

    /// The folder's plugin of this format.
    pub fn of_folder(&self, format: &str) -> Option<Arc<Plugin>> {
        self.folder.plugin(format)
    }

    /// Returns the loaded plugin with this digest (`sha256:` and hex).
    pub fn loaded(&self, digest: &str) -> Option<Arc<Plugin>> {
        let is_it = |plugin: &&Arc<Plugin>| plugin.digest().to_string() == digest;
        self.folder().iter().find(is_it).cloned().or_else(|| self.stored().iter().find(is_it).cloned())
    }

    /// Loads a component of the store, named by its digest. The component serves once it is in a
    /// set that is passed to [`Runtime::serve`], and stays loaded until [`Runtime::drop_unserved`].
    /// `Plugin` states why it cannot run here.
    #[boxed]
    pub async fn load_component(&self, digest: &str, bytes: Bytes) -> Result<Arc<Plugin>, LoadError> {
        let loaded = self.loader.examine(digest, bytes).await?;
        let plugin = Arc::new(self.loader.plugin(None, loaded)?);
        self.stored().push(Arc::clone(&plugin));
        Ok(plugin)
    }

    /// Loads the component if it was compiled before. Returns none if it was not.
    #[boxed]
    pub async fn load_cached(&self, digest: &str, bytes: Bytes) -> Result<Option<Arc<Plugin>>, LoadError> {
        let Some(loaded) = self.loader.examine_cached(digest, bytes).await? else { return Ok(None) };
        let plugin = Arc::new(self.loader.plugin(None, loaded)?);
        self.stored().push(Arc::clone(&plugin));
        Ok(Some(plugin))
    }

    /// Inspects the component in these bytes. `Plugin` states why it cannot run here.
    #[boxed]
    pub async fn inspect_component(&self, name: &str, bytes: Bytes) -> Result<Inspection, LoadError> {
        let loaded = self.loader.examine(name, bytes).await?;
        Ok(Inspection::of(PathBuf::from(name), loaded))
    }

    /// Reasons why files of the folder were refused.
    pub fn refused(&self) -> Vec<Arc<LoadError>> {
        self.folder.refused()
    }

    /// Formats that have their own tokens by their descriptions, in addition to the general ones.
    pub fn own_tokens(&self) -> Vec<String> {
        let current = self.current();
        let described = current.plugins().iter().map(|plugin| plugin.description());
        described.filter(|description| description.own_tokens).map(|own| own.format.clone()).collect()
    }

    fn stored(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Plugin>>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Description and interfaces of a `.wasm` file, obtained without a server.
#[derive(Clone, Debug)]
pub struct Inspection {
    pub file: PathBuf,
    pub description: Description,
    /// Imported interfaces, such as `packhouse:format/blobs@0.1.0`.
    pub imports: Vec<String>,
    /// Exported optional interfaces, such as `packhouse:format/upkeep@0.1.0`.
    pub abilities: Vec<String>,
    /// All exports, such as `packhouse:format/format@0.1.0`.
    pub exports: Vec<String>,
    /// Bytes of memory that each call begins with, if known.
    pub memory_bytes: Option<usize>,
}

impl Inspection {
    /// Returns true if the operator must link WASI for it.
    pub fn imports_wasi(&self) -> bool {
        contract::imports_wasi(&self.imports)
    }

    fn of(file: PathBuf, loaded: load::LoadedComponent) -> Inspection {
        let load::LoadedComponent { description, imports, exports, memory_bytes, .. } = loaded;
        // An interpreter's component also exports names that are not interfaces of the contract.
        let optional =
            |name: &&String| contract::interface_of(name).is_some_and(|interface| interface != "format");
        let abilities = exports.iter().filter(optional).cloned().collect();
        Inspection { file, description, imports, abilities, exports, memory_bytes }
    }
}

/// Compiles and describes a file, and checks that this host can run it, for `packhouse plugins
/// check FILE`. WASI is linked; [`Inspection::imports`] shows if the plugin needs it. Blocks.
/// `Plugin` states why it cannot run.
pub fn inspect(file: &Path) -> Result<Inspection, LoadError> {
    inspect_with(file, &RuntimeConfig::default())
}

/// Inspects a file. Uses the file's compiled code if a folder of a server with these settings has
/// it. Creates no folder and writes no code.
pub fn inspect_with(file: &Path, config: &RuntimeConfig) -> Result<Inspection, LoadError> {
    inspect_apart(file, None, config)
}

/// Inspects the component in these bytes. Errors use this name.
pub fn inspect_bytes(name: &Path, bytes: Bytes, config: &RuntimeConfig) -> Result<Inspection, LoadError> {
    inspect_apart(name, Some(bytes), config)
}

/// Uses a separate thread, so that an asynchronous program can call it too.
fn inspect_apart(name: &Path, bytes: Option<Bytes>, config: &RuntimeConfig) -> Result<Inspection, LoadError> {
    let inspecting = std::thread::scope(|scope| scope.spawn(|| inspect_here(name, bytes, config)).join());
    inspecting.unwrap_or_else(|_| Err(LoadError::Engine("inspecting the component panicked".to_owned())))
}

fn inspect_here(name: &Path, bytes: Option<Bytes>, config: &RuntimeConfig) -> Result<Inspection, LoadError> {
    let options = EngineOptions { pool: None, memory_bytes: Limits::default().memory_bytes };
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let executor = executor.map_err(|error| LoadError::Engine(error.to_string()))?;
    let CompiledFolders { cache, installed } = config.compiled();
    let folders = CompiledFolders { cache: cache.filter(|folder| folder.is_dir()), installed };
    let examining = async {
        let compiler = Compiler::new(&options, folders)?;
        let cached = match &bytes {
            Some(bytes) => {
                load::examine_cached_bytes(&compiler, name, bytes.clone(), true, usize::MAX).await?
            }
            None => load::examine_cached(&compiler, name, true, usize::MAX).await?,
        };
        if let Some(cached) = cached {
            return Ok(cached);
        }
        let compiler = Compiler::new(&options, CompiledFolders::default())?;
        match bytes {
            Some(bytes) => load::examine_bytes(&compiler, name, bytes, true, usize::MAX).await,
            None => load::examine(&compiler, name, true, usize::MAX).await,
        }
    };
    Ok(Inspection::of(name.to_owned(), executor.block_on(examining)?))
}
