//! Bounds on what an instance may take: memory and tables here; host-call bytes and handles are set where the call is begun.

use std::sync::Arc;

use wasmtime::ResourceLimiter;

/// Elements of one table: function pointers of the guest's own code.
const MAX_TABLE_ELEMENTS: usize = 100_000;

/// Watches one instance's memory; a refusal is logged once with the plugin's name.
pub(crate) struct MemoryLimiter {
    plugin: Arc<str>,
    limit: usize,
    peak: usize,
    refused: Option<usize>,
}

impl MemoryLimiter {
    pub(crate) fn new(plugin: Arc<str>, limit: usize) -> MemoryLimiter {
        MemoryLimiter { plugin, limit, peak: 0, refused: None }
    }

    /// Takes over what an earlier call of the same instance took. What was refused it is no matter of the next call's.
    pub(crate) fn go_on_from(&mut self, before: &MemoryLimiter) {
        self.peak = before.peak;
    }

    /// Largest size that a memory had, in bytes.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }

    /// The first size that was refused, with the limit.
    pub(crate) fn refused(&self) -> Option<(usize, usize)> {
        self.refused.map(|wanted| (wanted, self.limit))
    }
}

impl ResourceLimiter for MemoryLimiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired <= self.limit {
            self.peak = self.peak.max(desired);
            return Ok(true);
        }
        if self.refused.is_none() {
            self.refused = Some(desired);
            tracing::warn!(
                plugin = %self.plugin, wanted = desired, has = current, limit = self.limit,
                "a plugin was refused memory"
            );
        }
        Ok(false)
    }

    fn table_growing(
        &mut self,
        _current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if desired > MAX_TABLE_ELEMENTS {
            tracing::warn!(plugin = %self.plugin, wanted = desired, "a plugin was refused table elements");
        }
        Ok(desired <= MAX_TABLE_ELEMENTS)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_ends_at_the_limit_and_the_refusal_is_remembered() {
        let mut limiter = MemoryLimiter::new("x".into(), 100);
        assert!(limiter.memory_growing(0, 100, None).unwrap());
        assert!(!limiter.memory_growing(100, 101, None).unwrap());
        assert_eq!((limiter.peak(), limiter.refused()), (100, Some((101, 100))));
    }
}
