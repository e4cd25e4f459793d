//! Loading of components from a folder or from bytes: each is compiled and described, or refused
//! with a reason.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use packhouse_store::Sha256;
use tokio::sync::Semaphore;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::bindings::exports::packhouse::format::{format, present, retention, upkeep, versions};
use crate::compiler::{Compiled, Compiler, Work};
use crate::component_file::{MAX_COMPONENT_BYTES, component_files, component_name, read_component};
use crate::config::{Limits, RuntimeConfig};
use crate::contract;
use crate::description::{Description, MAX_DESCRIPTION};
use crate::engine::{self, EngineOptions};
use crate::error::LoadError;
use crate::exports::FormatExports;
use crate::footprint;
use crate::imports;
use crate::instance::{CallName, Runner};
use crate::plugin::LinkedComponent;
use crate::policy::PolicyComponents;
use crate::request::RequestHead;
use crate::state::{HostState, Phase};

/// Most plugins that are compiled or loaded from the cache at one time. Each compilation uses all
/// cores. More of them than cores would only need more memory.
const PARALLEL: usize = 4;

/// A compiled and described component.
pub(crate) struct LoadedComponent {
    pub(crate) description: Description,
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
    /// Bytes of memory that each instance begins with.
    pub(crate) memory_bytes: Option<usize>,
    pub(crate) digest: Sha256,
    pub(crate) code: LinkedComponent,
    pub(crate) work: Work,
}

/// Components of a folder, sorted by file name, and the refused files.
pub(crate) struct FolderComponents {
    pub(crate) compiler: Compiler,
    pub(crate) files: Vec<(PathBuf, LoadedComponent)>,
    /// Files that have to be compiled first, the smallest first.
    pub(crate) uncompiled: Vec<PathBuf>,
    pub(crate) refused: Vec<LoadError>,
    pub(crate) policies: PolicyComponents,
}

impl FolderComponents {
    /// Returns true if each of these names is known. A known name is the format of a plugin, or a
    /// refused or uncompiled file. The format that an uncompiled file had in its previous version
    /// is known as well.
    pub(crate) fn knows<'a>(&self, mut names: impl Iterator<Item = &'a String>) -> bool {
        let is_loaded = |name: &str| self.files.iter().any(|(_, loaded)| loaded.description.format == name);
        let is_refused = |name: &str| self.refused.iter().any(|error| error.stem().as_deref() == Some(name));
        let is_file = |name: &str| {
            self.uncompiled.iter().map(|file| engine::file_name(file)).any(|file| {
                let before = self.compiler.last_description(&file);
                &*file == name || before.is_some_and(|before| before.format == name)
            })
        };
        names.all(|name| is_loaded(name) || is_refused(name) || is_file(name))
    }
}

/// Creates a compiler for a server with these settings, and lists the files of the configured
/// folder.
pub(crate) fn compiler(config: &RuntimeConfig) -> Result<(Compiler, Vec<PathBuf>), LoadError> {
    let folder = &config.plugins;
    let failed = |source| LoadError::Folder { folder: folder.clone(), source };
    let files = component_files(folder).map_err(failed)?;
    let options = EngineOptions {
        pool: Some(
            engine::pool_size(config.most_concurrency(), files.len())
                + engine::POLICY_SLOTS
                + engine::COMPARISON_SLOTS,
        ),
        memory_bytes: config.most_memory(),
    };
    let compiler = Compiler::new(&options, config.compiled())?;
    Ok((compiler.in_separate_process(config.compiling.as_ref(), &options), files))
}

