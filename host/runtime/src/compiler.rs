//! Compiles components, or loads earlier compiled code from its cache. The log names each
//! compilation, because a start waits for it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use packhouse_store::Sha256;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compiled_files::CompiledFiles;
use crate::compiling_process::{CompilingProcess, NotCompiled, on_own_threads};
use crate::component_file::component_digest;
use crate::description::Description;
use crate::engine::{self, EngineOptions};
use crate::error::LoadError;

/// Components that this process is compiling, by digest: name and start time in ms since 1970.
static UNDER_WAY: Mutex<BTreeMap<String, Compiling>> = Mutex::new(BTreeMap::new());

/// Compiler with its cache. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Compiler {
    engine: Engine,
    cache: Option<Arc<CompiledFiles>>,
    /// Code that was installed with the program. It takes precedence over the cache.
    installed: Option<Arc<CompiledFiles>>,
    process: Option<(CompilingProcess, EngineOptions)>,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct CompiledFolders<'a> {
    /// The folder that this program writes.
    pub(crate) cache: Option<&'a Path>,
    /// The folder that was installed with the program. Only [`crate::precompile()`] writes it.
    pub(crate) installed: Option<&'a Path>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Compiling {
    /// Name of the component in the log.
    pub name: String,
    /// Start time in ms since 1970.
    pub since: i64,
}

/// Returns the components that this process is compiling.
pub fn compiling() -> Vec<Compiling> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
}

/// Guard that lists a component in `UNDER_WAY` until it is dropped.
struct CompilingGuard(String);

impl CompilingGuard {
    fn begin(digest: &str, name: &str) -> CompilingGuard {
        let compiling = Compiling { name: name.to_owned(), since: packhouse_store::now_ms() };
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).insert(digest.to_owned(), compiling);
        CompilingGuard(digest.to_owned())
    }
}

impl Drop for CompilingGuard {
    fn drop(&mut self) {
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// A loaded component with its digest and cost.
pub(crate) struct Compiled {
    pub(crate) component: Component,
    /// Digest of exactly the bytes that it was compiled from.
    pub(crate) digest: Sha256,
    pub(crate) work: Work,
}

/// Cost of obtaining a compiled component.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub took: Duration,
    /// True if it was compiled, false if it came from the cache.
    pub compiled: bool,
}

impl Compiler {
    /// Creates a compiler with an engine for these options, and with the code compiled earlier in
    /// these folders.
    pub(crate) fn new(options: &EngineOptions, folders: CompiledFolders<'_>) -> Result<Compiler, LoadError> {
        let engine = engine::engine(options)?;
        let cache = folders.cache.and_then(|folder| CompiledFiles::open(&engine, folder)).map(Arc::new);
        let installed = match folders.installed.filter(|folder| folder.is_dir()) {
            Some(folder) => CompiledFiles::installed(&engine::baseline()?, folder).map(Arc::new),
            None => None,
        };
        Ok(Compiler { engine, cache, installed, process: None })
    }

