//! Components compiled ahead, one after another, so that the next start finds them compiled.

use std::path::Path;

use bytes::Bytes;

use crate::compiler::{Compiler, Work};
use crate::config::RuntimeConfig;
use crate::error::LoadError;
use crate::load::{self, Loaded};

/// Compiles for a server of these settings.
pub struct Ahead {
    compiler: Compiler,
    most: usize,
}

/// A component that is compiled now.
#[derive(Clone, Debug)]
pub struct CompiledAhead {
    /// Its format.
    pub format: String,
    /// The plugin's own version.
    pub version: String,
    /// `sha256:` and hex.
    pub digest: String,
    /// What it took.
    pub work: Work,
}

impl Ahead {
    /// With the very engine that a server would have: compiled code is kept by what it was compiled for.
    pub fn new(config: &RuntimeConfig) -> Result<Ahead, LoadError> {
        let (compiler, _) = load::compiler(config)?;
        Ok(Ahead { compiler, most: config.most_memory() })
    }

    /// Compiles a file.
    pub async fn file(&self, file: &Path) -> Result<CompiledAhead, LoadError> {
        Ok(compiled(load::examine(&self.compiler, file, true, self.most).await?))
    }

    /// Compiles a component of the store, by its digest.
    pub async fn bytes(&self, digest: &str, bytes: Bytes) -> Result<CompiledAhead, LoadError> {
        Ok(compiled(load::examine_bytes(&self.compiler, Path::new(digest), bytes, true, self.most).await?))
    }
}

fn compiled(loaded: Loaded) -> CompiledAhead {
    let Loaded { description, digest, work, .. } = loaded;
    let (format, version) = (description.format, description.version);
    CompiledAhead { format, version, digest: digest.digest().to_string(), work }
}
