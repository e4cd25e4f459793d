//! The allocator, and how soon it returns freed memory to the system.

use tikv_jemalloc_ctl::{Access as _, AsName as _};

/// jemalloc. Under many small publishes it needs a tenth less CPU than the system allocator. It
/// also returns the memory that compiling plugins and hashing passwords used.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Milliseconds after which freed memory returns to the system. With jemalloc's default of ten
/// seconds, 25 MiB for a password hash and plugin loading stayed resident long after the start. One
/// second had no measurable cost.
const DECAY_MS: isize = 1000;

/// Configures how the allocator returns freed memory, for the main thread's arena and for the
/// arenas of later threads. It must run before any thread starts. If the allocator rejects a
/// setting, its default stays.
pub(crate) fn return_memory_soon() {
    for name in ["arenas.dirty_decay_ms\0", "arena.0.dirty_decay_ms\0"] {
        let _ = name.name().write(DECAY_MS);
    }
    // The system may take muzzy pages at any time. Until then, the pages would count as memory of
    // this process.
    for name in ["arenas.muzzy_decay_ms\0", "arena.0.muzzy_decay_ms\0"] {
        let _ = name.name().write(0_isize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocator_takes_the_settings() {
        return_memory_soon();
        let read = |name: &'static str| -> isize { name.name().read().unwrap() };
        assert_eq!(read("arenas.dirty_decay_ms\0"), DECAY_MS);
        assert_eq!(read("arena.0.dirty_decay_ms\0"), DECAY_MS);
        assert_eq!(read("arenas.muzzy_decay_ms\0"), 0);
    }
}
