//! The record cache: what was read of repositories and did not change since, so that reading it again costs no statement.
//!
//! An entry is served while the log of changes knows that no commit touched what it was made of. For calls that only read: who
//! changes records reads them from the database. What this process commits is put here as well: the next reader of what a publish
//! changed finds it.

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

/// Bytes of all entries.
const TOTAL_BYTES: u64 = 20 << 20;
/// Bytes of a value that a commit puts here: more is rare, and would displace much that is read.
const WRITTEN_BYTES: usize = 32 << 10;
/// Bytes of an entry that is worth its place.
const ENTRY_BYTES: u64 = 4 << 20;
/// What an entry costs besides its key and content: itself, its place in the cache, and a place in the heap for each text.
const OVERHEAD: u64 = 512;
/// What the handle of a blob costs besides: its row, its digests, its locks.
const BLOB_OVERHEAD: u64 = 1024;

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(super) enum Question {
    Record(String),
    Records { prefix: String, after: Option<String> },
    Keys { prefix: String, delimiter: Option<char>, after: Option<String>, limit: u32 },
    Blob(Sha256),
}

#[derive(Clone)]
pub(super) enum Found {
    Record(Option<Entry>),
    Records(Listing),
    Keys(Arc<KeyList>),
    Blob(Blob),
}

struct Kept {
    /// The revision up to which it is known to be right.
    good_at: AtomicU64,
    dependencies: Dependencies,
    found: Found,
    /// The revision that a commit made of it, of what a commit put here. What was read may be newer than is known of it.
    written_at: Option<u64>,
}

/// A record that a commit has put or removed.
pub(crate) struct Written {
    pub(crate) repository: RepositoryId,
    pub(crate) key: String,
    /// None where it was removed.
    pub(crate) found: Option<Entry>,
    /// A revision of the repository at which it is so.
    pub(crate) at: u64,
}

/// What the cache has of a question.
pub(super) enum Recalled {
    Good(Found),
    /// It was right at this revision, and something of it was changed since.
    Outdated {
        found: Found,
        good_at: u64,
    },
    Nothing,
}

pub(super) type Place = (RepositoryId, Question);

/// See the module.
pub(crate) struct RecordCache {
    entries: Cache<Place, Arc<Kept>, Weight>,
}

impl Default for RecordCache {
    fn default() -> RecordCache {
        let items = usize::try_from(TOTAL_BYTES / (4 * OVERHEAD)).unwrap_or(usize::MAX);
        RecordCache { entries: Cache::with_weighter(items, TOTAL_BYTES, Weight) }
    }
}

impl RecordCache {
    pub(super) fn get(&self, changes: &ChangeLog, place: &Place, now: u64) -> Recalled {
        let Some(kept) = self.entries.get(place) else { return Recalled::Nothing };
        let good_at = kept.good_at.load(Ordering::Relaxed);
        let found = kept.found.clone();
        // What was read later than this request saw its repository is good for it as well.
        if good_at < now {
            if !changes.unchanged(place.0, good_at, now, &kept.dependencies) {
                return Recalled::Outdated { found, good_at };
            }
            kept.good_at.fetch_max(now, Ordering::Relaxed);
        }
        Recalled::Good(found)
    }

    /// Takes in what a commit wrote, which is durable.
    pub(crate) fn remember(&self, written: Vec<Written>) {
        for Written { repository, key, found, at } in written {
            if found.as_ref().is_none_or(|entry| entry.value.len() <= WRITTEN_BYTES) {
                let mut dependencies = Dependencies::default();
                dependencies.on_record(&key);
                let place = (repository, Question::Record(key));
                self.insert(place, at, dependencies, Found::Record(found), Some(at));
            }
        }
    }

    pub(super) fn put(&self, place: Place, now: u64, dependencies: Dependencies, found: Found) {
        self.insert(place, now, dependencies, found, None);
    }

    /// The record of this key exactly as it was at `now`, where a commit of this process made it so and it is there still.
    pub(super) fn written(&self, changes: &ChangeLog, place: &Place, now: u64) -> Option<Option<Entry>> {
        let kept = self.entries.get(place)?;
        let Found::Record(found) = &kept.found else { return None };
        let good_at = kept.good_at.load(Ordering::Relaxed);
        let holds = good_at >= now || changes.unchanged(place.0, good_at, now, &kept.dependencies);
        (kept.written_at.is_some_and(|at| at <= now) && holds).then(|| found.clone())
    }

    fn insert(
        &self,
        place: Place,
        now: u64,
        dependencies: Dependencies,
        found: Found,
        written_at: Option<u64>,
    ) {
        let kept = Kept { good_at: AtomicU64::new(now), dependencies, found, written_at };
        if weight(&place, &kept) <= ENTRY_BYTES {
            self.entries.insert(place, Arc::new(kept));
        }
    }
}

fn weight((_, question): &Place, kept: &Kept) -> u64 {
    let asked = match question {
        Question::Record(key) => key.len(),
        Question::Records { prefix, after } | Question::Keys { prefix, after, .. } => {
            prefix.len() + after.as_ref().map_or(0, String::len)
        }
        Question::Blob(_) => 0,
    };
    let entry = |entry: &Entry| entry.key.len() + entry.value.len() + 64;
    let found = match &kept.found {
        Found::Record(found) => found.as_ref().map_or(0, entry),
        Found::Records(found) => found.entries.iter().map(entry).sum(),
        Found::Keys(found) => found.bytes(),
        Found::Blob(blob) => usize::try_from(blob.size() + BLOB_OVERHEAD).unwrap_or(usize::MAX),
    };
    (asked + found + kept.dependencies.bytes()) as u64 + OVERHEAD
}

/// Bytes.
#[derive(Clone)]
struct Weight;

impl Weighter<Place, Arc<Kept>> for Weight {
    fn weight(&self, place: &Place, kept: &Arc<Kept>) -> u64 {
        weight(place, kept)
    }
}