/// Loads the files of the configured folder that were compiled before. With `compile`, also
/// compiles and loads all other files.
pub(crate) async fn find(config: &RuntimeConfig, compile: bool) -> Result<FolderComponents, LoadError> {
    let (compiler, files) = compiler(config)?;
    let mut examining = futures::stream::iter(files)
        .map(|file| {
            let (compiler, wasi) = (&compiler, config.links_wasi(&engine::file_name(&file)));
            let most = config.most_memory();
            async move {
                let examined = if compile {
                    examine(compiler, &file, wasi, most).await.map(Some)
                } else {
                    examine_cached(compiler, &file, wasi, most).await
                };
                (file, examined)
            }
        })
        .buffer_unordered(parallel_compilations());
    let (mut files, mut uncompiled, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    while let Some((file, examined)) = examining.next().await {
        match examined {
            Ok(Some(loaded)) => files.push((file, loaded)),
            Ok(None) => uncompiled.push(file),
            Err(error) => refused.push(error),
        }
    }
    drop(examining);
    files.sort_by(|(one, _), (other, _)| one.cmp(other));
    // The smallest files come first, so that slow compilations do not delay fast ones.
    uncompiled.sort_by_cached_key(|file| (file.metadata().map_or(0, |of| of.len()), file.clone()));
    let policies = PolicyComponents::of_folder(compiler.clone(), &config.plugins).await;
    Ok(FolderComponents { compiler, files, uncompiled, refused, policies })
}

/// Number of components that are compiled at one time: at least two, so that a slow one does not
/// delay all others.
pub fn parallel_compilations() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).clamp(2, PARALLEL)
}

/// Compiles one file and describes it under the default limits. An instance can have `most` bytes
/// of memory.
pub(crate) async fn examine(
    compiler: &Compiler,
    file: &Path,
    wasi: bool,
    most: usize,
) -> Result<LoadedComponent, LoadError> {
    examine_bytes(compiler, file, read(file).await?, wasi, most).await
}

/// Loads a file that was compiled before. Returns none if no compiled code for it is cached.
pub(crate) async fn examine_cached(
    compiler: &Compiler,
    file: &Path,
    wasi: bool,
    most: usize,
) -> Result<Option<LoadedComponent>, LoadError> {
    let refuse = |reason: String| LoadError::Plugin { file: file.to_owned(), reason };
    if let Some(compiled) = compiler.load_cached_file(file).await.map_err(refuse)? {
        return inspect(compiler, file, compiled, wasi, most).await.map(Some);
    }
    check_layer(&read(file).await?).map_err(refuse)?;
    Ok(None)
}

async fn read(file: &Path) -> Result<Bytes, LoadError> {
    let path = file.to_owned();
    let read = tokio::task::spawn_blocking(move || read_component(&path)).await;
    let read =
        read.map_err(|error| error.to_string()).and_then(|read| read.map_err(|error| error.to_string()));
    let bytes = read.map_err(|error| LoadError::Plugin {
        file: file.to_owned(),
        reason: format!("the file cannot be read: {error}"),
    })?;
    Ok(bytes.into())
}

/// Compiles and describes the component in these bytes. Errors use this name.
pub(crate) async fn examine_bytes(
    compiler: &Compiler,
    name: &Path,
    bytes: Bytes,
    wasi: bool,
    most: usize,
) -> Result<LoadedComponent, LoadError> {
    let refuse = |reason: String| LoadError::Plugin { file: name.to_owned(), reason };
    check_layer(&bytes).map_err(refuse)?;
    let compiled = compiler.compile(name, bytes).await.map_err(refuse)?;
    inspect(compiler, name, compiled, wasi, most).await
}

/// Loads these bytes if the component was compiled before.
pub(crate) async fn examine_cached_bytes(
    compiler: &Compiler,
    name: &Path,
    bytes: Bytes,
    wasi: bool,
    most: usize,
) -> Result<Option<LoadedComponent>, LoadError> {
    let refuse = |reason: String| LoadError::Plugin { file: name.to_owned(), reason };
    check_layer(&bytes).map_err(refuse)?;
    match compiler.load_cached(bytes).await.map_err(refuse)? {
        Some(compiled) => inspect(compiler, name, compiled, wasi, most).await.map(Some),
        None => Ok(None),
    }
}

