//! The record cache: what was read of repositories and did not change since, so that reading it again costs no statement.
//!
//! An entry is served while the log of changes knows that no commit touched what it was made of. For calls that only read: who
//! changes records reads them from the database.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::blobs::{Blob, HeldBlob};
use crate::changes::{ChangeLog, Dependencies};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::Entry;
use crate::records::keys::MAX_KEYS;
use crate::records::patch::Patch;
use crate::records::range::Range;
use crate::records::read::{MAX_SCAN, MAX_SCAN_BYTES};
use crate::store::Store;

/// Bytes of all entries.
const TOTAL_BYTES: u64 = 32 << 20;
/// Bytes of an entry that is worth its place.
const ENTRY_BYTES: u64 = 4 << 20;
/// What an entry costs besides its key and content.
const OVERHEAD: u64 = 256;
/// Bytes of a blob that is kept here; the bytes of larger ones are left to their file.
const BLOB_BYTES: u64 = 64 << 10;

/// A repository, and the revision at which a request saw it: what is served is of that revision or a later one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Seen {
    /// The repository.
    pub repository: RepositoryId,
    /// Its revision.
    pub revision: u64,
}

#[derive(Clone, Debug, Eq, Hash, PartialEq)]
enum Question {
    Record(String),
    Records { prefix: String, after: Option<String>, limit: u32 },
    Keys { prefix: String, delimiter: Option<char>, after: Option<String>, limit: u32 },
    Blob(Sha256),
}

#[derive(Clone)]
enum Found {
    Record(Option<Entry>),
    Records(Arc<[Entry]>),
    Keys(Arc<[String]>),
    Blob(Blob),
}

struct Kept {
    /// The revision up to which it is known to be right.
    good_at: AtomicU64,
    dependencies: Dependencies,
    found: Found,
}

/// What the cache has of a question.
enum Recalled {
    Good(Found),
    /// It was right at this revision, and something of it was changed since.
    Outdated {
        found: Found,
        good_at: u64,
    },
    Nothing,
}

type Place = (RepositoryId, Question);

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
    fn get(&self, changes: &ChangeLog, place: &Place, now: u64) -> Recalled {
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

    fn put(&self, place: Place, now: u64, dependencies: Dependencies, found: Found) {
        let kept = Kept { good_at: AtomicU64::new(now), dependencies, found };
        if weight(&place, &kept) <= ENTRY_BYTES {
            self.entries.insert(place, Arc::new(kept));
        }
    }
}

impl Store {
    /// As [`Store::get`].
    pub async fn cached_get(&self, seen: Seen, key: String) -> Result<Option<Entry>, StoreError> {
        let (place, now) = self.place(seen, Question::Record(key));
        if let Recalled::Good(Found::Record(found)) = self.recall(&place, now) {
            return Ok(found);
        }
        let Question::Record(key) = &place.1 else { return Ok(None) };
        let found = self.get(seen.repository, key).await?;
        let mut dependencies = Dependencies::default();
        dependencies.on_record(key);
        self.inner.record_cache.put(place, now, dependencies, Found::Record(found.clone()));
        Ok(found)
    }

