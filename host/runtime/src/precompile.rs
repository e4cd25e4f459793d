//! Compilation ahead of time, one component after another. It serves a server's next start, or a
//! package, so that the first start after installation compiles nothing.

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
use crate::load::{self, LoadedComponent};
use crate::policy;

/// Compiler for a server with these settings.
pub struct Precompiler {
    compiler: Compiler,
    most: usize,
}

/// A component that is compiled now.
#[derive(Clone, Debug)]
pub struct PrecompiledComponent {
    pub format: String,
    pub version: String,
    /// `sha256:` and the hex digest.
    pub digest: String,
    pub work: Work,
}

impl Precompiler {
    /// Creates a compiler with the same engine options as the server, because compiled code depends
    /// on the engine.
    pub fn new(config: &RuntimeConfig) -> Result<Precompiler, LoadError> {
        let (compiler, _) = load::compiler(config)?;
        Ok(Precompiler { compiler, most: config.most_memory() })
    }

    #[boxed]
    pub async fn file(&self, file: &Path) -> Result<PrecompiledComponent, LoadError> {
        Ok(compiled(load::examine(&self.compiler, file, true, self.most).await?))
    }

    /// Compiles a component of the store, named by its digest.
    #[boxed]
    pub async fn bytes(&self, digest: &str, bytes: Bytes) -> Result<PrecompiledComponent, LoadError> {
        Ok(compiled(load::examine_bytes(&self.compiler, Path::new(digest), bytes, true, self.most).await?))
    }
}

fn compiled(loaded: LoadedComponent) -> PrecompiledComponent {
    let LoadedComponent { description, digest, work, .. } = loaded;
    let (format, version) = (description.format, description.version);
    PrecompiledComponent { format, version, digest: digest.digest().to_string(), work }
}

/// A component that was compiled for packages.
#[derive(Clone, Debug)]
pub struct Precompiled {
    pub file: PathBuf,
    /// Digest of the component, `sha256:` and hex.
    pub digest: String,
    /// True if it was compiled now, false if the code existed.
    pub compiled: bool,
}

/// Compiles every plugin and policy of a folder for the processors that packages target. Writes the
/// code into the folder `into`, and removes any other compiled code from that folder. Everybody may
/// read the folder and its files, and only their owner may write them, whatever the umask is.
/// Blocks.
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
