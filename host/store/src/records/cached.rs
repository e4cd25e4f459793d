//! Reading records and blobs through the record cache.

use std::sync::Arc;

use crate::blobs::HeldBlob;
use crate::boxed;
use crate::changes::Dependencies;
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::cache::{Found, Place, Question, Recalled};
use crate::records::key_list::KeyList;
use crate::records::keys::MAX_KEYS;
use crate::records::patch::Patch;
use crate::records::range::Range;
use crate::records::read::Dated;
use crate::records::{Entry, MAX_SCAN};
use crate::store::Store;

/// A repository, and the revision at which a request saw it: what is served is of that revision or a later one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Seen {
    /// The repository.
    pub repository: RepositoryId,
    /// Its revision.
    pub revision: u64,
}

impl Store {
    /// As [`Store::get`].
    #[boxed]
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

    /// As [`Store::keys`]. A list of thousands in which one changed is made anew at the cost of copying it.
    #[boxed]
    pub async fn cached_keys(
        &self,
        seen: Seen,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Arc<KeyList>, StoreError> {
        let after_text = after.map(str::to_owned);
        let question = Question::Keys { prefix: prefix.to_owned(), delimiter, after: after_text, limit };
        let (place, now) = self.place(seen, question);
        let (mut patched, mut good_at) = (None, now);
        match self.recall(&place, now) {
            Recalled::Good(Found::Keys(found)) => return Ok(found),
            Recalled::Outdated { found: Found::Keys(found), good_at: since }
                if delimiter.is_none() && !found.is_empty() && is_whole(found.len(), limit) =>
            {
                if let Some(patch) = self.patch_list(seen.repository, prefix, after, since, now).await? {
                    let list = patch.of_keys(&found);
                    (patched, good_at) = (Some(list).filter(|list| is_whole(list.len(), limit)), patch.at);
                }
            }
            _ => {}
        }
        let (found, now) = match patched {
            Some(list) => (list, good_at),
            None => {
                let Dated { found, at } =
                    self.dated_keys(seen.repository, prefix, delimiter, after, limit).await?;
                (found.into_iter().collect(), at.unwrap_or(now))
            }
        };
        let found = Arc::new(found);
        let mut dependencies = Dependencies::default();
        dependencies.on_records(prefix, after, listed_to(&found, delimiter, limit));
        self.inner.record_cache.put(place, now, dependencies, Found::Keys(Arc::clone(&found)));
        Ok(found)
    }

    /// As [`Store::held_blob`]. One that a record names and that is small is kept with its bytes, which were checked when they were
    /// read.
    #[boxed]
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

    pub(super) fn recall(&self, place: &Place, now: u64) -> Recalled {
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
    pub(super) fn place(&self, seen: Seen, question: Question) -> (Place, u64) {
        let now = self.inner.changes.latest(seen.repository, seen.revision);
        ((seen.repository, question), now)
    }
}

/// As [`ended_at`], of [`Store::keys`]. A key that was cut off stands for all that follow it up to the next: none is the last then.
pub fn listed_to(found: &KeyList, delimiter: Option<char>, limit: u32) -> Option<&str> {
    let ended = delimiter.is_none() && !is_whole(found.len(), limit);
    found.last().filter(|_| ended)
}

/// Whether so many are all that there are, and not all that one answer may have.
fn is_whole(count: usize, limit: u32) -> bool {
    count < usize::try_from(limit.min(MAX_KEYS)).unwrap_or(usize::MAX)
}

/// The last key, where it was the number of records that ended the reading: what comes after it makes no difference.
pub fn ended_at(found: &[Entry], limit: u32) -> Option<&str> {
    let full = found.len() >= usize::try_from(limit.min(MAX_SCAN)).unwrap_or(usize::MAX);
    found.last().filter(|_| full).map(|entry| entry.key.as_str())
}
