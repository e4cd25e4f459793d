//! From a folder of `.wasm` files to plugins: compiled in parallel, asked what they are, refused with a reason.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use packhouse_store::{Sha256, Store};
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::bindings::exports::packhouse::format::{format, present, retention, upkeep};
use crate::config::{Limits, PluginConfig, RuntimeConfig};
use crate::contract;
use crate::description::{Description, MANIFEST};
use crate::engine::{self, EngineOptions, MAX_POOL};
use crate::error::LoadError;
use crate::exports::FormatExports;
use crate::imports;
use crate::instance::{CallName, Runner};
use crate::memos::Memos;
use crate::plugin::{Code, Plugin};
use crate::recording::RecordedPlugin;
use crate::request::RequestHead;
use crate::state::{HostState, Phase};

/// Plugins that are compiled at one time; each compilation uses all cores by itself.
const PARALLEL: usize = 4;

/// Bytes of a description at most.
const MAX_DESCRIPTION: usize = 256 << 10;

/// What is found in a `.wasm` file.
pub(crate) struct Loaded {
    pub(crate) description: Description,
    pub(crate) imports: Vec<String>,
    pub(crate) abilities: Vec<String>,
    pub(crate) digest: Sha256,
    pub(crate) code: Code,
}

/// What was found in the files of a folder.
pub(crate) struct Found {
    engine: Engine,
    files: Vec<(PathBuf, Loaded)>,
    refused: Vec<LoadError>,
}

/// The plugins of a folder, sorted by format, and why the others are none.
pub(crate) struct Plugins {
    pub(crate) plugins: Vec<Arc<Plugin>>,
    pub(crate) refused: Vec<LoadError>,
}

/// Compiles all files of the configured folder and asks each what it is.
pub(crate) async fn find(config: &RuntimeConfig) -> Result<Found, LoadError> {
    let files = files(&config.plugins)?;
    let engine = engine::engine(&EngineOptions {
        pool: Some(pool_size(config, files.len())),
        memory_bytes: most_memory(config),
        cache: config.cache.as_deref(),
    })?;
    let mut examining = futures::stream::iter(files)
        .map(|file| {
            let (engine, wasi) = (&engine, wasi_for(config, &engine::file_name(&file)));
            async move { examine(engine, &file, wasi).await.map(|loaded| (file, loaded)) }
        })
        .buffer_unordered(PARALLEL);
    let (mut files, mut refused) = (Vec::new(), Vec::new());
    while let Some(found) = examining.next().await {
        match found {
            Ok(found) => files.push(found),
            Err(error) => refused.push(error),
        }
    }
    drop(examining);
    // Of two of one format the first by name is the plugin.
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(Found { engine, files, refused })
}

/// The plugins of what was found. A file that cannot be one costs its own format, and is in the log.
pub(crate) fn plugins(found: Found, config: &RuntimeConfig, storage: &Store) -> Result<Plugins, LoadError> {
    let Found { engine, files, mut refused } = found;
    let (count, memos) = (files.len(), Arc::<Memos>::default());
    let mut plugins: BTreeMap<Arc<str>, Arc<Plugin>> = BTreeMap::new();
    for (file, loaded) in files {
        let plugin = match plugin(&engine, file, loaded, config, storage, &memos, count) {
            Ok(plugin) => plugin,
            Err(error) => {
                refused.push(error);
                continue;
            }
        };
        if let Some(other) = plugins.get(&plugin.format) {
            refused.push(twice(other, &plugin));
            continue;
        }
        plugin.runner.meters.announce();
        plugins.insert(Arc::clone(&plugin.format), Arc::new(plugin));
    }
    check_names(config, &plugins, &refused)?;
    for error in &refused {
        tracing::error!(%error, "a plugin cannot be loaded; everything else is served");
    }
    Ok(Plugins { plugins: plugins.into_values().collect(), refused })
}

