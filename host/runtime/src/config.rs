//! The operator's settings for plugins: their folder, and the limits of each.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::compiler::CompiledFolders;
use crate::compiling_process::CompilingProcess;

/// Location of plugins and their limits.
#[derive(Clone, Debug, Default)]
pub struct RuntimeConfig {
    /// The folder whose `*.wasm` files are loaded at start.
    pub plugins: PathBuf,
    /// Folder for compiled code. Without it, each start compiles everything. The host uses the
    /// folder only if no other account can write to it.
    pub cache: Option<PathBuf>,
    /// Folder with compiled code from the package that installed the plugins. The host only reads
    /// it.
    pub installed: Option<PathBuf>,
    /// The process that compiles code for `cache`. Without it, this process compiles.
    pub compiling: Option<CompilingProcess>,
    /// Limits for every plugin without an entry in `per_plugin`.
    pub default_limits: Limits,
    /// Settings by the plugin's format. A name that no plugin has is an error of
    /// [`Runtime::load`](crate::Runtime::load).
    pub per_plugin: BTreeMap<String, PluginConfig>,
}

impl RuntimeConfig {
    /// Bytes of the largest linear memory that a plugin may have.
    pub(crate) fn most_memory(&self) -> usize {
        // Includes the default, because `describe` always runs under the default limits.
        let default = Limits::default().memory_bytes;
        self.all_limits().map(|limits| limits.memory_bytes).max().unwrap_or(default).max(default)
    }

    /// Highest number of concurrent calls of one plugin.
    pub(crate) fn most_concurrency(&self) -> usize {
        self.all_limits().map(|limits| limits.concurrency).max().unwrap_or(1)
    }

    /// Folders of compiled code, as configured.
    pub(crate) fn compiled(&self) -> CompiledFolders<'_> {
        CompiledFolders { cache: self.cache.as_deref(), installed: self.installed.as_deref() }
    }

    /// Returns true if the operator allows WASI to a plugin of this name.
    pub(crate) fn links_wasi(&self, name: &str) -> bool {
        self.per_plugin.get(name).is_some_and(|own| own.wasi)
    }

    fn all_limits(&self) -> impl Iterator<Item = &Limits> {
        let own = self.per_plugin.values().filter_map(|own| own.limits.as_ref());
        std::iter::once(&self.default_limits).chain(own)
    }
}

#[derive(Clone, Debug, Default)]
pub struct PluginConfig {
    /// Limits that replace the default ones.
    pub limits: Option<Limits>,
    /// True if the operator set the concurrency in `limits`, so that a lower value is worth a
    /// warning.
    pub concurrency_is_set: bool,
    /// Most bytes of a request body, overriding both the plugin's intent and its description.
    pub max_file_bytes: Option<u64>,
    /// Most bytes of a body under the limit `manifest`, if the plugin describes one.
    pub max_manifest_bytes: Option<u64>,
    /// Links WASI 0.2 without files, network, environment or arguments. Guests in JavaScript,
    /// Python or Go need it.
    pub wasi: bool,
}

#[derive(Clone, Debug)]
pub struct Limits {
    /// Linear memory of one instance, all its memories together, in bytes.
    pub memory_bytes: usize,
    /// Time limit of one call, excluding the host's own work on bulk bytes.
    pub call_timeout: Duration,
    /// Time limit of the host's work on bulk bytes in one call: reading them again for a digest,
    /// decoding them, making them durable. The guest requests this work but cannot make it faster,
    /// so `call_timeout` does not include it.
    pub host_work_timeout: Duration,
    /// Bytes that the guest may pass in one host call, or in its result.
    pub hostcall_bytes: usize,
    /// Resource handles that may be open at once.
    pub handles: usize,
    /// Concurrent calls of one plugin. Further calls wait for at most `queue_timeout`. The calls of
    /// all plugins must fit the engine's pool, so with many plugins each gets fewer.
    pub concurrency: usize,
    /// How long a call waits for a free slot before it is refused as busy.
    pub queue_timeout: Duration,
    /// Bytes that one call may write with `writer`, put into transactions and send upstream, all
    /// together.
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
