//! The one Wasm engine of the program, and the thread that advances its epochs.
//!
//! Guests run on asynchronous fibers. Guest code is synchronous. When a host function waits for
//! storage, the engine parks the fiber, and its thread serves another request. Running Wasm on a
//! blocked worker thread would save about 2 µs a call. But then a slow database would take threads
//! away from requests that do not need the database, and nothing could end a waiting call. With
//! fibers, the wall-clock timeout is a timer next to the call: when it fires, the fiber is dropped,
//! wherever it is. No timer can interrupt the guest's own code. So epochs make it check the call's
//! clock every 10 ms and let other tasks run.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, Memory, MemoryType, PoolingAllocationConfig, Store,
};

use crate::component_file::component_name;
use crate::error::LoadError;

/// Interval at which a running guest checks its clock.
const TICK: Duration = Duration::from_millis(10);
/// Address space that must be free for the pool to be used: 4 GiB for each instance.
const POOL_ADDRESS_BITS: u32 = 44;
/// Most instances that fit into that space. With default settings, this number gives ten plugins,
/// and two that are added later, their full concurrency.
pub(crate) const MAX_POOL: usize = 3_000;
/// Formats that may be added while the server runs. The pool reserves space for them.
const LATER_FORMATS: usize = 2;
/// Instances for policies, which run while a plugin's call waits for them.
pub(crate) const POLICY_SLOTS: usize = 32;
/// Instances for calls that compare versions. Another call may hold an instance while it waits for
/// such a comparison. So comparisons have their own instances; they are short and wait for nothing.
pub(crate) const COMPARISON_SLOTS: usize = 2;
/// Bytes of a slot's memory that the engine clears in place instead of returning them to the
/// system. A call of a small guest touches fewer bytes. Measured: a fresh instance takes 23 µs with
/// clearing in place, and 44 µs without.
const KEEP_RESIDENT: usize = 2 << 20;
/// Most warm slots for each core. A warm slot was used before and is free; its memory stays
/// allocated. Above this number, a call takes a warm slot of another component instead of a new
/// one. The number is enough for concurrent calls of four formats, each in its own slot. With 64
/// for two cores, reads of all kinds left 150 warm slots behind.
const WARM_SLOTS_PER_CORE: usize = 8;
/// Concurrent calls of a plugin for each core, counting only calls that wait at most for look-ups.
/// More calls would not be faster, and would leave more slot memory behind. With 990 clients of a
/// cold server, 350 to 460 slots of a hundred KiB each were left.
const TURNS_PER_CORE: usize = 16;
/// Core instances, tables and memories of one component. The limit is enough for one module, and
/// for an interpreter with its libraries: componentize-py makes 38 instances if it stubs WASI.
pub(crate) const MAX_CORE_INSTANCES: usize = 48;
pub(crate) const MAX_TABLES: usize = 16;
pub(crate) const MAX_MEMORIES: usize = 4;
/// Stack of a guest, and of a guest with the host functions that it calls.
const GUEST_STACK: usize = 512 << 10;
const FIBER_STACK: usize = 2 << 20;

/// The processor whose instructions packaged code uses, by Cranelift's name: x86-64-v3, which
/// servers have had since 2013. None stands for the instructions that every processor of the
/// architecture has.
const BASELINE: Option<&str> = if cfg!(target_arch = "x86_64") { Some("haswell") } else { None };

#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Concurrent instances in the pool: at most 3,000, plus the ones reserved for policies and
    /// comparisons. None means that the engine allocates each instance separately.
    pub pool: Option<usize>,
    /// Largest linear memory, in bytes.
    pub memory_bytes: usize,
}

/// Creates the engine and starts its ticker, which ends with the engine.
pub(crate) fn engine(options: &EngineOptions) -> Result<Engine, LoadError> {
    let mut config = base();
    if let Some(size) = options.pool {
        if pool_fits() {
            tracing::info!(instances = size, "instances are pooled");
            config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(size, options.memory_bytes)));
        } else {
            tracing::warn!(
                "instances are allocated one by one, which is slower: cannot reserve 2^{POOL_ADDRESS_BITS} \
                 bytes of address space; check `ulimit -v`"
            );
        }
    }
    let engine = Engine::new(&config).map_err(|error| LoadError::Engine(format!("{error:#}")))?;
    start_ticker(&engine)?;
    Ok(engine)
}

