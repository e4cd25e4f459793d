//! A loaded plugin and the set of them: the public face of this crate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use packhouse_store::Store;

use crate::answer::{Answer, Failure};
use crate::call::{Call, VersionState};
use crate::config::RuntimeConfig;
use crate::description::{Claim, Description};
use crate::error::{CallError, LoadError};
use crate::request::{Intent, RequestHead};

/// All plugins of this server.
pub struct Runtime {
    plugins: Vec<Arc<Plugin>>,
}

impl Runtime {
    /// Loads every `*.wasm` of the configured folder, compiling in parallel.
    pub async fn load(_config: RuntimeConfig, _store: Store) -> Result<Runtime, LoadError> {
        Err(LoadError::Engine("not built yet".to_owned()))
    }

    /// The plugin of this format.
    pub fn plugin(&self, format: &str) -> Option<Arc<Plugin>> {
        self.plugins.iter().find(|plugin| plugin.description().format == format).cloned()
    }

    /// All, by format.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// Every claim on a root path with its plugin.
    pub fn claims(&self) -> impl Iterator<Item = (&Arc<Plugin>, &Claim)> {
        self.plugins
            .iter()
            .flat_map(|plugin| plugin.description().claims.iter().map(move |claim| (plugin, claim)))
    }
}

/// What a `.wasm` file is, without a server.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The file.
    pub file: PathBuf,
    /// Its description.
    pub description: Description,
    /// What it imports, as `packhouse:format/blobs@0.1.0`.
    pub imports: Vec<String>,
    /// Optional interfaces that it exports, as `packhouse:format/upkeep@0.1.0`.
    pub abilities: Vec<String>,
}

/// Compiles the file, asks it what it is and checks that this host can run it, for `packhouse plugins check FILE`.
pub fn inspect(file: &Path) -> Result<Inspection, LoadError> {
    Err(LoadError::Plugin { file: file.to_owned(), reason: "not built yet".to_owned() })
}

/// One loaded plugin.
pub struct Plugin {
    description: Description,
    file: PathBuf,
}

impl Plugin {
    /// What it says of itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Its own version.
    pub fn version(&self) -> &str {
        &self.description.version
    }

    /// The file it was loaded from.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Bytes of a request's body at most: the operator's limit, else the description's.
    pub fn max_file_bytes(&self) -> Option<u64> {
        self.description.limits.max_file_bytes
    }

    /// Whether [`delete_version`](Plugin::delete_version) and [`mark_version`](Plugin::mark_version) are offered.
    pub fn has_upkeep(&self) -> bool {
        false
    }

    /// Asks what a request would do; `kind` is the repository's. Nothing can be reached from it.
    pub async fn route(
        &self,
        _kind: &str,
        _head: &Arc<RequestHead>,
    ) -> Result<Result<Intent, Failure>, CallError> {
        Err(CallError::Host("not built yet".to_owned()))
    }

    /// Asks whether the request can succeed, as far as can be told without its body. All handles are read-only.
    pub async fn check(&self, _call: Call) -> Result<Result<(), Failure>, CallError> {
        Err(CallError::Host("not built yet".to_owned()))
    }

    /// Answers the request. What was kept is durable when this returns an [`Answer`].
    pub async fn handle(&self, _call: Call) -> Result<Result<Answer, Failure>, CallError> {
        Err(CallError::Host("not built yet".to_owned()))
    }

    /// Removes a version of the call's target.
    pub async fn delete_version(
        &self,
        _call: Call,
        _name: &str,
        _version: &str,
    ) -> Result<Result<(), Failure>, CallError> {
        Err(CallError::NotOffered("upkeep"))
    }

    /// Marks a version of the call's target.
    pub async fn mark_version(
        &self,
        _call: Call,
        _name: &str,
        _version: &str,
        _state: VersionState,
    ) -> Result<Result<(), Failure>, CallError> {
        Err(CallError::NotOffered("upkeep"))
    }
}
