//! What the operator says about plugins: where they are, and how much each may use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::compiler::CompiledFolders;
use crate::compiling_process::CompilingProcess;

/// Where plugins come from and what bounds them.
#[derive(Clone, Debug, Default)]
pub struct RuntimeConfig {
    /// The folder whose `*.wasm` files are loaded at start.
    pub plugins: PathBuf,
    /// Folder for compiled code; without it everything is compiled at each start. It is used only where no other account can write to it.
    pub cache: Option<PathBuf>,
    /// Folder with the compiled code of the package that brought the plugins; it is only read.
    pub installed: Option<PathBuf>,
    /// What compiles what is kept in `cache`; without it this process does.
    pub compiling: Option<CompilingProcess>,
    /// For every plugin that `per_plugin` says nothing else of.
    pub default_limits: Limits,
    /// By the plugin's format. A name that no plugin has is an error of [`Runtime::load`](crate::Runtime::load).
    pub per_plugin: BTreeMap<String, PluginConfig>,
}

impl RuntimeConfig {
    /// Bytes of the largest linear memory that a plugin may have.
    pub(crate) fn most_memory(&self) -> usize {
        // Asking for a description runs under the default limits, whatever is configured.
        let default = Limits::default().memory_bytes;
        self.all_limits().map(|limits| limits.memory_bytes).max().unwrap_or(default).max(default)
    }

    /// Calls of one plugin at one time, at most.
    pub(crate) fn most_concurrency(&self) -> usize {
        self.all_limits().map(|limits| limits.concurrency).max().unwrap_or(1)
    }

    /// Where compiled code lies.
    pub(crate) fn compiled(&self) -> CompiledFolders<'_> {
        CompiledFolders { cache: self.cache.as_deref(), installed: self.installed.as_deref() }
    }

    /// Whether the operator allows WASI to a plugin of this name.
    pub(crate) fn links_wasi(&self, name: &str) -> bool {
        self.per_plugin.get(name).is_some_and(|own| own.wasi)
    }

    fn all_limits(&self) -> impl Iterator<Item = &Limits> {
        let own = self.per_plugin.values().filter_map(|own| own.limits.as_ref());
        std::iter::once(&self.default_limits).chain(own)
    }
}

/// What differs for one plugin.
#[derive(Clone, Debug, Default)]
pub struct PluginConfig {
    /// In place of the default limits.
    pub limits: Option<Limits>,
    /// Whether somebody asked for the concurrency in `limits`, so that having less is worth a warning.
    pub concurrency_is_set: bool,
    /// Bytes of a request's body at most, whatever the plugin's intent asks for; also in place of its description's.
    pub max_file_bytes: Option<u64>,
    /// Bytes of a body under the limit `manifest` at most, where the plugin describes that.
    pub max_manifest_bytes: Option<u64>,
    /// Links WASI 0.2 with no files, network, environment or arguments, as guests in JavaScript, Python or Go need it.
    pub wasi: bool,
}

/// Bounds of one call.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Linear memory of one instance, all its memories together, in bytes.
    pub memory_bytes: usize,
    /// How long one call may take, but for the host's own work on bulk bytes.
    pub call_timeout: Duration,
    /// How long the host may work on bulk bytes in one call: reading them again for a digest, decoding them, making them durable.
    /// The guest asks for it but cannot make it faster, so it is not part of `call_timeout`.
    pub host_work_timeout: Duration,
    /// Bytes that the guest may hand over in one host call, or in its result.
    pub hostcall_bytes: usize,
    /// Resource handles that are open at one time.
    pub handles: usize,
    /// Calls of one plugin at one time; more wait, at most `queue_timeout`. Those of all plugins fit the engine's pool, so that of
    /// many plugins each has fewer.
    pub concurrency: usize,
    /// How long a call waits for its turn before it is refused as busy.
    pub queue_timeout: Duration,
    /// Bytes that one call may write by `writer`, put into transactions and send upstream, all together.
    pub written_bytes: u64,
    /// Bytes that the host may decode for one call, all together.
    pub decoded_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            memory_bytes: 64 << 20,
            call_timeout: Duration::from_secs(10),
            host_work_timeout: Duration::from_secs(600),
            hostcall_bytes: 8 << 20,
            handles: 1024,
            concurrency: 250,
            queue_timeout: Duration::from_secs(2),
            written_bytes: 256 << 20,
            decoded_bytes: 16 << 30,
        }
    }
}