/// Reads or requests the description of a compiled component. A component that was compiled before
/// has a cached description.
async fn inspect(
    compiler: &Compiler,
    name: &Path,
    compiled: Compiled,
    wasi: bool,
    most: usize,
) -> Result<LoadedComponent, LoadError> {
    let refuse = |reason: String| LoadError::Plugin { file: name.to_owned(), reason };
    let (engine, Compiled { component, digest, work }) = (compiler.engine(), compiled);
    footprint::fits(&component, most).map_err(refuse)?;
    let imports = names(component.component_type().imports(engine).map(|(name, _)| name));
    let exports = names(component.component_type().exports(engine).map(|(name, _)| name));
    let objections = contract::objections(borrowed(&imports), borrowed(&exports), wasi);
    if !objections.is_empty() {
        return Err(refuse(objections.join("; ")));
    }
    let code = link(engine, &component, &exports, wasi).map_err(|error| {
        refuse(format!(
            "the component cannot be linked with what this host offers ({}): {error:#}",
            contract::OFFERED
        ))
    })?;
    let known = if work.compiled { None } else { compiler.description_of(&digest).await };
    let description = match known {
        Some(known) => known,
        None => {
            let (description, text) = describe(engine, &code, name).await.map_err(refuse)?;
            let names = component_name(name).into_iter().chain([description.format.clone()]).collect();
            compiler.cache_description(&digest, names, text).await;
            description
        }
    };
    let memory_bytes = footprint::memory_bytes(&component);
    Ok(LoadedComponent { description, imports, exports, memory_bytes, digest, code, work })
}

/// Detects a core module, which is a frequent mistake. wasmtime's message for it does not say what
/// to do.
pub(crate) fn check_layer(bytes: &[u8]) -> Result<(), String> {
    if bytes.len() > MAX_COMPONENT_BYTES {
        return Err(format!("the file has {} bytes, over the limit of {MAX_COMPONENT_BYTES}", bytes.len()));
    }
    match bytes {
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {
            Err("the file is a core module, not a component: `packhouse plugins build` builds a component \
                from a project, and wit-component converts any module"
                .to_owned())
        }
        [0, b'a', b's', b'm', _, _, _, _, ..] => Ok(()),
        _ => Err("the file is not a WebAssembly component".to_owned()),
    }
}

fn link(
    engine: &Engine,
    component: &Component,
    exports: &[String],
    wasi: bool,
) -> wasmtime::Result<LinkedComponent> {
    let linked = imports::linker(engine, wasi)?.instantiate_pre(component)?;
    let format = format::GuestIndices::new(&linked)?;
    let offers = |interface: &str| contract::exports(borrowed(exports), interface);
    let upkeep = if offers("upkeep") { Some(upkeep::GuestIndices::new(&linked)?) } else { None };
    let present = if offers("present") { Some(present::GuestIndices::new(&linked)?) } else { None };
    let retention = if offers("retention") { Some(retention::GuestIndices::new(&linked)?) } else { None };
    let versions = if offers("versions") { Some(versions::GuestIndices::new(&linked)?) } else { None };
    let exports = FormatExports::of(&linked)?;
    Ok(LinkedComponent { linked, format, exports, upkeep, present, retention, versions })
}

/// Calls `describe` in an instance that can call no import. Returns the description and its text.
async fn describe(
    engine: &Engine,
    code: &LinkedComponent,
    file: &Path,
) -> Result<(Description, String), String> {
    let memory_bytes = footprint::to_describe(code.linked.component());
    let (limits, name) = (Limits { memory_bytes, ..Limits::default() }, engine::file_name(file));
    let slots = Arc::new(Semaphore::new(limits.concurrency));
    let runner = Runner::new(engine.clone(), name, limits, slots);
    let name = CallName {
        function: "describe",
        format: engine::file_name(file),
        repository: None,
        repository_id: None,
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
        return Err(format!("its description has {} bytes; the limit is {MAX_DESCRIPTION}", text.len()));
    }
    Ok((Description::parse(&text)?, text))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    names.map(str::to_owned).collect()
}

fn borrowed(names: &[String]) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str)
}
