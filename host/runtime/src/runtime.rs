//! All plugins of a server, which of them serve, and a look at one file without a server.

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
use crate::folder::Folder;
use crate::load;
use crate::loader::{FolderPlugins, Loader};
use crate::plugin::Plugin;
use crate::plugin_set::PluginSet;
use crate::policy::PolicyComponents;
use crate::recording::Recorder;

/// All plugins of this server.
pub struct Runtime {
    loader: Loader,
    folder: Folder,
    /// Files of the folder that had to be compiled when this was made.
    uncompiled: Vec<PathBuf>,
    /// Those that are loaded from the store.
    stored: Mutex<Vec<Arc<Plugin>>>,
    serving: RwLock<Arc<PluginSet>>,
    policies: PolicyComponents,
}

/// The plugins of a folder, before they have a store.
pub struct Examined {
    config: RuntimeConfig,
    found: load::Found,
}

impl Examined {
    /// The plugins over this store. What cannot be one is left out and told by [`Runtime::refused`]; a configured plugin of which there
    /// is no file is an error.
    pub fn with(self, store: &Store) -> Result<Runtime, LoadError> {
        let (loader, folder) = Loader::of(self.found, self.config, store.clone())?;
        let FolderPlugins { folder, uncompiled, policies } = folder;
        let serving = PluginSet::new(folder.plugins(), std::collections::HashMap::new());
        let (stored, serving) = (Mutex::default(), RwLock::new(Arc::new(serving)));
        Ok(Runtime { loader, folder, uncompiled, stored, serving, policies })
    }
}

impl Runtime {
    /// Loads every `*.wasm` of the configured folder, compiling in parallel. One that cannot be loaded is an error that names the
    /// file and says what was wanted and what was found; so are two of one format, and a configured plugin that is not there.
    #[boxed]
    pub async fn load(config: RuntimeConfig, store: Store) -> Result<Runtime, LoadError> {
        let runtime = Runtime::examine(config).await?.with(&store)?;
        match runtime.folder.take_refused() {
            Some(refused) => Err(refused),
            None => Ok(runtime),
        }
    }

    /// The part of [`Runtime::load`] that needs no store, so that one can be opened meanwhile.
    #[boxed]
    pub async fn examine(config: RuntimeConfig) -> Result<Examined, LoadError> {
        Ok(Examined { found: load::find(&config, true).await?, config })
    }

    /// The same of what was compiled before. What was not is told by [`Runtime::uncompiled`]; everything is compiled all the same where
    /// only that can tell whether a plugin is there that is configured.
    #[boxed]
    pub async fn examine_kept(config: RuntimeConfig) -> Result<Examined, LoadError> {
        let found = load::find(&config, false).await?;
        if found.uncompiled.is_empty() || found.knows(config.per_plugin.keys()) {
            return Ok(Examined { found, config });
        }
        Runtime::examine(config).await
    }

    /// Files of the folder that had to be compiled when this was made, the smallest first.
    pub fn uncompiled(&self) -> &[PathBuf] {
        &self.uncompiled
    }

    /// What the component of this format, or of the file of this name, that was compiled last said of itself, if that is known: the next
    /// version of it says most of the same.
    pub fn last_description(&self, name: &str) -> Option<Arc<Description>> {
        self.loader.last_description(name)
    }

    /// Compiles one of them: then it is among those of the folder, or of those that are none.
    #[boxed]
    pub async fn compile_file(&self, file: &Path) {
        self.loader.compile_file(file, &self.folder).await;
    }

    /// All of them were compiled: what is configured for a plugin that is not there is noted.
    pub fn compiled_all(&self) {
        self.loader.check_names(&self.folder);
    }