fn plugin(
    engine: &Engine,
    file: PathBuf,
    loaded: Loaded,
    config: &RuntimeConfig,
    storage: &Store,
    memos: &Arc<Memos>,
    count: usize,
) -> Result<Plugin, LoadError> {
    let wasi = wasi_for(config, &engine::file_name(&file));
    let format: Arc<str> = loaded.description.format.as_str().into();
    if wasi && !wasi_for(config, &format) {
        let reason =
            format!("WASI is configured for the file's name, but its format is {format}; rename the file");
        return Err(LoadError::Plugin { file, reason });
    }
    let own = config.per_plugin.get(&*format);
    let limits = limits(own, config, count, &format);
    let mut description = loaded.description;
    if let Some(bytes) = own.and_then(|own| own.max_file_bytes) {
        description.limits.lower_file(bytes);
    }
    if let Some(bytes) = own.and_then(|own| own.max_manifest_bytes) {
        description.limits.set_named(MANIFEST, bytes);
    }
    tracing::info!(plugin = %format, version = description.version, file = %file.display(), "loaded a plugin");
    let mut runner = Runner::new(engine.clone(), Arc::clone(&format), limits);
    runner.recorded = Some(RecordedPlugin {
        recorder: config.recorder.clone(),
        format: Arc::clone(&format),
        version: description.version.clone(),
        digest: loaded.digest.digest().to_string(),
    });
    Ok(Plugin {
        runner,
        description,
        storage: storage.clone(),
        code: loaded.code,
        memos: memos.for_plugin(),
        digest: loaded.digest,
        format,
        file,
    })
}

/// Compiles one file and asks it what it is, under the default limits.
pub(crate) async fn examine(engine: &Engine, file: &Path, wasi: bool) -> Result<Loaded, LoadError> {
    let refuse = |reason: String| LoadError::Plugin { file: file.to_owned(), reason };
    let (component, digest) = compile(engine, file).await.map_err(refuse)?;
    let imports = names(component.component_type().imports(engine).map(|(name, _)| name));
    let exports = names(component.component_type().exports(engine).map(|(name, _)| name));
    let objections = contract::objections(borrowed(&imports), borrowed(&exports), wasi);
    if !objections.is_empty() {
        return Err(refuse(objections.join("; ")));
    }
    let code = link(engine, &component, &exports, wasi).map_err(|error| {
        refuse(format!("cannot be linked with what this host offers ({}): {error:#}", contract::OFFERED))
    })?;
    let description = describe(engine, &code, file).await.map_err(refuse)?;
    let abilities =
        exports.into_iter().filter(|name| contract::interface_of(name) != Some("format")).collect();
    Ok(Loaded { description, imports, abilities, digest, code })
}

/// The component, and SHA-256 of the very bytes that it was made of.
async fn compile(engine: &Engine, file: &Path) -> Result<(Component, Sha256), String> {
    let (engine, file) = (engine.clone(), file.to_owned());
    let compiled = tokio::task::spawn_blocking(move || {
        check_layer(&file)?;
        #[allow(clippy::disallowed_methods, reason = "a component is compiled as a whole")]
        let bytes = std::fs::read(&file).map_err(|error| format!("cannot be read: {error}"))?;
        let component = Component::from_binary(&engine, &bytes).map_err(|error| format!("{error:#}"))?;
        Ok((component, Sha256::of(&bytes)))
    });
    compiled.await.map_err(|error| format!("compiling it failed: {error}"))?
}

/// A core module is the usual mistake, and wasmtime's words for it say nothing of what to do.
fn check_layer(file: &Path) -> Result<(), String> {
    let mut head = [0; 8];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut head));
    read.map_err(|error| format!("cannot be read: {error}"))?;
    match head {
        [0, b'a', b's', b'm', 1, 0, 0, 0] => {
            Err("is a core module, not a component: make one of it with wit-component, as `cargo xtask plugins` does".to_owned())
        }
        [0, b'a', b's', b'm', ..] => Ok(()),
        _ => Err("is not WebAssembly".to_owned()),
    }
}

fn link(engine: &Engine, component: &Component, exports: &[String], wasi: bool) -> wasmtime::Result<Code> {
    let linked = imports::linker(engine, wasi)?.instantiate_pre(component)?;
    let format = format::GuestIndices::new(&linked)?;
    let offers = |interface: &str| contract::exports(borrowed(exports), interface);
    let upkeep = if offers("upkeep") { Some(upkeep::GuestIndices::new(&linked)?) } else { None };
    let present = if offers("present") { Some(present::GuestIndices::new(&linked)?) } else { None };
    let retention = if offers("retention") { Some(retention::GuestIndices::new(&linked)?) } else { None };
    let exports = FormatExports::of(&linked)?;
    Ok(Code { linked, format, exports, upkeep, present, retention })
}