/// Base configuration: Cranelift only, wasmtime's defaults for traps, and no Wasm features that
/// plugins do not need.
pub(crate) fn base() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .concurrency_support(false)
        .wasm_memory64(false)
        .wasm_multi_memory(false)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(FIBER_STACK);
    config
}

/// Engine that compiles for packages: for every processor with the instructions of [`BASELINE`],
/// not for this machine. This engine never runs code.
pub(crate) fn baseline() -> Result<Engine, LoadError> {
    let failed = |error: wasmtime::Error| LoadError::Engine(format!("{error:#}"));
    let mut config = base();
    config.target(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH)).map_err(failed)?;
    if let Some(instructions) = BASELINE {
        #[expect(unsafe_code, reason = "wasmtime has no safe function to name a processor")]
        // SAFETY: this only names a set of instructions. wasmtime refuses to load the code on a
        // processor that lacks one of them.
        unsafe {
            config.cranelift_flag_enable(instructions);
        }
    }
    Engine::new(&config).map_err(failed)
}

fn pool(size: usize, memory_bytes: usize) -> PoolingAllocationConfig {
    let count = u32::try_from(size.min(MAX_POOL + POLICY_SLOTS + COMPARISON_SLOTS)).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(count)
        // This is only an upper bound. An instance takes its memory when it is created.
        .total_core_instances(count.saturating_mul(MAX_CORE_INSTANCES as u32))
        .total_memories(count)
        .total_tables(count.saturating_mul(4))
        .total_stacks(count)
        .max_core_instances_per_component(MAX_CORE_INSTANCES as u32)
        .max_tables_per_component(MAX_TABLES as u32)
        .max_memories_per_component(MAX_MEMORIES as u32)
        .max_memory_size(memory_bytes)
        .max_unused_warm_slots(warm_slots())
        .linear_memory_keep_resident(KEEP_RESIDENT)
        .table_keep_resident(64 << 10)
        .async_stack_keep_resident(64 << 10)
        .pagemap_scan(Enabled::Auto);
    pool
}

fn warm_slots() -> u32 {
    u32::try_from(cores() * WARM_SLOTS_PER_CORE).unwrap_or(u32::MAX)
}

/// Number of concurrent calls of a plugin that wait only for look-ups.
pub(crate) fn turns() -> usize {
    cores() * TURNS_PER_CORE
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Checks that the pool's address space can be reserved, by reserving it.
fn pool_fits() -> bool {
    let mut config = Config::new();
    config.wasm_memory64(true).memory_reservation(1 << POOL_ADDRESS_BITS);
    let Ok(engine) = Engine::new(&config) else { return false };
    let mut store = Store::new(&engine, ());
    // The size is in pages of 64 KiB.
    let memory = MemoryType::new64(0, Some(1 << (POOL_ADDRESS_BITS - 16)));
    Memory::new(&mut store, memory).is_ok()
}

fn start_ticker(engine: &Engine) -> Result<(), LoadError> {
    let engine = engine.weak();
    let ticker = move || {
        while let Some(engine) = engine.upgrade() {
            engine.increment_epoch();
            drop(engine);
            std::thread::sleep(TICK);
        }
    };
    let started = std::thread::Builder::new().name("wasm-epochs".to_owned()).spawn(ticker);
    started.map(drop).map_err(|error| LoadError::Engine(format!("cannot start the epoch thread: {error}")))
}

/// Instances in the pool: enough for the concurrency of each present plugin and of some that come
/// later.
pub(crate) fn pool_size(concurrency: usize, plugins: usize) -> usize {
    concurrency.saturating_mul(plugins.saturating_add(LATER_FORMATS)).clamp(1, MAX_POOL)
}

/// Concurrent calls of each plugin, so that all together fit the pool and none can starve another.
pub(crate) fn share(configured: usize, plugins: usize) -> usize {
    configured.min(MAX_POOL / plugins.max(1)).max(1)
}

/// Provisional name of a plugin, from its file, until it is described.
pub(crate) fn file_name(file: &Path) -> Arc<str> {
    component_name(file).unwrap_or_else(|| file.display().to_string()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_shares_fit_the_pool() {
        assert_eq!(share(256, 1), 256);
        assert_eq!(share(250, 12), 250);
        assert_eq!(share(256, 20) * 20, MAX_POOL);
        assert_eq!(share(0, 0), 1);
    }
}
