//! The record cache. It holds content that was read and has not changed since, so that repeated
//! reads run no statement.
//!
//! An entry is valid while the change log knows that no commit touched its dependencies. The cache
//! serves only calls that read; calls that change records read from the database. Commits of this
//! process add the records that they write, so that the first read after a publish finds them in
//! the cache.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::blobs::Blob;
use crate::changes::{ChangeLog, Dependencies};
use crate::digest::Sha256;
use crate::ids::RepositoryId;
use crate::records::Entry;
use crate::records::key_list::KeyList;
use crate::records::listing::Listing;

/// Total bytes of all entries.
const TOTAL_BYTES: u64 = 20 << 20;
/// Maximum size of a value that a commit adds. Larger values are rare, and each would displace many
/// entries that are read.
const WRITTEN_BYTES: usize = 32 << 10;
/// Maximum size of an entry.
const ENTRY_BYTES: u64 = 4 << 20;
/// Cost of an entry besides its key and content: the entry itself, its slot, and an allocation for
/// each text.
const OVERHEAD: u64 = 512;
/// Additional cost of a blob handle: its row, its digests and its locks.
const BLOB_OVERHEAD: u64 = 1024;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum RecordCacheKey {
    Record(String),
    Records { prefix: String, after: Option<String> },
    Keys { prefix: String, delimiter: Option<char>, after: Option<String>, limit: u32 },
    Blob(Sha256),
}

#[derive(Clone)]
pub(super) enum CachedContent {
    Record(Option<Entry>),
    Records(Listing),
    Keys(Arc<KeyList>),
    Blob(Blob),
}

struct CachedRead {
    /// Revision up to which the entry is known to be valid.
    good_at: AtomicU64,
    dependencies: Dependencies,
    found: CachedContent,
    /// Revision of the commit that added the entry. `None` for an entry that was read from the
    /// database, which may be newer than `good_at`.
    written_at: Option<u64>,
}

/// A record that a commit wrote or removed.
pub(crate) struct Written {
    pub(crate) repository: RepositoryId,
    pub(crate) key: String,
    /// The record; `None` if it was removed.
    pub(crate) found: Option<Entry>,
    /// Revision of the repository at which this state is valid.
    pub(crate) at: u64,
}

/// Result of a look-up in the cache.
pub(super) enum Recalled {
    Good(CachedContent),
    /// The entry was valid at this revision, but some of its dependencies changed since.
    Outdated {
        found: CachedContent,
        good_at: u64,
    },
    Nothing,
}

pub(super) type CachePlace = (RepositoryId, RecordCacheKey);

pub(crate) struct RecordCache {
    entries: Cache<CachePlace, Arc<CachedRead>, EntryWeight>,
}

impl Default for RecordCache {
    fn default() -> RecordCache {
        let items = usize::try_from(TOTAL_BYTES / (4 * OVERHEAD)).unwrap_or(usize::MAX);
        RecordCache { entries: Cache::with_weighter(items, TOTAL_BYTES, EntryWeight) }
    }
}

impl RecordCache {
    pub(super) fn get(&self, changes: &ChangeLog, place: &CachePlace, now: u64) -> Recalled {
        let Some(cached) = self.entries.get(place) else { return Recalled::Nothing };
        let good_at = cached.good_at.load(Ordering::Relaxed);
        let found = cached.found.clone();
        // An entry that is valid at a revision later than `now` is valid for this request too.
        if good_at < now {
            if !changes.unchanged(place.0, good_at, now, &cached.dependencies) {
                return Recalled::Outdated { found, good_at };
            }
            cached.good_at.fetch_max(now, Ordering::Relaxed);
        }
        Recalled::Good(found)
    }

    /// Adds records of durable commits.
    pub(crate) fn remember(&self, written: Vec<Written>) {
        for Written { repository, key, found, at } in written {
            if found.as_ref().is_none_or(|entry| entry.value.len() <= WRITTEN_BYTES) {
                let mut dependencies = Dependencies::default();
                dependencies.on_record(&key);
                let place = (repository, RecordCacheKey::Record(key));
                self.insert(place, at, dependencies, CachedContent::Record(found), Some(at));
            }
        }
    }

    pub(super) fn put(&self, place: CachePlace, now: u64, dependencies: Dependencies, found: CachedContent) {
        self.insert(place, now, dependencies, found, None);
    }

    /// Record of this key exactly as it was at `now`, if a commit of this process wrote it and it
    /// is still cached.
    pub(super) fn written(&self, changes: &ChangeLog, place: &CachePlace, now: u64) -> Option<Option<Entry>> {
        let cached = self.entries.get(place)?;
        let CachedContent::Record(found) = &cached.found else { return None };
        let good_at = cached.good_at.load(Ordering::Relaxed);
        let holds = good_at >= now || changes.unchanged(place.0, good_at, now, &cached.dependencies);
        (cached.written_at.is_some_and(|at| at <= now) && holds).then(|| found.clone())
    }

    fn insert(
        &self,
        place: CachePlace,
        now: u64,
        dependencies: Dependencies,
        found: CachedContent,
        written_at: Option<u64>,
    ) {
        let cached = CachedRead { good_at: AtomicU64::new(now), dependencies, found, written_at };
        if weight(&place, &cached) <= ENTRY_BYTES {
            self.entries.insert(place, Arc::new(cached));
        }
    }
}

fn weight((_, key): &CachePlace, cached: &CachedRead) -> u64 {
    let key_bytes = match key {
        RecordCacheKey::Record(key) => key.len(),
        RecordCacheKey::Records { prefix, after } | RecordCacheKey::Keys { prefix, after, .. } => {
            prefix.len() + after.as_ref().map_or(0, String::len)
        }
        RecordCacheKey::Blob(_) => 0,
    };
    let entry = |entry: &Entry| entry.key.len() + entry.value.len() + 64;
    let found = match &cached.found {
        CachedContent::Record(found) => found.as_ref().map_or(0, entry),
        CachedContent::Records(found) => found.entries.iter().map(entry).sum(),
        CachedContent::Keys(found) => found.bytes(),
        CachedContent::Blob(blob) => usize::try_from(blob.size() + BLOB_OVERHEAD).unwrap_or(usize::MAX),
    };
    (key_bytes + found + cached.dependencies.bytes()) as u64 + OVERHEAD
}

/// Weighs entries by their bytes.
#[derive(Clone)]
struct EntryWeight;

impl Weighter<CachePlace, Arc<CachedRead>> for EntryWeight {
    fn weight(&self, place: &CachePlace, cached: &Arc<CachedRead>) -> u64 {
        weight(place, cached)
    }
}
