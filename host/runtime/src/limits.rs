//! Limits of an instance's memory and tables. The limits of host-call bytes and handles are set at
//! the start of a call.

use std::sync::Arc;

use wasmtime::ResourceLimiter;

/// Elements of all tables, a function pointer each: 0.8 MB in addition to the memory.
const MAX_TABLE_ELEMENTS: usize = 100_000;

/// Limiter of an instance's memory: the sum over all its core instances, each of which may have its
/// own memories and tables. Memories and tables never shrink, so the counts only grow. The first
/// refusal of memory is logged with the plugin's name.
pub(crate) struct MemoryLimiter {
    plugin: Arc<str>,
    limit: usize,
    bytes: usize,
    table_elements: usize,
    refused: Option<usize>,
}

impl MemoryLimiter {
    pub(crate) fn new(plugin: Arc<str>, limit: usize) -> MemoryLimiter {
        MemoryLimiter { plugin, limit, bytes: 0, table_elements: 0, refused: None }
    }

    /// Takes over the sizes from an earlier call of the same instance, but not its refusal.
    pub(crate) fn continue_from(&mut self, before: &MemoryLimiter) {
        (self.bytes, self.table_elements) = (before.bytes, before.table_elements);
    }

    /// Bytes of all memories together.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first total size that was refused, with the limit.
    pub(crate) fn refused(&self) -> Option<(usize, usize)> {
        self.refused.map(|requested| (requested, self.limit))
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let requested = grown(self.bytes, current, desired);
        if requested > self.limit {
            if self.refused.is_none() {
                self.refused = Some(requested);
                tracing::warn!(
                    plugin = %self.plugin, requested, has = self.bytes, limit = self.limit,
                    "plugin memory limit reached"
                );
            }
            return Ok(false);
        }
        let fits = within(desired, maximum);
        if fits {
            self.bytes = requested;
        }
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let requested = grown(self.table_elements, current, desired);
        if requested > MAX_TABLE_ELEMENTS {
            tracing::warn!(plugin = %self.plugin, requested, "plugin table limit reached");
            return Ok(false);
        }
        let fits = within(desired, maximum);
        if fits {
            self.table_elements = requested;
        }
        Ok(fits)
    }

    fn instances(&self) -> usize {
        crate::engine::MAX_CORE_INSTANCES
    }

    fn tables(&self) -> usize {
        crate::engine::MAX_TABLES
    }

    fn memories(&self) -> usize {
        crate::engine::MAX_MEMORIES
    }
}

/// Size of all after one of them has grown.
fn grown(all: usize, current: usize, desired: usize) -> usize {
    all.saturating_add(desired.saturating_sub(current))
}

/// Returns true if the size is within the maximum that the guest declared. wasmtime checks this
/// maximum only after the limiter has counted the size.
fn within(desired: usize, maximum: Option<usize>) -> bool {
    maximum.is_none_or(|maximum| desired <= maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_ends_at_the_limit_and_the_refusal_is_remembered() {
        let mut limiter = MemoryLimiter::new("x".into(), 100);
        assert!(limiter.memory_growing(0, 100, None).unwrap());
        assert!(!limiter.memory_growing(100, 101, None).unwrap());
        assert_eq!((limiter.bytes(), limiter.refused()), (100, Some((101, 100))));
    }

    #[test]
    fn all_memories_and_all_tables_of_an_instance_count_together() {
        let mut limiter = MemoryLimiter::new("x".into(), 100);
        assert!(limiter.memory_growing(0, 60, None).unwrap());
        assert!(!limiter.memory_growing(0, 41, None).unwrap());
        assert!(limiter.memory_growing(0, 20, Some(20)).unwrap());
        assert!(!limiter.memory_growing(20, 21, Some(20)).unwrap(), "above the guest's maximum");
        assert!(limiter.memory_growing(60, 80, None).unwrap(), "refused growth does not count");
        let mut next = MemoryLimiter::new("x".into(), 100);
        next.continue_from(&limiter);
        assert!(!next.memory_growing(80, 81, None).unwrap(), "the next call has the same memories");
        assert!(limiter.table_growing(0, MAX_TABLE_ELEMENTS - 1, None).unwrap());
        assert!(!limiter.table_growing(0, 2, None).unwrap());
        assert!(limiter.table_growing(0, 1, None).unwrap());
    }
}
