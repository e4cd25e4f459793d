//! From a folder of components' files, or the bytes of one, to what was compiled of it: asked what it is, refused with a reason.

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
use crate::plugin::Code;
use crate::policy::PolicyComponents;
use crate::request::RequestHead;
use crate::state::{HostState, Phase};

/// Plugins that are compiled at one time, or read from what was compiled, at most; each compilation uses all cores by itself. More than
/// there are cores would only hold more memory at once.
const PARALLEL: usize = 4;

/// What is found in a component.
pub(crate) struct Loaded {
    pub(crate) description: Description,
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
    /// Bytes that each instance begins with.
    pub(crate) memory_bytes: Option<usize>,
    pub(crate) digest: Sha256,
    pub(crate) code: Code,
    pub(crate) work: Work,
}

/// What was found in the files of a folder, sorted by name, and why the others are none.
pub(crate) struct Found {
    pub(crate) compiler: Compiler,
    pub(crate) files: Vec<(PathBuf, Loaded)>,
    /// Those that have to be compiled first, the smallest first.
    pub(crate) uncompiled: Vec<PathBuf>,
    pub(crate) refused: Vec<LoadError>,
    pub(crate) policies: PolicyComponents,
}

impl Found {
    /// Whether there is a plugin, or a file, of each of these names, or one whose component before was of it.
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

/// What compiles for a server of these settings, and the files of the configured folder.
pub(crate) fn compiler(config: &RuntimeConfig) -> Result<(Compiler, Vec<PathBuf>), LoadError> {
    let folder = &config.plugins;
    let failed = |source| LoadError::Folder { folder: folder.clone(), source };
    let files = component_files(folder).map_err(failed)?;
    let options = EngineOptions {
        pool: Some(
            engine::pool_size(config.most_concurrency(), files.len())
                + engine::ASIDE
                + engine::POLICY_PLACES
                + engine::COMPARING,
        ),
        memory_bytes: config.most_memory(),
    };
    let compiler = Compiler::new(&options, config.compiled())?;
    Ok((compiler.in_process_of_its_own(config.compiling.as_ref(), &options), files))
}

/// Asks each file of the configured folder what it is: those that were compiled before, and with `compile` the others too, which are
/// compiled for it.
pub(crate) async fn find(config: &RuntimeConfig, compile: bool) -> Result<Found, LoadError> {
    let (compiler, files) = compiler(config)?;
    let mut examining = futures::stream::iter(files)
        .map(|file| {
            let (compiler, wasi) = (&compiler, config.links_wasi(&engine::file_name(&file)));
            let most = config.most_memory();
            async move {
                let examined = if compile {
                    examine(compiler, &file, wasi, most).await.map(Some)
                } else {
                    examine_kept(compiler, &file, wasi, most).await
                };
                (file, examined)
            }
        })
        .buffer_unordered(side_by_side());
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
    // What takes long shall not stand in the way of what does not.
    uncompiled.sort_by_cached_key(|file| (file.metadata().map_or(0, |of| of.len()), file.clone()));
    let policies = PolicyComponents::of_folder(compiler.clone(), &config.plugins).await;
    Ok(Found { compiler, files, uncompiled, refused, policies })
}

/// How many components are compiled at one time: two at least, so that one that takes long does not hold up all others.
pub fn side_by_side() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).clamp(2, PARALLEL)
}

/// Compiles one file and asks it what it is, under the default limits. An instance can have `most` bytes of memory.
pub(crate) async fn examine(
    compiler: &Compiler,
    file: &Path,
    wasi: bool,
    most: usize,
) -> Result<Loaded, LoadError> {
    examine_bytes(compiler, file, read(file).await?, wasi, most).await
}

