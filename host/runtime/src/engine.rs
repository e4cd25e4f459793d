//! The one Wasm engine of the program, and the thread that gives it its epochs.
//!
//! Guests run on asynchronous fibers: a guest is straight-line code, and when a host function waits for storage the fiber is
//! parked and its thread serves another request. The other way, Wasm on a blocked worker thread, saves about 2 µs a call, but
//! a slow database would then take threads away from requests that need none of it, and nothing could end a call that waits.
//! With fibers the wall-clock timeout is a timer beside the call: when it fires the fiber is dropped, wherever it is. Epochs
//! are for the guest's own code, which no timer can interrupt: every 10 ms it looks at its clock and lets other tasks run.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, Memory, MemoryType, PoolingAllocationConfig, Store,
};

use crate::component_file::component_name;
use crate::error::LoadError;

/// How often a running guest looks at its clock.
const TICK: Duration = Duration::from_millis(10);
/// Address space that must be free for the pool to be used: 4 GiB for each instance.
const POOL_ADDRESS_BITS: u32 = 44;
/// Instances that fit into that, and with which ten plugins, and two that come later, have as many as one may have unless something
/// else is set.
pub(crate) const MAX_POOL: usize = 3_000;
/// Formats that may come while the server runs, for which the pool has places.
const LATER_FORMATS: usize = 2;
/// Instances of calls aside of those that clients wait for: they take none of the others' places.
pub(crate) const ASIDE: usize = 1;
/// Instances of policies, which judge while a plugin's call waits for them.
pub(crate) const POLICY_PLACES: usize = 32;
/// Instances of calls that compare versions. Another call may wait for one of these, which waits for nothing: it is short and reaches
/// nothing. So they have places of their own.
pub(crate) const COMPARING: usize = 2;
/// Memory of a slot that is cleared in place instead of being given back to the system: more than a call of a small guest
/// touches. Measured: 23 µs a fresh instance against 44 µs.
const KEEP_RESIDENT: usize = 2 << 20;
/// Slots that have been used and are free, for each core, before a call takes one of another component's instead of a new one: what such a
/// slot keeps stays with it. As many as calls of four formats need that run at one time, each in one of its own; with 64 for two cores,
/// reads of all kinds left 150 slots behind.
const WARM_SLOTS_PER_CORE: usize = 8;
/// Calls of a plugin that run at one time, for each core, as long as they wait for look-ups alone. More of them would be no faster, and leave
/// what their slots keep behind: 990 clients of a cold server left 350 to 460 slots of a hundred KiB each.
const TURNS_PER_CORE: usize = 16;
/// Core instances, tables and memories of one component: what wit-component makes of one module, and of an interpreter with its
/// libraries: componentize-py makes 38 instances where it stubs WASI.
pub(crate) const MAX_CORE_INSTANCES: usize = 48;
pub(crate) const MAX_TABLES: usize = 16;
pub(crate) const MAX_MEMORIES: usize = 4;
/// Stack of a guest, and of a guest with the host functions that it calls.
const GUEST_STACK: usize = 512 << 10;
const FIBER_STACK: usize = 2 << 20;

/// The processor whose instructions the code of packages uses, as Cranelift names it: those of x86-64-v3, which servers have had since 2013.
/// None stands for what every processor of the architecture has.
const BASELINE: Option<&str> = if cfg!(target_arch = "x86_64") { Some("haswell") } else { None };

/// What the engine is made for.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Instances at one time, at most 3,000 and those that are kept for calls beside them; none to allocate each instance by
    /// itself.
    pub pool: Option<usize>,
    /// Largest linear memory, in bytes.
    pub memory_bytes: usize,
}

/// Makes the engine and starts its ticker, which ends with the engine.
pub(crate) fn engine(options: &EngineOptions) -> Result<Engine, LoadError> {
    let mut config = base();
    if let Some(size) = options.pool {
        if pool_fits() {
            tracing::info!(instances = size, "instances come from a pool");
            config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool(size, options.memory_bytes)));
        } else {
            tracing::warn!(
                "instances are allocated one by one, which is slower: 2^{POOL_ADDRESS_BITS} bytes of address space cannot be \
                 reserved; is it limited by `ulimit -v`?"
            );
        }
    }
    let engine = Engine::new(&config).map_err(|error| LoadError::Engine(format!("{error:#}")))?;
    start_ticker(&engine)?;
    Ok(engine)
}

/// Cranelift alone, wasmtime's own defaults for traps, and nothing of Wasm that a plugin has no use for.
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

/// The engine that compiles for packages: for every processor that has the instructions of [`BASELINE`], not for this machine's own. It runs
/// nothing.
pub(crate) fn baseline() -> Result<Engine, LoadError> {
    let failed = |error: wasmtime::Error| LoadError::Engine(format!("{error:#}"));
    let mut config = base();
    config.target(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH)).map_err(failed)?;
    if let Some(instructions) = BASELINE {
        #[expect(unsafe_code, reason = "wasmtime has no other way to name a processor")]
        // SAFETY: a set of instructions; wasmtime refuses to load the code on a processor that lacks one of them.
        unsafe {
            config.cranelift_flag_enable(instructions);
        }
    }
    Engine::new(&config).map_err(failed)
}

fn pool(size: usize, memory_bytes: usize) -> PoolingAllocationConfig {
    let count = u32::try_from(size.min(MAX_POOL + ASIDE + POLICY_PLACES + COMPARING)).unwrap_or(u32::MAX);
    let mut pool = PoolingAllocationConfig::default();
    pool.total_component_instances(count)
        // No more than a number: an instance takes its memory when it is made.
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

/// How many calls of a plugin run at one time that wait for look-ups alone.
pub(crate) fn turns() -> usize {
    cores() * TURNS_PER_CORE
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Whether the pool's address space can be reserved, found out by reserving it.
fn pool_fits() -> bool {
    let mut config = Config::new();
    config.wasm_memory64(true).memory_reservation(1 << POOL_ADDRESS_BITS);
    let Ok(engine) = Engine::new(&config) else { return false };
    let mut store = Store::new(&engine, ());
    // In pages of 64 KiB.
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
    started
        .map(drop)
        .map_err(|error| LoadError::Engine(format!("cannot start the thread of epochs: {error}")))
}

/// Instances that the pool holds: for as many plugins as there are, and some that come later, each with so many calls at one time.
pub(crate) fn pool_size(concurrency: usize, plugins: usize) -> usize {
    concurrency.saturating_mul(plugins.saturating_add(LATER_FORMATS)).clamp(1, MAX_POOL)
}

/// How many calls of each plugin can run at one time, so that all together fit the pool and none can starve another.
pub(crate) fn share(configured: usize, plugins: usize) -> usize {
    configured.min(MAX_POOL / plugins.max(1)).max(1)
}

/// The name that a plugin's file gives it before it has said its own.
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
