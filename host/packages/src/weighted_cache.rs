//! Caches within a bound of bytes whose entries may be large.

use std::hash::Hash;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// Each has an equal share of the bytes, and must have room for the largest entry: with some for each of many cores it would not.
const SHARDS: usize = 4;

/// An empty cache of at most `total` bytes, of about `items` entries.
pub(crate) fn weighted_cache<K: Eq + Hash, V: Clone, W: Weighter<K, V> + Clone>(
    items: usize,
    total: u64,
    weight: W,
) -> Cache<K, V, W> {
    let mut options = OptionsBuilder::new();
    options.shards(SHARDS).estimated_items_capacity(items).weight_capacity(total);
    match options.build() {
        Ok(options) => {
            let (hasher, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
            Cache::with_options(options, weight, hasher, lifecycle)
        }
        // Both capacities are given, so this is never reached; it has more shards, and keeps less of what is large.
        Err(_) => Cache::with_weighter(items, total, weight),
    }
}