/// The same of a file that was compiled before; none for one that was not.
pub(crate) async fn examine_kept(
    compiler: &Compiler,
    file: &Path,
    wasi: bool,
    most: usize,
) -> Result<Option<Loaded>, LoadError> {
    let refuse = |reason: String| LoadError::Plugin { file: file.to_owned(), reason };
    if let Some(compiled) = compiler.kept_of(file).await.map_err(refuse)? {
        return ask(compiler, file, compiled, wasi, most).await.map(Some);
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

/// The same of the bytes of a component, which errors call by this name.
pub(crate) async fn examine_bytes(
    compiler: &Compiler,
    name: &Path,
    bytes: Bytes,
    wasi: bool,
    most: usize,
) -> Result<Loaded, LoadError> {
    let refuse = |reason: String| LoadError::Plugin { file: name.to_owned(), reason };
    check_layer(&bytes).map_err(refuse)?;
    let compiled = compiler.compile(name, bytes).await.map_err(refuse)?;
    ask(compiler, name, compiled, wasi, most).await
}

/// The same, if the component was compiled before.
pub(crate) async fn examine_kept_bytes(
    compiler: &Compiler,
    name: &Path,
    bytes: Bytes,
    wasi: bool,
    most: usize,
) -> Result<Option<Loaded>, LoadError> {
    let refuse = |reason: String| LoadError::Plugin { file: name.to_owned(), reason };
    check_layer(&bytes).map_err(refuse)?;
    match compiler.kept(bytes).await.map_err(refuse)? {
        Some(compiled) => ask(compiler, name, compiled, wasi, most).await.map(Some),
        None => Ok(None),
    }
}

/// Asks what was compiled what it is; where it was compiled before, it said so then.
async fn ask(
    compiler: &Compiler,
    name: &Path,
    compiled: Compiled,
    wasi: bool,
    most: usize,
) -> Result<Loaded, LoadError> {
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
            compiler.keep_description(&digest, names, text).await;
            description
        }
    };
    let memory_bytes = footprint::memory_bytes(&component);
    Ok(Loaded { description, imports, exports, memory_bytes, digest, code, work })
}

/// A core module is the usual mistake, and wasmtime's words for it say nothing of what to do.
pub(crate) fn check_layer(bytes: &[u8]) -> Result<(), String> {
    if bytes.len() > MAX_COMPONENT_BYTES {
        return Err(format!("the file has {} bytes, over the limit of {MAX_COMPONENT_BYTES}", bytes.len()));
    }
    match bytes {
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => {
            Err("the file is a core module, not a component: `packhouse plugins build` makes one of a project, wit-component of any".to_owned())
        }
        [0, b'a', b's', b'm', _, _, _, _, ..] => Ok(()),
        _ => Err("the file is not a WebAssembly component".to_owned()),
    }
}

fn link(engine: &Engine, component: &Component, exports: &[String], wasi: bool) -> wasmtime::Result<Code> {
    let linked = imports::linker(engine, wasi)?.instantiate_pre(component)?;
    let format = format::GuestIndices::new(&linked)?;
    let offers = |interface: &str| contract::exports(borrowed(exports), interface);
    let upkeep = if offers("upkeep") { Some(upkeep::GuestIndices::new(&linked)?) } else { None };
    let present = if offers("present") { Some(present::GuestIndices::new(&linked)?) } else { None };
    let retention = if offers("retention") { Some(retention::GuestIndices::new(&linked)?) } else { None };
    let versions = if offers("versions") { Some(versions::GuestIndices::new(&linked)?) } else { None };
    let exports = FormatExports::of(&linked)?;
    Ok(Code { linked, format, exports, upkeep, present, retention, versions })
}

/// Asks the component for its description, which is answered as it was said too, in an instance from which no import can be called.
async fn describe(engine: &Engine, code: &Code, file: &Path) -> Result<(Description, String), String> {
    let memory_bytes = footprint::to_describe(code.linked.component());
    let (limits, name) = (Limits { memory_bytes, ..Limits::default() }, engine::file_name(file));
    let places = Arc::new(Semaphore::new(limits.concurrency));
    let runner = Runner::new(engine.clone(), name, limits, places);
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
        return Err(format!("its description has {} bytes, over {MAX_DESCRIPTION}", text.len()));
    }
    Ok((Description::parse(&text)?, text))
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    names.map(str::to_owned).collect()
}

fn borrowed(names: &[String]) -> impl Iterator<Item = &str> {
    names.iter().map(String::as_str)
}
