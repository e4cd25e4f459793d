//! Creation of plugins from loaded components. Each plugin gets a store, the operator's limits, and
//! slots of the engine's pool. All versions of a format share its slots.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use packhouse_store::Store;
use tokio::sync::Semaphore;

use crate::compiler::Compiler;
use crate::config::{Limits, PluginConfig, RuntimeConfig};
use crate::contract;
use crate::description::{Description, MANIFEST};
use crate::engine;
use crate::error::LoadError;
use crate::folder::PluginFolder;
use crate::footprint;
use crate::instance::Runner;
use crate::load::{self, FolderComponents, LoadedComponent};
use crate::memos::Memos;
use crate::plugin::Plugin;
use crate::policy::PolicyComponents;
use crate::recording::{RecordedPlugin, Recorder};

/// Numbers that distinguish plugins: two loaded plugins have different numbers.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

pub(crate) struct Loader {
    compiler: Compiler,
    config: RuntimeConfig,
    storage: Store,
    memos: Arc<Memos>,
    /// Recorder of all its plugins' calls.
    pub(crate) recorder: Recorder,
    /// Number of plugins that the pool was sized for.
    count: usize,
    /// Slots of each format. Loaded versions of one format share them.
    slots: Mutex<HashMap<String, Slots>>,
    /// Slots for calls that compare versions.
    comparing: Arc<Semaphore>,
}

#[derive(Clone)]
struct Slots {
    count: usize,
    free: Arc<Semaphore>,
    /// Turns for calls that have a slot.
    turns: Arc<Semaphore>,
}

/// Plugins of a folder, and the files that have to be compiled first.
pub(crate) struct FolderPlugins {
    pub(crate) folder: PluginFolder,
    pub(crate) uncompiled: Vec<PathBuf>,
    pub(crate) policies: PolicyComponents,
}

impl Loader {
    /// Creates plugins from the components that were found. An unusable file disables only its own
    /// format; the log states the reason. A configured plugin without a file is an error.
    pub(crate) fn of(
        found: FolderComponents,
        config: RuntimeConfig,
        storage: Store,
    ) -> Result<(Loader, FolderPlugins), LoadError> {
        let FolderComponents { compiler, files, uncompiled, refused, policies } = found;
        let (memos, slots) = (Arc::default(), Mutex::default());
        let recorder = Recorder::default();
        let comparing = Arc::new(Semaphore::new(engine::COMPARISON_SLOTS));
        let count = files.len() + uncompiled.len();
        let loader = Loader { compiler, config, storage, memos, recorder, count, slots, comparing };
        let folder = PluginFolder::default();
        refused.into_iter().for_each(|error| folder.refuse(error));
        for (file, loaded) in files {
            match loader.plugin(Some(file), loaded) {
                Ok(plugin) => folder.add(plugin),
                Err(error) => folder.refuse(error),
            }
        }
        // If files are still uncompiled, `check_names` checks the names once all are compiled.
        let unknown = folder.unknown_name(loader.config.per_plugin.keys()).filter(|_| uncompiled.is_empty());
        match unknown {
            Some(unknown) => Err(unknown),
            None => Ok((loader, FolderPlugins { folder, uncompiled, policies })),
        }
    }

    /// Compiles a file of the folder and adds its plugin, or the reason of its refusal, to
    /// `folder`.
    pub(crate) async fn compile_file(&self, file: &Path, folder: &PluginFolder) {
        let (wasi, most) = (self.config.links_wasi(&engine::file_name(file)), self.config.most_memory());
        let loaded = load::examine(&self.compiler, file, wasi, most).await;
        match loaded.and_then(|loaded| self.plugin(Some(file.to_owned()), loaded)) {
            Ok(plugin) => folder.add(plugin),
            Err(error) => folder.refuse(error),
        }
    }

    /// Returns the last cached description for this format or file name.
    pub(crate) fn last_description(&self, name: &str) -> Option<Arc<Description>> {
        self.compiler.last_description(name)
    }

    /// Records an error for a configured plugin that does not exist, once all files are compiled.
    /// The server already serves by then, so the error does not abort the start.
    pub(crate) fn check_names(&self, folder: &PluginFolder) {
        if let Some(unknown) = folder.unknown_name(self.config.per_plugin.keys()) {
            folder.refuse(unknown);
        }
    }

    /// Compiles and describes these bytes. The error `Plugin` states why the component cannot run
    /// here. WASI is linked if the component imports it and the operator allows it for the format.
    pub(crate) async fn examine(&self, name: &str, bytes: Bytes) -> Result<LoadedComponent, LoadError> {
        let name = Path::new(name);
        let most = self.config.most_memory();
        self.allowed(name, load::examine_bytes(&self.compiler, name, bytes, true, most).await?)
    }