    /// As [`Store::scan`].
    pub async fn cached_scan(
        &self,
        seen: Seen,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Arc<[Entry]>, StoreError> {
        let question =
            Question::Records { prefix: prefix.to_owned(), after: after.map(str::to_owned), limit };
        let (place, now) = self.place(seen, question);
        let (mut patched, mut good_at) = (None, now);
        match self.recall(&place, now) {
            Recalled::Good(Found::Records(found)) => return Ok(found),
            Recalled::Outdated { found: Found::Records(found), good_at: since } => {
                // What stands behind the last may be beyond the bounds of one answer: that is for the database to say.
                let last = found.last().map(|entry| entry.key.as_str()).unwrap_or_default();
                let patch = self.patch_list(seen.repository, prefix, after, since, now).await?;
                if let Some(patch) = patch.filter(|patch| patch.is_before(last)) {
                    let list = patch.of(&found, |entry| &entry.key, Entry::clone);
                    // Where it was cut off, what follows would move up.
                    let whole = list.len() >= found.len() || ended_at(&found, limit).is_none();
                    (patched, good_at) = (within_bounds(list, limit).filter(|_| whole), patch.at);
                }
            }
            _ => {}
        }
        let (found, now): (Arc<[Entry]>, u64) = match patched {
            Some(list) => (list.into(), good_at),
            None => (self.scan(seen.repository, prefix, after, limit).await?.into(), now),
        };
        let mut dependencies = Dependencies::default();
        dependencies.on_records(prefix, after, ended_at(&found, limit));
        self.inner.record_cache.put(place, now, dependencies, Found::Records(Arc::clone(&found)));
        Ok(found)
    }

    /// As [`Store::keys`].
    pub async fn cached_keys(
        &self,
        seen: Seen,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Arc<[String]>, StoreError> {
        let after_text = after.map(str::to_owned);
        let question = Question::Keys { prefix: prefix.to_owned(), delimiter, after: after_text, limit };
        let (place, now) = self.place(seen, question);
        let (mut patched, mut good_at) = (None, now);
        match self.recall(&place, now) {
            Recalled::Good(Found::Keys(found)) => return Ok(found),
            Recalled::Outdated { found: Found::Keys(found), good_at: since }
                if delimiter.is_none() && is_whole(found.len(), limit) =>
            {
                if let Some(patch) = self.patch_list(seen.repository, prefix, after, since, now).await? {
                    let list = patch.of(&found, String::as_str, |entry| entry.key.clone());
                    (patched, good_at) = (Some(list).filter(|list| is_whole(list.len(), limit)), patch.at);
                }
            }
            _ => {}
        }
        let (found, now): (Arc<[String]>, u64) = match patched {
            Some(list) => (list.into(), good_at),
            None => (self.keys(seen.repository, prefix, delimiter, after, limit).await?.into(), now),
        };
        let mut dependencies = Dependencies::default();
        dependencies.on_records(prefix, after, None);
        self.inner.record_cache.put(place, now, dependencies, Found::Keys(Arc::clone(&found)));
        Ok(found)
    }

    /// As [`Store::held_blob`]. One that a record names and that is small is kept with its bytes, which were checked when they were
    /// read.
    pub async fn cached_held_blob(&self, seen: Seen, sha256: Sha256) -> Result<Option<HeldBlob>, StoreError> {
        let (place, now) = self.place(seen, Question::Blob(sha256));
        if let Recalled::Good(Found::Blob(blob)) = self.recall(&place, now) {
            return Ok(Some(HeldBlob { blob, named: true }));
        }
        let found = self.held_blob(seen.repository, sha256).await?;
        if let Some(HeldBlob { blob, named: true }) = &found
            && blob.is_in_memory()
        {
            let mut dependencies = Dependencies::default();
            dependencies.on_blob(blob);
            self.inner.record_cache.put(place, now, dependencies, Found::Blob(blob.clone()));
        }
        Ok(found)
    }

    fn recall(&self, place: &Place, now: u64) -> Recalled {
        self.inner.record_cache.get(&self.inner.changes, place, now)
    }

    async fn patch_list(
        &self,
        repository: RepositoryId,
        prefix: &str,
        after: Option<&str>,
        since: u64,
        now: u64,
    ) -> Result<Option<Patch>, StoreError> {
        match Range::new(prefix, after) {
            Some(range) => self.patch(repository, &range, since, now).await,
            None => Ok(None),
        }
    }

    /// Where it would be kept, and the revision that it must be good for: what this process committed meanwhile counts.
    fn place(&self, seen: Seen, question: Question) -> (Place, u64) {
        let now = self.inner.changes.latest(seen.repository, seen.revision);
        ((seen.repository, question), now)
    }
}

/// Whether so many are all that there are, and not all that one answer may have.
fn is_whole(count: usize, limit: u32) -> bool {
    count < usize::try_from(limit.min(MAX_KEYS)).unwrap_or(usize::MAX)
}

/// A patched list as one answer may have it; none where that is for the database to cut.
fn within_bounds(list: Vec<Entry>, limit: u32) -> Option<Vec<Entry>> {
    let bytes: u64 = list.iter().map(|entry| entry.value.len() as u64).sum();
    let count = u32::try_from(list.len()).unwrap_or(u32::MAX);
    (count <= limit.min(MAX_SCAN) && bytes <= MAX_SCAN_BYTES && !list.is_empty()).then_some(list)
}

/// The last key, where it was the number of records that ended the reading: what comes after it makes no difference.
pub fn ended_at(found: &[Entry], limit: u32) -> Option<&str> {
    let full = found.len() >= usize::try_from(limit.min(MAX_SCAN)).unwrap_or(usize::MAX);
    found.last().filter(|_| full).map(|entry| entry.key.as_str())
}

fn weight((_, question): &Place, kept: &Kept) -> u64 {
    let asked = match question {
        Question::Record(key) => key.len(),
        Question::Records { prefix, after, .. } | Question::Keys { prefix, after, .. } => {
            prefix.len() + after.as_ref().map_or(0, String::len)
        }
        Question::Blob(_) => 0,
    };
    let entry = |entry: &Entry| entry.key.len() + entry.value.len() + 64;
    let found = match &kept.found {
        Found::Record(found) => found.as_ref().map_or(0, entry),
        Found::Records(found) => found.iter().map(entry).sum(),
        Found::Keys(found) => found.iter().map(|key| key.len() + 24).sum(),
        Found::Blob(blob) => usize::try_from(blob.size().min(BLOB_BYTES)).unwrap_or(usize::MAX),
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
