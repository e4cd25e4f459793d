//! Compiles components, or takes what was compiled before from the folder that is kept for it. What has to be compiled is told in the
//! log, since a start waits for it.
//!
//! wasmtime keeps the compiled code by itself and cannot be asked whether it has some. So an empty file beside it marks each component
//! that this engine compiled once.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use packhouse_store::Sha256;
use wasmtime::component::Component;
use wasmtime::{Cache, Engine};

use crate::engine::{self, EngineOptions};
use crate::error::LoadError;

/// What this process compiles at present, by digest: its name, and since when, in ms since 1970.
static UNDER_WAY: Mutex<BTreeMap<String, Compiling>> = Mutex::new(BTreeMap::new());

/// The folder of the marks.
const MARKS: &str = "compiled-before";
/// As many marks are kept; then those of other engines go.
const MARKS_AT_MOST: usize = 500;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Compiler {
    engine: Engine,
    kept: Option<Arc<Kept>>,
}

/// What is kept of what was compiled.
struct Kept {
    cache: Cache,
    folder: PathBuf,
    /// Of this engine's marks: what another one compiled is of no use to it.
    prefix: String,
}

impl Kept {
    fn new(engine: &Engine, cache: Cache, folder: &Path) -> Kept {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        // Beside wasmtime's folder, from which it removes what it does not know.
        Kept { cache, folder: folder.with_file_name(MARKS), prefix: format!("{:016x}", hasher.finish()) }
    }

    fn mark(&self, digest: &str) -> PathBuf {
        self.folder.join(format!("{}-{}", self.prefix, digest.replace(':', "-")))
    }

    /// Marks a component. Without marks, more is told to be compiled than is; so what goes wrong here is no fault.
    fn set(&self, digest: &str) {
        let _ = fs::create_dir_all(&self.folder);
        let all: Vec<PathBuf> =
            fs::read_dir(&self.folder).into_iter().flatten().flatten().map(|mark| mark.path()).collect();
        let own = |mark: &PathBuf| engine::file_name(mark).starts_with(&self.prefix);
        if all.len() >= MARKS_AT_MOST {
            all.iter().filter(|mark| !own(mark)).for_each(|mark| drop(fs::remove_file(mark)));
        }
        let _ = fs::write(self.mark(digest), "");
    }
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
    /// With an engine for this.
    pub(crate) fn new(options: &EngineOptions<'_>) -> Result<Compiler, LoadError> {
        let (engine, cache) = engine::engine(options)?;
        let kept =
            cache.zip(options.cache).map(|(cache, folder)| Arc::new(Kept::new(&engine, cache, folder)));
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
        let marked = self.kept.as_ref().is_some_and(|kept| kept.mark(&digest).exists());
        // Where nothing is kept, everything is compiled at each start, which was said already.
        if !marked && self.kept.is_some() {
            tracing::info!(plugin = name, digest, "compiling {name}");
        }
        let (started, before) = (Instant::now(), self.misses());
        let _told = (!marked).then(|| UnderWay::begin(&digest, name));
        let component = Component::from_binary(&self.engine, bytes).map_err(|error| format!("{error:#}"))?;
        let work = Work { took: started.elapsed(), compiled: !marked || self.misses() > before };
        if let Some(kept) = &self.kept
            && !marked
        {
            kept.set(&digest);
            tracing::info!(plugin = name, digest, took_ms = work.took.as_millis() as u64, "compiled {name}");
        }
        Ok(Compiled { component, digest: hash, work })
    }

    fn misses(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.cache.cache_misses())
    }
}
