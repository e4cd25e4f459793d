//! Compiles components, or takes what was compiled before from the folder that is kept for it. What has to be compiled is told in the
//! log, since a start waits for it.

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

/// What this process compiles at present, by digest: its name, and since when, in ms since 1970.
static UNDER_WAY: Mutex<BTreeMap<String, Compiling>> = Mutex::new(BTreeMap::new());

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Compiler {
    engine: Engine,
    kept: Option<Arc<CompiledFiles>>,
    /// What was installed with the program; it comes before what is kept.
    installed: Option<Arc<CompiledFiles>>,
    process: Option<(CompilingProcess, EngineOptions)>,
}

/// Folders of compiled code.
#[derive(Clone, Copy, Default)]
pub(crate) struct CompiledFolders<'a> {
    /// The folder that this program writes.
    pub(crate) cache: Option<&'a Path>,
    /// The folder that was installed with the program, which only [`crate::precompile`] writes.
    pub(crate) installed: Option<&'a Path>,
}

/// A component that is being compiled.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Compiling {
    /// As the log calls it.
    pub name: String,
    /// Since when, in ms since 1970.
    pub since: i64,
}

/// What this process compiles at present.
pub fn compiling() -> Vec<Compiling> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
}

/// One that is compiled as long as this lives.
struct UnderWay(String);

impl UnderWay {
    fn begin(digest: &str, name: &str) -> UnderWay {
        let compiling = Compiling { name: name.to_owned(), since: packhouse_store::now_ms() };
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).insert(digest.to_owned(), compiling);
        UnderWay(digest.to_owned())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}

/// A component, and what it took.
pub(crate) struct Compiled {
    pub(crate) component: Component,
    /// Of the very bytes that it was made of.
    pub(crate) digest: Sha256,
    pub(crate) work: Work,
}

/// What it took to have a component compiled.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    /// The time.
    pub took: Duration,
    /// Whether it was compiled, and not taken from what is kept.
    pub compiled: bool,
}

impl Compiler {
    /// With an engine for this, and what was compiled before in these folders.
    pub(crate) fn new(options: &EngineOptions, folders: CompiledFolders<'_>) -> Result<Compiler, LoadError> {
        let engine = engine::engine(options)?;
        let kept = folders.cache.and_then(|folder| CompiledFiles::open(&engine, folder)).map(Arc::new);
        let installed = match folders.installed.filter(|folder| folder.is_dir()) {
            Some(folder) => CompiledFiles::installed(&engine::baseline()?, folder).map(Arc::new),
            None => None,
        };
        Ok(Compiler { engine, kept, installed, process: None })
    }

    /// What it compiles to keep it is compiled by this process, for the options that it was made with.
    pub(crate) fn in_process_of_its_own(
        self,
        process: Option<&CompilingProcess>,
        options: &EngineOptions,
    ) -> Compiler {
        Compiler { process: process.map(|process| (process.clone(), *options)), ..self }
    }

    /// The engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The component of these bytes, which the log calls by this name. The error says why they are none.
    pub(crate) async fn compile(&self, name: &Path, bytes: Bytes) -> Result<Compiled, String> {
        let (own, name) = (self.clone(), engine::file_name(name));
        let compiled = tokio::task::spawn_blocking(move || own.compile_here(&name, &bytes));
        compiled.await.map_err(|error| format!("compiling it failed: {error}"))?
    }

    /// Keeps what a component that was compiled said of itself, under its digest and each of these names.
    pub(crate) async fn keep_description(&self, digest: &Sha256, names: Vec<String>, text: String) {
        let Some(kept) = self.kept.clone() else { return };
        let digest = digest.digest().to_string();
        let keep = move || {
            kept.descriptions().keep_of(&digest, &text);
            names.iter().for_each(|name| kept.descriptions().keep(name, &text));
        };
        // Where it is not kept it is not known.
        let _ = tokio::task::spawn_blocking(keep).await;
    }

    /// What the component of this format, or of the file of this name, that was compiled last said of itself, if that is known.
    pub(crate) fn last_description(&self, name: &str) -> Option<Arc<Description>> {
        self.kept.as_ref()?.descriptions().find(name)
    }

    /// What the component of this digest said of itself when it was compiled, if that is known.
    pub(crate) async fn description_of(&self, digest: &Sha256) -> Option<Description> {
        let (kept, digest) = (self.kept.clone()?, digest.digest().to_string());
        tokio::task::spawn_blocking(move || kept.descriptions().find_of(&digest)).await.ok()?
    }

    /// The component in this file, if it was compiled before. Of a file that cannot be read, none is known.
    pub(crate) async fn kept_of(&self, file: &Path) -> Result<Option<Compiled>, String> {
        let (own, file) = (self.clone(), file.to_owned());
        let kept = tokio::task::spawn_blocking(move || own.kept_here(&component_digest(&file).ok()?));
        kept.await.map_err(|error| format!("loading what was compiled of it failed: {error}"))
    }

