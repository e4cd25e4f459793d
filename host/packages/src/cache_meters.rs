//! Look-ups of a cache, counted by what came of them. The counters are looked up once.

use metrics::Counter;

const LOOKUPS: &str = "packhouse_cache_lookups_total";

/// The counters of one cache.
pub(crate) struct CacheMeters {
    /// It was there and good.
    pub(crate) hit: Counter,
    /// It was there, and something that it was made of has changed since.
    pub(crate) stale: Counter,
    /// It was not there.
    pub(crate) miss: Counter,
}

impl CacheMeters {
    /// Of the cache of this name.
    pub(crate) fn new(cache: &'static str) -> Self {
        metrics::describe_counter!(LOOKUPS, "Look-ups of caches by what came of them");
        let counter = |result: &'static str| metrics::counter!(LOOKUPS, "cache" => cache, "result" => result);
        Self { hit: counter("hit"), stale: counter("stale"), miss: counter("miss") }
    }
}