    /// Loads these bytes if they were compiled before.
    pub(crate) async fn examine_cached(
        &self,
        name: &str,
        bytes: Bytes,
    ) -> Result<Option<LoadedComponent>, LoadError> {
        let name = Path::new(name);
        let most = self.config.most_memory();
        let loaded = load::examine_cached_bytes(&self.compiler, name, bytes, true, most).await?;
        loaded.map(|loaded| self.allowed(name, loaded)).transpose()
    }

    fn allowed(&self, name: &Path, loaded: LoadedComponent) -> Result<LoadedComponent, LoadError> {
        let format = &loaded.description.format;
        if contract::imports_wasi(&loaded.imports) && !self.config.links_wasi(format) {
            let reason =
                format!("the component imports WASI: set `wasi = true` under [plugins.{format}] to allow it");
            return Err(LoadError::Plugin { file: name.to_owned(), reason });
        }
        Ok(loaded)
    }

    /// Creates the plugin of a loaded component, from this file or from the store.
    pub(crate) fn plugin(&self, file: Option<PathBuf>, loaded: LoadedComponent) -> Result<Plugin, LoadError> {
        let format: Arc<str> = loaded.description.format.as_str().into();
        if let Some(file) = &file
            && self.config.links_wasi(&engine::file_name(file))
            && !self.config.links_wasi(&format)
        {
            let reason = format!(
                "the configuration allows WASI for the file's name, but the plugin's format is {format}; \
                 rename the file"
            );
            return Err(LoadError::Plugin { file: file.clone(), reason });
        }
        let own = self.config.per_plugin.get(&*format);
        let (limits, slots) = self.limits(own, &format);
        if let Err(reason) = footprint::fits(loaded.code.linked.component(), limits.memory_bytes) {
            let file = file.unwrap_or_else(|| loaded.digest.digest().to_string().into());
            return Err(LoadError::Plugin { file, reason });
        }
        let mut description = loaded.description;
        let described_limits = description.limits.clone();
        if let Some(bytes) = own.and_then(|own| own.max_file_bytes) {
            description.limits.lower_file(bytes);
        }
        if let Some(bytes) = own.and_then(|own| own.max_manifest_bytes) {
            description.limits.set_named(MANIFEST, bytes);
        }
        let (version, digest) = (&description.version, loaded.digest.digest());
        let from = file.as_ref().map_or_else(|| "the store".to_owned(), |file| file.display().to_string());
        tracing::info!(plugin = %format, version, %digest, from, "plugin loaded");
        let engine = self.compiler.engine();
        let comparison_limits = Limits { concurrency: engine::COMPARISON_SLOTS, ..limits.clone() };
        let comparing =
            Runner::new(engine.clone(), Arc::clone(&format), comparison_limits, Arc::clone(&self.comparing));
        let mut runner = Runner::new(engine.clone(), Arc::clone(&format), limits, slots.free);
        runner.turns = Some(slots.turns);
        runner.recorded = Some(RecordedPlugin {
            recorder: self.recorder.clone(),
            format: Arc::clone(&format),
            version: version.clone(),
            digest: digest.to_string(),
        });
        runner.meters.announce();
        Ok(Plugin {
            runner,
            comparing,
            described_limits,
            description,
            imports: loaded.imports,
            exports: loaded.exports,
            storage: self.storage.clone(),
            code: loaded.code,
            memos: self.memos.for_plugin(),
            digest: loaded.digest,
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            format,
            file,
        })
    }

    /// Drops all pieces that plugins memoized.
    pub(crate) fn forget_pieces(&self) {
        self.memos.forget();
    }

    /// Returns the format's limits, with its share of the pool's slots.
    fn limits(&self, own: Option<&PluginConfig>, format: &str) -> (Limits, Slots) {
        let mut limits =
            own.and_then(|own| own.limits.as_ref()).unwrap_or(&self.config.default_limits).clone();
        let mut all = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let taken: usize = all.values().map(|slots| slots.count).sum();
        let slots = all.entry(format.to_owned()).or_insert_with(|| {
            let left = engine::pool_size(self.config.most_concurrency(), self.count).saturating_sub(taken);
            let count = engine::share(limits.concurrency, self.count).min(left).max(1);
            // Warns only if the operator set the value, even to the default. An unset value means
            // all available slots.
            if count < limits.concurrency && own.is_some_and(|own| own.concurrency_is_set) {
                tracing::warn!(
                    plugin = format,
                    configured = limits.concurrency,
                    share = count,
                    "concurrency reduced: the calls of all plugins must fit into the pool"
                );
            }
            let [free, turns] = [count, engine::turns()].map(|permits| Arc::new(Semaphore::new(permits)));
            Slots { count, free, turns }
        });
        limits.concurrency = slots.count;
        (limits, slots.clone())
    }
}