    /// The component of these bytes, if it was compiled before.
    pub(crate) async fn kept(&self, bytes: Bytes) -> Result<Option<Compiled>, String> {
        let own = self.clone();
        let kept = tokio::task::spawn_blocking(move || own.kept_here(&Sha256::of(&bytes)));
        kept.await.map_err(|error| format!("loading what was compiled of it failed: {error}"))
    }

    fn kept_here(&self, hash: &Sha256) -> Option<Compiled> {
        let started = Instant::now();
        let digest = hash.digest().to_string();
        let installed = self.installed.as_ref().and_then(|files| files.look(&self.engine, &digest));
        let kept = || self.kept.as_ref()?.load(&self.engine, &digest);
        let component = installed.or_else(kept)?;
        let work = Work { took: started.elapsed(), compiled: false };
        Some(Compiled { component, digest: *hash, work })
    }

    fn compile_here(&self, name: &str, bytes: &[u8]) -> Result<Compiled, String> {
        let hash = Sha256::of(bytes);
        if let Some(kept) = self.kept_here(&hash) {
            return Ok(kept);
        }
        let started = Instant::now();
        let component = self.compile_anew(name, &hash.digest().to_string(), bytes);
        let component = component.map_err(|error| format!("{error:#}"))?;
        Ok(Compiled { component, digest: hash, work: Work { took: started.elapsed(), compiled: true } })
    }

    fn compile_anew(&self, name: &str, digest: &str, bytes: &[u8]) -> wasmtime::Result<Component> {
        let _told = UnderWay::begin(digest, name);
        // Where nothing is kept, everything is compiled at each start, which was said already.
        let Some(kept) = &self.kept else {
            return on_own_threads(|| Component::from_binary(&self.engine, bytes));
        };
        tracing::info!(plugin = name, digest, "compiling {name}");
        let started = Instant::now();
        let component = match self.compile_apart(kept, digest, bytes)? {
            Some(component) => component,
            None => {
                let code = on_own_threads(|| self.engine.precompile_component(bytes))?;
                kept.keep(&self.engine, digest, &code)?
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

    /// Compiles in a process of its own; none where there is none, or where it was of no use.
    fn compile_apart(
        &self,
        kept: &CompiledFiles,
        digest: &str,
        bytes: &[u8],
    ) -> wasmtime::Result<Option<Component>> {
        let Some((process, options)) = &self.process else { return Ok(None) };
        let compile = |file: &File| process.compile(*options, bytes, file);
        match kept.keep_written(&self.engine, digest, compile) {
            Ok(component) => Ok(component),
            Err(NotCompiled::Refused(why)) => Err(wasmtime::Error::msg(why)),
            Err(NotCompiled::Failed(why)) => {
                tracing::warn!(digest, why, "the process that compiles failed, so this one does");
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_in(folder: &tempfile::TempDir) -> CompiledFolders<'_> {
        CompiledFolders { cache: Some(folder.path()), installed: None }
    }

    #[tokio::test]
    async fn where_the_process_that_compiles_is_of_no_use_this_one_does() {
        let component = Bytes::from(wat::parse_str("(component (core module (func)))").unwrap());
        let options = EngineOptions { pool: None, memory_bytes: 64 << 10 };
        // One that is not there, one that fails, and one that says that all went well and wrote nothing.
        for program in ["/nowhere/packhouse", "false", "true"] {
            let folder = tempfile::tempdir().unwrap();
            let process = CompilingProcess { program: program.into(), command: "compile-component" };
            let compiler = Compiler::new(&options, kept_in(&folder)).unwrap();
            let compiler = compiler.in_process_of_its_own(Some(&process), &options);
            let compiled = compiler.compile(Path::new("a.wasm"), component.clone()).await.unwrap();
            assert!(compiled.work.compiled, "{program}");
            assert!(compiler.kept(component.clone()).await.unwrap().is_some(), "{program}");
        }
    }

    #[tokio::test]
    async fn what_the_process_refuses_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("refuse");
        std::fs::write(&script, "#!/bin/sh\necho it is no component >&2\nexit 3\n").unwrap();
        std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let options = EngineOptions { pool: None, memory_bytes: 64 << 10 };
        let process = CompilingProcess { program: script, command: "compile-component" };
        let compiler = Compiler::new(&options, kept_in(&folder)).unwrap();
        let compiler = compiler.in_process_of_its_own(Some(&process), &options);
        let refused = compiler.compile(Path::new("a.wasm"), Bytes::from_static(b"x")).await;
        assert_eq!(refused.map(drop), Err("it is no component".to_owned()));
    }
}
