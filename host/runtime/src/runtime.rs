//! All plugins of a server, and a look at one file without a server.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use packhouse_store::Store;

use crate::config::{Limits, RuntimeConfig};
use crate::description::{Claim, Description};
use crate::engine::{self, EngineOptions};
use crate::error::LoadError;
use crate::load;
use crate::plugin::Plugin;

/// All plugins of this server.
pub struct Runtime {
    plugins: Vec<Arc<Plugin>>,
    refused: Vec<LoadError>,
}

/// The plugins of a folder, compiled, before they have a store.
pub struct Examined {
    config: RuntimeConfig,
    found: load::Found,
}

impl Examined {
    /// The plugins over this store. What cannot be one is left out and told by [`Runtime::refused`]; a configured plugin of which there
    /// is no file is an error.
    pub fn with(self, store: &Store) -> Result<Runtime, LoadError> {
        let load::Plugins { plugins, refused } = load::plugins(self.found, &self.config, store)?;
        Ok(Runtime { plugins, refused })
    }
}

impl Runtime {
    /// Loads every `*.wasm` of the configured folder, compiling in parallel. One that cannot be loaded is an error that names the
    /// file and says what was wanted and what was found; so are two of one format, and a configured plugin that is not there.
    pub async fn load(config: RuntimeConfig, store: Store) -> Result<Runtime, LoadError> {
        let mut runtime = Runtime::examine(config).await?.with(&store)?;
        match runtime.refused.pop() {
            Some(refused) => Err(refused),
            None => Ok(runtime),
        }
    }

    /// The part of [`Runtime::load`] that needs no store, so that one can be opened meanwhile.
    pub async fn examine(config: RuntimeConfig) -> Result<Examined, LoadError> {
        Ok(Examined { found: load::find(&config).await?, config })
    }

    /// The plugin of this format.
    pub fn plugin(&self, format: &str) -> Option<Arc<Plugin>> {
        self.plugins.iter().find(|plugin| plugin.description().format == format).cloned()
    }

    /// Why files of the folder are no plugins of this server.
    pub fn refused(&self) -> &[LoadError] {
        &self.refused
    }

    /// All, sorted by format.
    pub fn plugins(&self) -> &[Arc<Plugin>] {
        &self.plugins
    }

    /// The formats of which there are tokens by their descriptions, besides those that there are in any case.
    pub fn own_tokens(&self) -> Vec<&str> {
        let described = self.plugins.iter().map(|plugin| plugin.description());
        described.filter(|description| description.own_tokens).map(|own| own.format.as_str()).collect()
    }

    /// Every claim on a root path with its plugin.
    pub fn claims(&self) -> impl Iterator<Item = (&Arc<Plugin>, &Claim)> {
        self.plugins
            .iter()
            .flat_map(|plugin| plugin.description.claims.iter().map(move |claim| (plugin, claim)))
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

/// Compiles the file, asks it what it is and checks that this host can run it, for `packhouse plugins check FILE`. WASI is linked:
/// [`Inspection::imports`] tells whether the plugin needs it. Blocks. `Plugin` says why it cannot be run.
pub fn inspect(file: &Path) -> Result<Inspection, LoadError> {
    // On a thread of its own, so that it can be called from within an asynchronous program too.
    let inspecting = std::thread::scope(|scope| scope.spawn(|| inspect_here(file)).join());
    inspecting.unwrap_or_else(|_| Err(LoadError::Engine("inspecting the file ended in a panic".to_owned())))
}

fn inspect_here(file: &Path) -> Result<Inspection, LoadError> {
    let memory_bytes = Limits::default().memory_bytes;
    let engine = engine::engine(&EngineOptions { pool: None, memory_bytes, cache: None })?;
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let executor = executor.map_err(|error| LoadError::Engine(error.to_string()))?;
    let loaded = executor.block_on(load::examine(&engine, file, true))?;
    Ok(Inspection {
        file: file.to_owned(),
        description: loaded.description,
        imports: loaded.imports,
        abilities: loaded.abilities,
    })
}
