//! From what was compiled to plugins over a store: with the operator's limits, and with places among the engine's instances that all
//! versions of a format share.

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
use crate::folder::Folder;
use crate::footprint;
use crate::instance::Runner;
use crate::load::{self, Found, Loaded};
use crate::memos::Memos;
use crate::plugin::Plugin;
use crate::policy::PolicyComponents;
use crate::recording::{RecordedPlugin, Recorder};

/// Tells plugins apart: two that are loaded have different numbers.
static NUMBERS: AtomicU64 = AtomicU64::new(1);

/// Makes plugins.
pub(crate) struct Loader {
    compiler: Compiler,
    config: RuntimeConfig,
    storage: Store,
    memos: Arc<Memos>,
    /// Of all its plugins' calls.
    pub(crate) recorder: Recorder,
    /// Plugins that the pool was made for.
    count: usize,
    /// The places of each format: two of its components that are loaded share them.
    places: Mutex<HashMap<String, Places>>,
    /// Those of calls that no client waits for.
    aside: Arc<Semaphore>,
    /// Those of calls that compare versions.
    comparing: Arc<Semaphore>,
}

#[derive(Clone)]
struct Places {
    count: usize,
    free: Arc<Semaphore>,
    /// For calls in one of them.
    turns: Arc<Semaphore>,
}

/// The plugins of a folder, and what of it has to be compiled first.
pub(crate) struct FolderPlugins {
    pub(crate) folder: Folder,
    pub(crate) uncompiled: Vec<PathBuf>,
    pub(crate) policies: PolicyComponents,
}

impl Loader {
    /// Makes plugins of what was found. A file that cannot be one costs its own format, and is in the log; a configured plugin of
    /// which there is no file is an error.
    pub(crate) fn of(
        found: Found,
        config: RuntimeConfig,
        storage: Store,
    ) -> Result<(Loader, FolderPlugins), LoadError> {
        let Found { compiler, files, uncompiled, refused, policies } = found;
        let (memos, places) = (Arc::default(), Mutex::default());
        let (recorder, aside) = (Recorder::default(), Arc::new(Semaphore::new(engine::ASIDE)));
        let comparing = Arc::new(Semaphore::new(engine::COMPARING));
        let count = files.len() + uncompiled.len();
        let loader = Loader { compiler, config, storage, memos, recorder, count, places, aside, comparing };
        let folder = Folder::default();
        refused.into_iter().for_each(|error| folder.refuse(error));
        for (file, loaded) in files {
            match loader.plugin(Some(file), loaded) {
                Ok(plugin) => folder.take_in(plugin),
                Err(error) => folder.refuse(error),
            }
        }
        // Else it is found out once all are compiled.
        let unknown = folder.unknown_name(loader.config.per_plugin.keys()).filter(|_| uncompiled.is_empty());
        match unknown {
            Some(unknown) => Err(unknown),
            None => Ok((loader, FolderPlugins { folder, uncompiled, policies })),
        }
    }

    /// Compiles a file of the folder and takes it in there.
    pub(crate) async fn compile_file(&self, file: &Path, folder: &Folder) {
        let (wasi, most) = (self.config.links_wasi(&engine::file_name(file)), self.config.most_memory());
        let loaded = load::examine(&self.compiler, file, wasi, most).await;
        match loaded.and_then(|loaded| self.plugin(Some(file.to_owned()), loaded)) {
            Ok(plugin) => folder.take_in(plugin),
            Err(error) => folder.refuse(error),
        }
    }

    /// What the component of this format, or of the file of this name, that was compiled last said of itself, if that is known.
    pub(crate) fn last_description(&self, name: &str) -> Option<Arc<Description>> {
        self.compiler.last_description(name)
    }

    /// Notes what is configured for a plugin that is not there, now that all are there: it is too late to end the start for it.
    pub(crate) fn check_names(&self, folder: &Folder) {
        if let Some(unknown) = folder.unknown_name(self.config.per_plugin.keys()) {
            folder.refuse(unknown);
        }
    }