/// Asks the component for its description, in an instance from which no import can be called.
async fn describe(engine: &Engine, code: &Code, file: &Path) -> Result<Description, String> {
    let runner = Runner::new(engine.clone(), engine::file_name(file), Limits::default());
    let name = CallName {
        function: "describe",
        format: engine::file_name(file),
        repository: None,
        head: Arc::new(RequestHead::default()),
    };
    let head = Arc::clone(&name.head);
    let state = || {
        let (plugin, limits) = (Arc::clone(&runner.plugin), Arc::clone(&runner.limits));
        HostState::within(Phase::Describe, plugin, limits, head)
    };
    let text = runner.run(name, state, &code.linked, async |guest, instance| {
        let format = code.format.load(&mut *guest, instance)?;
        format.call_describe(guest).await
    });
    let text = text.await.map_err(|error| format!("`describe` failed: it {error}"))?;
    if text.len() > MAX_DESCRIPTION {
        return Err(format!("its description has {} bytes, over {MAX_DESCRIPTION}", text.len()));
    }
    Description::parse(&text)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let failed = |source| LoadError::Folder { folder: folder.to_owned(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn limits(own: Option<&PluginConfig>, config: &RuntimeConfig, plugins: usize, format: &str) -> Limits {
    let mut limits = own.and_then(|own| own.limits.as_ref()).unwrap_or(&config.default_limits).clone();
    let share = engine::share(limits.concurrency, plugins);
    // What nobody set is as much as there is; what somebody set counts as set, even if it is the default.
    if share < limits.concurrency && own.is_some_and(|own| own.concurrency_is_set) {
        tracing::warn!(
            plugin = format,
            configured = limits.concurrency,
            share,
            "all plugins' calls together must fit the pool"
        );
    }
    limits.concurrency = share;
    limits
}

fn pool_size(config: &RuntimeConfig, plugins: usize) -> usize {
    let most = all_limits(config).map(|limits| limits.concurrency).max().unwrap_or(1);
    most.saturating_mul(plugins.max(1)).clamp(1, MAX_POOL)
}

fn most_memory(config: &RuntimeConfig) -> usize {
    // Asking for a description runs under the default limits, whatever is configured.
    let default = Limits::default().memory_bytes;
    all_limits(config).map(|limits| limits.memory_bytes).max().unwrap_or(default).max(default)
}

fn all_limits(config: &RuntimeConfig) -> impl Iterator<Item = &Limits> {
    let own = config.per_plugin.values().filter_map(|own| own.limits.as_ref());
    std::iter::once(&config.default_limits).chain(own)
}

fn wasi_for(config: &RuntimeConfig, name: &str) -> bool {
    config.per_plugin.get(name).is_some_and(|own| own.wasi)
}

/// What is configured for a plugin that is not there is a mistake, but where its file is refused, which says more.
fn check_names(
    config: &RuntimeConfig,
    plugins: &BTreeMap<Arc<str>, Arc<Plugin>>,
    refused: &[LoadError],
) -> Result<(), LoadError> {
    let is_known = |name: &str| {
        plugins.contains_key(name) || refused.iter().any(|error| error.stem().as_deref() == Some(name))
    };
    let Some(name) = config.per_plugin.keys().find(|name| !is_known(name)) else {
        return Ok(());
    };
    let loaded: Vec<&str> = plugins.keys().map(AsRef::as_ref).collect();
    Err(LoadError::Unknown { name: name.clone(), loaded: loaded.join(", ") })
}

fn twice(one: &Plugin, other: &Plugin) -> LoadError {
    let (first, second) = if one.file < other.file { (one, other) } else { (other, one) };
    LoadError::Twice {
        format: first.format.as_ref().to_owned(),
        first: first.file.clone(),
        second: second.file.clone(),
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    names.map(str::to_owned).collect()
}

fn borrowed(names: &[String]) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str)
}
