//! Counters for the look-ups of a cache, by result.

use metrics::Counter;

const LOOKUPS: &str = "packhouse_cache_lookups_total";

pub(crate) struct CacheMeters {
    /// Number of look-ups that found a valid entry.
    pub(crate) hit: Counter,
    /// Number of look-ups that found an entry whose sources have changed.
    pub(crate) stale: Counter,
    /// Number of look-ups that found no entry.
    pub(crate) miss: Counter,
}

impl CacheMeters {
    /// Creates the counters of the cache with this name.
    pub(crate) fn new(cache: &'static str) -> Self {
        let counter = |result: &'static str| metrics::counter!(LOOKUPS, "cache" => cache, "result" => result);
        Self { hit: counter("hit"), stale: counter("stale"), miss: counter("miss") }
    }
}
