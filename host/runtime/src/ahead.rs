//! Components compiled ahead, one after another: for the next start of one server, or for a package, whose starts then compile nothing.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use packhouse_store::Sha256;

use crate::boxed;
use crate::compiled_files;
use crate::compiler::{Compiler, Work};
use crate::compiling_process::on_own_threads;
use crate::component_file::{component_files, read_component};
use crate::config::RuntimeConfig;
use crate::engine;
use crate::error::LoadError;
use crate::load::{self, Loaded};
use crate::policy;

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
    #[boxed]
    pub async fn file(&self, file: &Path) -> Result<CompiledAhead, LoadError> {
        Ok(compiled(load::examine(&self.compiler, file, true, self.most).await?))
    }

    /// Compiles a component of the store, by its digest.
    #[boxed]
    pub async fn bytes(&self, digest: &str, bytes: Bytes) -> Result<CompiledAhead, LoadError> {
        Ok(compiled(load::examine_bytes(&self.compiler, Path::new(digest), bytes, true, self.most).await?))
    }
}

fn compiled(loaded: Loaded) -> CompiledAhead {
    let Loaded { description, digest, work, .. } = loaded;
    let (format, version) = (description.format, description.version);
    CompiledAhead { format, version, digest: digest.digest().to_string(), work }
}

/// A component that was compiled for packages.
#[derive(Clone, Debug)]
pub struct Precompiled {
    /// The component's file.
    pub file: PathBuf,
    /// `sha256:` and hex, of the component.
    pub digest: String,
    /// Whether it was compiled, and not there from an earlier time.
    pub compiled: bool,
}

/// Compiles every plugin and policy of a folder for the processors that packages are made for, and puts the code into another folder,
/// which then holds nothing else that was compiled. The folder and its files can be read by everybody and written by their owner alone,
/// whatever the umask is. Blocks.
pub fn precompile(plugins: &Path, into: &Path) -> Result<Vec<Precompiled>, LoadError> {
    let failed = |source| LoadError::Folder { folder: into.to_owned(), source };
    let unreadable = |source| LoadError::Folder { folder: plugins.to_owned(), source };
    let engine = engine::baseline()?;
    DirBuilder::new().recursive(true).mode(0o755).create(into).map_err(failed)?;
    fs::set_permissions(into, Permissions::from_mode(0o755)).map_err(failed)?;
    let mut files = component_files(plugins).map_err(unreadable)?;
    // A package may have no policies.
    files.extend(component_files(&plugins.join(policy::FOLDER)).unwrap_or_default());
    let mut done = Vec::with_capacity(files.len());
    for file in files {
        let refuse = |reason: String| LoadError::Plugin { file: file.clone(), reason };
        let bytes = read_component(&file).map_err(|error| refuse(error.to_string()))?;
        load::check_layer(&bytes).map_err(refuse)?;
        let digest = Sha256::of(&bytes).digest().to_string();
        let compile = || on_own_threads(|| engine.precompile_component(&bytes));
        let compiled = compiled_files::install(&engine, into, &digest, compile);
        let compiled = compiled.map_err(|error| refuse(format!("{error:#}")))?;
        done.push(Precompiled { file, digest, compiled });
    }
    let digests: Vec<String> = done.iter().map(|one| one.digest.clone()).collect();
    compiled_files::remove_others(&engine, into, &digests).map_err(failed)?;
    Ok(done)
}