    /// Lets `process` compile the code for the cache. Pass the same `options` as to
    /// [`Compiler::new`].
    pub(crate) fn in_separate_process(
        self,
        process: Option<&CompilingProcess>,
        options: &EngineOptions,
    ) -> Compiler {
        Compiler { process: process.map(|process| (process.clone(), *options)), ..self }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Compiles the component in these bytes; the log uses this name. The error says why the bytes
    /// are not a component.
    pub(crate) async fn compile(&self, name: &Path, bytes: Bytes) -> Result<Compiled, String> {
        let (own, name) = (self.clone(), engine::file_name(name));
        let compiled = tokio::task::spawn_blocking(move || own.compile_here(&name, &bytes));
        compiled.await.map_err(|error| format!("compiling it failed: {error}"))?
    }

    /// Caches the description of a compiled component, under its digest and each of these names.
    pub(crate) async fn cache_description(&self, digest: &Sha256, names: Vec<String>, text: String) {
        let Some(cache) = self.cache.clone() else { return };
        let digest = digest.digest().to_string();
        let keep = move || {
            cache.descriptions().store_for_digest(&digest, &text);
            names.iter().for_each(|name| cache.descriptions().store(name, &text));
        };
        // If caching fails, the next start only asks the component again.
        let _ = tokio::task::spawn_blocking(keep).await;
    }

    /// Returns the last cached description for this format or file name.
    pub(crate) fn last_description(&self, name: &str) -> Option<Arc<Description>> {
        self.cache.as_ref()?.descriptions().find(name)
    }

    /// Returns the cached description of the component with this digest.
    pub(crate) async fn description_of(&self, digest: &Sha256) -> Option<Description> {
        let (cache, digest) = (self.cache.clone()?, digest.digest().to_string());
        tokio::task::spawn_blocking(move || cache.descriptions().find_by_digest(&digest)).await.ok()?
    }

    /// Loads the component in this file, if it was compiled before. Returns none for a file that
    /// cannot be read.
    pub(crate) async fn load_cached_file(&self, file: &Path) -> Result<Option<Compiled>, String> {
        let (own, file) = (self.clone(), file.to_owned());
        let cached =
            tokio::task::spawn_blocking(move || own.load_cached_here(&component_digest(&file).ok()?));
        cached.await.map_err(|error| format!("loading its compiled code failed: {error}"))
    }

    /// Loads the component of these bytes, if it was compiled before.
    pub(crate) async fn load_cached(&self, bytes: Bytes) -> Result<Option<Compiled>, String> {
        let own = self.clone();
        let cached = tokio::task::spawn_blocking(move || own.load_cached_here(&Sha256::of(&bytes)));
        cached.await.map_err(|error| format!("loading its compiled code failed: {error}"))
    }

    fn load_cached_here(&self, hash: &Sha256) -> Option<Compiled> {
        let started = Instant::now();
        let digest = hash.digest().to_string();
        let installed = self.installed.as_ref().and_then(|files| files.load_untouched(&self.engine, &digest));
        let cached = || self.cache.as_ref()?.load(&self.engine, &digest);
        let component = installed.or_else(cached)?;
        let work = Work { took: started.elapsed(), compiled: false };
        Some(Compiled { component, digest: *hash, work })
    }

    fn compile_here(&self, name: &str, bytes: &[u8]) -> Result<Compiled, String> {
        let hash = Sha256::of(bytes);
        if let Some(cached) = self.load_cached_here(&hash) {
            return Ok(cached);
        }
        let started = Instant::now();
        let component = self.compile_uncached(name, &hash.digest().to_string(), bytes);
        let component = component.map_err(|error| format!("{error:#}"))?;
        Ok(Compiled { component, digest: hash, work: Work { took: started.elapsed(), compiled: true } })
    }

    fn compile_uncached(&self, name: &str, digest: &str, bytes: &[u8]) -> wasmtime::Result<Component> {
        let _under_way = CompilingGuard::begin(digest, name);
        // Without a cache, every start compiles everything. `new` has logged that.
        let Some(cache) = &self.cache else {
            return on_own_threads(|| Component::from_binary(&self.engine, bytes));
        };
        tracing::info!(plugin = name, digest, "compiling {name}");
        let started = Instant::now();
        let component = match self.compile_apart(cache, digest, bytes)? {
            Some(component) => component,
            None => {
                let code = on_own_threads(|| self.engine.precompile_component(bytes))?;
                cache.store(&self.engine, digest, &code)?
            }
        };
        tracing::info!(
            plugin = name,
            digest,
            took_ms = started.elapsed().as_millis() as u64,
            "compiled {name}"
        );
        Ok(component)
    }

    /// Compiles in a separate process. Returns none if no process is configured, or if the process
    /// failed.
    fn compile_apart(
        &self,
        cache: &CompiledFiles,
        digest: &str,
        bytes: &[u8],
    ) -> wasmtime::Result<Option<Component>> {
        let Some((process, options)) = &self.process else { return Ok(None) };
        let compile = |file: &File| process.compile(*options, bytes, file);
        match cache.store_written(&self.engine, digest, compile) {
            Ok(component) => Ok(component),
            Err(NotCompiled::Refused(why)) => Err(wasmtime::Error::msg(why)),
            Err(NotCompiled::Failed(why)) => {
                tracing::warn!(digest, why, "compiler process failed; compiling in this process");
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders_in(folder: &tempfile::TempDir) -> CompiledFolders<'_> {
        CompiledFolders { cache: Some(folder.path()), installed: None }
    }

    #[tokio::test]
    async fn a_failing_compiler_process_is_replaced_by_this_process() {
        let component = Bytes::from(wat::parse_str("(component (core module (func)))").unwrap());
        let options = EngineOptions { pool: None, memory_bytes: 64 << 10 };
        // One program that does not exist, one that fails, and one that succeeds without writing
        // anything.
        for program in ["/nowhere/packhouse", "false", "true"] {
            let folder = tempfile::tempdir().unwrap();
            let process = CompilingProcess { program: program.into(), command: "compile-component" };
            let compiler = Compiler::new(&options, folders_in(&folder)).unwrap();
            let compiler = compiler.in_separate_process(Some(&process), &options);
            let compiled = compiler.compile(Path::new("a.wasm"), component.clone()).await.unwrap();
            assert!(compiled.work.compiled, "{program}");
            assert!(compiler.load_cached(component.clone()).await.unwrap().is_some(), "{program}");
        }
    }

    #[tokio::test]
    async fn a_component_that_the_compiler_process_refuses_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("refuse");
        std::fs::write(&script, "#!/bin/sh\necho it is not a component >&2\nexit 3\n").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let options = EngineOptions { pool: None, memory_bytes: 64 << 10 };
        let process = CompilingProcess { program: script, command: "compile-component" };
        let compiler = Compiler::new(&options, folders_in(&folder)).unwrap();
        let compiler = compiler.in_separate_process(Some(&process), &options);
        let refused = compiler.compile(Path::new("a.wasm"), Bytes::from_static(b"x")).await;
        assert_eq!(refused.map(drop), Err("it is not a component".to_owned()));
    }
}
