//! Bounds on what an instance may take: memory and tables here; host-call bytes and handles are set where the call is begun.

use std::sync::Arc;

use wasmtime::ResourceLimiter;

/// Elements of all tables, a function pointer each: 0.8 MB besides the memory.
const MAX_TABLE_ELEMENTS: usize = 100_000;

/// Watches the memory of an instance: that of all its core instances together, each of which may have memories and tables of its own.
/// Memories and tables never shrink, so what was counted stays counted. The first refusal of memory is logged with the plugin's name.
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

    /// Takes over what an earlier call of the same instance took. What was refused it is no matter of the next call's.
    pub(crate) fn go_on_from(&mut self, before: &MemoryLimiter) {
        (self.bytes, self.table_elements) = (before.bytes, before.table_elements);
    }

    /// Bytes of all memories.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The first size of all memories that was refused, with the limit.
    pub(crate) fn refused(&self) -> Option<(usize, usize)> {
        self.refused.map(|wanted| (wanted, self.limit))
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = grown(self.bytes, current, desired);
        if wanted > self.limit {
            if self.refused.is_none() {
                self.refused = Some(wanted);
                tracing::warn!(
                    plugin = %self.plugin, wanted, has = self.bytes, limit = self.limit,
                    "a plugin was refused memory"
                );
            }
            return Ok(false);
        }
        let fits = within(desired, maximum);
        if fits {
            self.bytes = wanted;
        }
        Ok(fits)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let wanted = grown(self.table_elements, current, desired);
        if wanted > MAX_TABLE_ELEMENTS {
            tracing::warn!(plugin = %self.plugin, wanted, "a plugin was refused table elements");
            return Ok(false);
        }
        let fits = within(desired, maximum);
        if fits {
            self.table_elements = wanted;
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

/// The size of all after one of them has grown.
fn grown(all: usize, current: usize, desired: usize) -> usize {
    all.saturating_add(desired.saturating_sub(current))
}

/// Whether the size is within the maximum that the guest declared. wasmtime would refuse it only after it was counted.
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
        assert!(!limiter.memory_growing(20, 21, Some(20)).unwrap(), "over what the guest declared");
        assert!(limiter.memory_growing(60, 80, None).unwrap(), "what was refused does not count");
        let mut next = MemoryLimiter::new("x".into(), 100);
        next.go_on_from(&limiter);
        assert!(!next.memory_growing(80, 81, None).unwrap(), "the next call has the same memories");
        assert!(limiter.table_growing(0, MAX_TABLE_ELEMENTS - 1, None).unwrap());
        assert!(!limiter.table_growing(0, 2, None).unwrap());
        assert!(limiter.table_growing(0, 1, None).unwrap());
    }
}
