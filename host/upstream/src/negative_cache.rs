//! An in-memory cache of "not found" responses, so that requests for missing names do not fill the
//! disk.

use std::sync::Arc;

use packhouse_store::{RepositoryId, now_ms};
use quick_cache::sync::Cache;

use super::cache_key::CacheKey;
use super::fetched::FetchedResponse;

/// Maximum number of cached responses.
const MOST: usize = 10_000;

/// The cache of "not found" responses.
pub(crate) struct NegativeCache {
    entries: Cache<CacheKey, Arc<NegativeEntry>>,
}

struct NegativeEntry {
    target: String,
    /// End of validity, in ms since 1970.
    expires_at: i64,
    fetched: FetchedResponse,
}

impl Default for NegativeCache {
    fn default() -> NegativeCache {
        NegativeCache { entries: Cache::new(MOST) }
    }
}

impl NegativeCache {
    /// Returns the response unless it has expired, and its expiry in ms since 1970.
    pub(crate) fn get(&self, key: CacheKey) -> Option<(FetchedResponse, i64)> {
        let entry = self.entries.get(&key).filter(|entry| now_ms() < entry.expires_at)?;
        Some((entry.fetched.clone(), entry.expires_at))
    }

    /// Caches a response until `expires_at` (ms since 1970).
    pub(crate) fn put(&self, key: CacheKey, target: &str, expires_at: i64, fetched: &FetchedResponse) {
        let entry = NegativeEntry { target: target.to_owned(), expires_at, fetched: fetched.clone() };
        self.entries.insert(key, Arc::new(entry));
    }

    /// Drops the responses of a repository whose target begins with `prefix`.
    pub(crate) fn purge(&self, repository: RepositoryId, prefix: &str) {
        self.entries.retain(|key, entry| key.repository != repository || !entry.target.starts_with(prefix));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_cached_until_it_expires_or_is_purged() {
        let negatives = NegativeCache::default();
        let key = |number: i64| CacheKey { repository: RepositoryId(number), name: [0; 32] };
        let fetched = FetchedResponse::bare(404, "https://upstream.test/a");
        negatives.put(key(1), "/a", now_ms() + 60_000, &fetched);
        negatives.put(key(2), "/a", now_ms() + 60_000, &fetched);
        negatives.put(key(3), "/a", now_ms() - 1, &fetched);
        assert!(negatives.get(key(1)).is_some() && negatives.get(key(3)).is_none());
        negatives.purge(RepositoryId(1), "/a");
        assert!(negatives.get(key(1)).is_none() && negatives.get(key(2)).is_some());
    }

    #[test]
    fn memory_is_bounded() {
        let negatives = NegativeCache::default();
        let fetched = FetchedResponse::bare(404, "");
        for number in 0..=2 * i64::try_from(MOST).unwrap() {
            negatives.put(
                CacheKey { repository: RepositoryId(number), name: [0; 32] },
                "",
                i64::MAX,
                &fetched,
            );
        }
        // Each shard of the map rounds its part of the bound up.
        assert!(negatives.entries.len() <= MOST + MOST / 10);
    }
}
