//! Compiles components, or takes what was compiled before from the folder that is kept for it. What has to be compiled is told in the
//! log, since a start waits for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use packhouse_store::Sha256;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::compiled_files::CompiledFiles;
use crate::engine::{self, EngineOptions};
use crate::error::LoadError;

/// What this process compiles at present, by digest: its name, and since when, in ms since 1970.
static UNDER_WAY: Mutex<BTreeMap<String, Compiling>> = Mutex::new(BTreeMap::new());

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Compiler {
    engine: Engine,
    kept: Option<Arc<CompiledFiles>>,
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
    /// With an engine for this, and what it compiles in `cache`, a folder.
    pub(crate) fn new(options: &EngineOptions, cache: Option<&Path>) -> Result<Compiler, LoadError> {
        let engine = engine::engine(options)?;
        let kept = cache.and_then(|folder| CompiledFiles::open(&engine, folder)).map(Arc::new);
        Ok(Compiler { engine, kept })
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

    fn compile_here(&self, name: &str, bytes: &[u8]) -> Result<Compiled, String> {
        let hash = Sha256::of(bytes);
        let digest = hash.digest().to_string();
        let started = Instant::now();
        let kept = self.kept.as_ref().and_then(|kept| kept.load(&self.engine, &digest));
        let (component, compiled) = match kept {
            Some(component) => (component, false),
            None => (self.compile_anew(name, &digest, bytes).map_err(|error| format!("{error:#}"))?, true),
        };
        Ok(Compiled { component, digest: hash, work: Work { took: started.elapsed(), compiled } })
    }

    fn compile_anew(&self, name: &str, digest: &str, bytes: &[u8]) -> wasmtime::Result<Component> {
        let _told = UnderWay::begin(digest, name);
        // Where nothing is kept, everything is compiled at each start, which was said already.
        let Some(kept) = &self.kept else { return Component::from_binary(&self.engine, bytes) };
        tracing::info!(plugin = name, digest, "compiling {name}");
        let started = Instant::now();
        let component = kept.keep(&self.engine, digest, &self.engine.precompile_component(bytes)?)?;
        tracing::info!(
            plugin = name,
            digest,
            took_ms = started.elapsed().as_millis() as u64,
            "compiled {name}"
        );
        Ok(component)
    }
}