    /// Compiles these bytes and asks them what they are: what `Plugin` says why it cannot be run here. WASI is linked where it is
    /// imported and the operator allows it to the format.
    pub(crate) async fn examine(&self, name: &str, bytes: Bytes) -> Result<Loaded, LoadError> {
        let name = Path::new(name);
        let most = self.config.most_memory();
        self.allowed(name, load::examine_bytes(&self.compiler, name, bytes, true, most).await?)
    }

    /// The same, if they were compiled before.
    pub(crate) async fn examine_kept(&self, name: &str, bytes: Bytes) -> Result<Option<Loaded>, LoadError> {
        let name = Path::new(name);
        let most = self.config.most_memory();
        let loaded = load::examine_kept_bytes(&self.compiler, name, bytes, true, most).await?;
        loaded.map(|loaded| self.allowed(name, loaded)).transpose()
    }

    fn allowed(&self, name: &Path, loaded: Loaded) -> Result<Loaded, LoadError> {
        let format = &loaded.description.format;
        if contract::imports_wasi(&loaded.imports) && !self.config.links_wasi(format) {
            let reason =
                format!("the component imports WASI: set `wasi = true` under [plugins.{format}] to allow it");
            return Err(LoadError::Plugin { file: name.to_owned(), reason });
        }
        Ok(loaded)
    }

    /// The plugin of what was compiled, from this file or from the store.
    pub(crate) fn plugin(&self, file: Option<PathBuf>, loaded: Loaded) -> Result<Plugin, LoadError> {
        let format: Arc<str> = loaded.description.format.as_str().into();
        if let Some(file) = &file
            && self.config.links_wasi(&engine::file_name(file))
            && !self.config.links_wasi(&format)
        {
            let reason = format!(
                "WASI is configured for the file's name, but its format is {format}; rename the file"
            );
            return Err(LoadError::Plugin { file: file.clone(), reason });
        }
        let own = self.config.per_plugin.get(&*format);
        let (limits, places) = self.limits(own, &format);
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
        tracing::info!(plugin = %format, version, %digest, from, "loaded a plugin");
        let engine = self.compiler.engine();
        let compared = Limits { concurrency: engine::COMPARING, ..limits.clone() };
        let comparing =
            Runner::new(engine.clone(), Arc::clone(&format), compared, Arc::clone(&self.comparing));
        let mut runner = Runner::new(engine.clone(), Arc::clone(&format), limits, places.free);
        runner.turns = Some(places.turns);
        runner.recorded = Some(RecordedPlugin {
            recorder: self.recorder.clone(),
            format: Arc::clone(&format),
            version: version.clone(),
            digest: digest.to_string(),
        });
        runner.aside = Arc::clone(&self.aside);
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

    /// Forgets all pieces that plugins made.
    pub(crate) fn forget_pieces(&self) {
        self.memos.forget();
    }

    /// The format's limits, with as many places as it gets of the pool.
    fn limits(&self, own: Option<&PluginConfig>, format: &str) -> (Limits, Places) {
        let mut limits =
            own.and_then(|own| own.limits.as_ref()).unwrap_or(&self.config.default_limits).clone();
        let mut all = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let taken: usize = all.values().map(|places| places.count).sum();
        let places = all.entry(format.to_owned()).or_insert_with(|| {
            let left = engine::pool_size(self.config.most_concurrency(), self.count).saturating_sub(taken);
            let count = engine::share(limits.concurrency, self.count).min(left).max(1);
            // What nobody set is as much as there is; what somebody set counts as set, even if it is the default.
            if count < limits.concurrency && own.is_some_and(|own| own.concurrency_is_set) {
                tracing::warn!(
                    plugin = format,
                    configured = limits.concurrency,
                    share = count,
                    "all plugins' calls together must fit the pool"
                );
            }
            let [free, turns] = [count, engine::turns()].map(|permits| Arc::new(Semaphore::new(permits)));
            Places { count, free, turns }
        });
        limits.concurrency = places.count;
        (limits, places.clone())
    }
}
