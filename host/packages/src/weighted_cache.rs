//! Caches with a limit in bytes that may contain large entries.

use std::hash::Hash;

use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

/// Number of shards. Each shard gets an equal share of the bytes, and the largest entry must fit
/// into it. With several shards per core, a shard would be too small.
const SHARDS: usize = 4;

/// Creates an empty cache for at most `total` bytes and about `items` entries.
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
        // This branch is unreachable, because both capacities are set. This cache would have more
        // shards, so fewer large entries would fit.
        Err(_) => Cache::with_weighter(items, total, weight),
    }
}
