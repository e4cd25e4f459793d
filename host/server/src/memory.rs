//! The allocator, and how soon it gives memory back.

use tikv_jemalloc_ctl::{Access as _, AsName as _};

/// Measured under many small publishes: a tenth less CPU than the system's allocator, and memory that compiling plugins or
/// hashing a password took is given back.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Milliseconds after which freed memory goes back to the system. The allocator's own ten seconds kept 25 MiB of a password's hash and of
/// loaded plugins long after the start; a second costs nothing that could be measured.
const DECAY_MS: isize = 1000;

/// Sets what the allocator does with freed memory, in the arena of the main thread and in those that further threads will get. To be
/// called before there are any. Where the allocator does not take a setting its own stays.
pub(crate) fn give_back_soon() {
    for name in ["arenas.dirty_decay_ms\0", "arena.0.dirty_decay_ms\0"] {
        let _ = name.name().write(DECAY_MS);
    }
    // Pages that the system may take but has not: they would count as ours until it does.
    for name in ["arenas.muzzy_decay_ms\0", "arena.0.muzzy_decay_ms\0"] {
        let _ = name.name().write(0_isize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocator_takes_the_settings() {
        give_back_soon();
        let read = |name: &'static str| -> isize { name.name().read().unwrap() };
        assert_eq!(read("arenas.dirty_decay_ms\0"), DECAY_MS);
        assert_eq!(read("arena.0.dirty_decay_ms\0"), DECAY_MS);
        assert_eq!(read("arenas.muzzy_decay_ms\0"), 0);
    }
}