    /// What serves at present. Who needs several things of it takes it once.
    pub fn current(&self) -> Arc<PluginSet> {
        Arc::clone(&self.serving.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Serves with this set from now on; calls that are under way end on the plugins that they began with.
    pub fn serve(&self, set: PluginSet) {
        *self.serving.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
    }

    /// Lets go the components of the store that are not in what serves.
    pub fn let_go(&self) {
        let current = self.current();
        self.stored().retain(|plugin| current.all().any(|serving| Arc::ptr_eq(serving, plugin)));
    }

    /// Components of policies.
    pub fn policies(&self) -> &PolicyComponents {
        &self.policies
    }

    /// Forgets the pieces of documents that plugins made: which releases may be offered has changed, and no commit tells of it.
    pub fn forget_pieces(&self) {
        self.loader.forget_pieces();
    }

    /// Which calls are recorded.
    pub fn recorder(&self) -> &Recorder {
        &self.loader.recorder
    }

    /// Whether everything is loaded that is to serve.
    pub fn is_whole(&self) -> bool {
        self.current().awaited().is_empty()
    }

    /// The plugin that this format runs.
    pub fn plugin(&self, format: &str) -> Option<Arc<Plugin>> {
        self.current().plugin(format).cloned()
    }

    /// The plugin that serves a repository of this format.
    pub fn plugin_of(&self, repository: RepositoryId, format: &str) -> Option<Arc<Plugin>> {
        self.current().serving(repository, format).cloned()
    }

    /// Those of the folder, sorted by format, whether they serve or not.
    pub fn folder(&self) -> Vec<Arc<Plugin>> {
        self.folder.plugins()
    }

    /// The folder's plugin of this format.
    pub fn of_folder(&self, format: &str) -> Option<Arc<Plugin>> {
        self.folder.plugin(format)
    }

    /// The plugin with this digest, as `sha256:` and hex, if it is loaded.
    pub fn loaded(&self, digest: &str) -> Option<Arc<Plugin>> {
        let is_it = |plugin: &&Arc<Plugin>| plugin.digest().to_string() == digest;
        self.folder().iter().find(is_it).cloned().or_else(|| self.stored().iter().find(is_it).cloned())
    }

    /// Loads a component of the store, under its digest as its name. It serves once it is part of a set that [`Runtime::serve`] is given,
    /// and stays loaded until [`Runtime::let_go`]. `Plugin` says why it cannot be run here.
    #[boxed]
    pub async fn load_component(&self, digest: &str, bytes: Bytes) -> Result<Arc<Plugin>, LoadError> {
        let loaded = self.loader.examine(digest, bytes).await?;
        let plugin = Arc::new(self.loader.plugin(None, loaded)?);
        self.stored().push(Arc::clone(&plugin));
        Ok(plugin)
    }

    /// The same, if it was compiled before; none where it was not.
    #[boxed]
    pub async fn load_kept(&self, digest: &str, bytes: Bytes) -> Result<Option<Arc<Plugin>>, LoadError> {
        let Some(loaded) = self.loader.examine_kept(digest, bytes).await? else { return Ok(None) };
        let plugin = Arc::new(self.loader.plugin(None, loaded)?);
        self.stored().push(Arc::clone(&plugin));
        Ok(Some(plugin))
    }

    /// What these bytes are. `Plugin` says why they cannot be run here.
    #[boxed]
    pub async fn inspect_component(&self, name: &str, bytes: Bytes) -> Result<Inspection, LoadError> {
        let loaded = self.loader.examine(name, bytes).await?;
        Ok(Inspection::of(PathBuf::from(name), loaded))
    }

    /// Why files of the folder are no plugins of this server.
    pub fn refused(&self) -> Vec<Arc<LoadError>> {
        self.folder.refused()
    }

    /// The formats of which there are tokens by their descriptions, besides those that there are in any case.
    pub fn own_tokens(&self) -> Vec<String> {
        let current = self.current();
        let described = current.plugins().iter().map(|plugin| plugin.description());
        described.filter(|description| description.own_tokens).map(|own| own.format.clone()).collect()
    }

    fn stored(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Plugin>>> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a `.wasm` file is, without a server.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The file.
    pub file: PathBuf,
    /// Its description.
    pub description: Description,
    /// What it imports, as `packhouse:format/blobs@0.1.0`.
    pub imports: Vec<String>,
    /// Optional interfaces that it exports, as `packhouse:format/upkeep@0.1.0`.
    pub abilities: Vec<String>,
    /// All that it exports, as `packhouse:format/format@0.1.0`.
    pub exports: Vec<String>,
    /// Bytes of memory that each call begins with, where that is known.
    pub memory_bytes: Option<usize>,
}

impl Inspection {
    /// Whether the operator must link WASI for it.
    pub fn imports_wasi(&self) -> bool {
        contract::imports_wasi(&self.imports)
    }

    fn of(file: PathBuf, loaded: load::Loaded) -> Inspection {
        let load::Loaded { description, imports, exports, memory_bytes, .. } = loaded;
        // A component of an interpreter exports names of its own besides, which are no interfaces of the contract.
        let optional =
            |name: &&String| contract::interface_of(name).is_some_and(|interface| interface != "format");
        let abilities = exports.iter().filter(optional).cloned().collect();
        Inspection { file, description, imports, abilities, exports, memory_bytes }
    }
}

/// Compiles the file, asks it what it is and checks that this host can run it, for `packhouse plugins check FILE`. WASI is linked:
/// [`Inspection::imports`] tells whether the plugin needs it. Blocks. `Plugin` says why it cannot be run.
pub fn inspect(file: &Path) -> Result<Inspection, LoadError> {
    inspect_with(file, &RuntimeConfig::default())
}

/// The same; what was compiled of the file and lies in the folders of a server with these settings is not compiled again. None of these
/// folders is made, and no code is written there.
pub fn inspect_with(file: &Path, config: &RuntimeConfig) -> Result<Inspection, LoadError> {
    inspect_apart(file, None, config)
}

/// The same of a component's bytes, which errors call by this name.
pub fn inspect_bytes(name: &Path, bytes: Bytes, config: &RuntimeConfig) -> Result<Inspection, LoadError> {
    inspect_apart(name, Some(bytes), config)
}

/// On a thread of its own, so that it can be called from within an asynchronous program too.
fn inspect_apart(name: &Path, bytes: Option<Bytes>, config: &RuntimeConfig) -> Result<Inspection, LoadError> {
    let inspecting = std::thread::scope(|scope| scope.spawn(|| inspect_here(name, bytes, config)).join());
    inspecting
        .unwrap_or_else(|_| Err(LoadError::Engine("inspecting the component ended in a panic".to_owned())))
}

fn inspect_here(name: &Path, bytes: Option<Bytes>, config: &RuntimeConfig) -> Result<Inspection, LoadError> {
    let options = EngineOptions { pool: None, memory_bytes: Limits::default().memory_bytes };
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let executor = executor.map_err(|error| LoadError::Engine(error.to_string()))?;
    let CompiledFolders { cache, installed } = config.compiled();
    let folders = CompiledFolders { cache: cache.filter(|folder| folder.is_dir()), installed };
    let examining = async {
        let compiler = Compiler::new(&options, folders)?;
        let kept = match &bytes {
            Some(bytes) => load::examine_kept_bytes(&compiler, name, bytes.clone(), true, usize::MAX).await?,
            None => load::examine_kept(&compiler, name, true, usize::MAX).await?,
        };
        if let Some(kept) = kept {
            return Ok(kept);
        }
        let compiler = Compiler::new(&options, CompiledFolders::default())?;
        match bytes {
            Some(bytes) => load::examine_bytes(&compiler, name, bytes, true, usize::MAX).await,
            None => load::examine(&compiler, name, true, usize::MAX).await,
        }
    };
    Ok(Inspection::of(name.to_owned(), executor.block_on(examining)?))
}
