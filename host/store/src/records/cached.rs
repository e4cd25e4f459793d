//! Reads of records and blobs through the record cache.

use std::sync::Arc;

use crate::blobs::HeldBlob;
use crate::boxed;
use crate::changes::Dependencies;
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::cache::{CachePlace, CachedContent, Recalled, RecordCacheKey};
use crate::records::key_list::KeyList;
use crate::records::keys::MAX_KEYS;
use crate::records::patch::Patch;
use crate::records::range::Range;
use crate::records::read::Dated;
use crate::records::{Entry, MAX_SCAN};
use crate::store::Store;

/// A repository, and its revision when a request began. A read returns the state at this revision
/// or a later one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReadPoint {
    pub repository: RepositoryId,
    pub revision: u64,
}

impl Store {
    /// Reads a record as [`Store::get`] does.
    #[boxed]
    pub async fn cached_get(&self, read_point: ReadPoint, key: String) -> Result<Option<Entry>, StoreError> {
        let (place, now) = self.place(read_point, RecordCacheKey::Record(key));
        if let Recalled::Good(CachedContent::Record(found)) = self.recall(&place, now) {
            return Ok(found);
        }
        let RecordCacheKey::Record(key) = &place.1 else { return Ok(None) };
        let found = self.get(read_point.repository, key).await?;
        let mut dependencies = Dependencies::default();
        dependencies.on_record(key);
        self.inner.record_cache.put(place, now, dependencies, CachedContent::Record(found.clone()));
        Ok(found)
    }

    /// Lists keys as [`Store::keys`] does. If one key of a list of thousands changed, updating the
    /// list costs one copy of it.
    #[boxed]
    pub async fn cached_keys(
        &self,
        read_point: ReadPoint,
        prefix: &str,
        delimiter: Option<char>,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Arc<KeyList>, StoreError> {
        let after_text = after.map(str::to_owned);
        let key = RecordCacheKey::Keys { prefix: prefix.to_owned(), delimiter, after: after_text, limit };
        let (place, now) = self.place(read_point, key);
        let (mut patched, mut good_at) = (None, now);
        match self.recall(&place, now) {
            Recalled::Good(CachedContent::Keys(found)) => return Ok(found),
            Recalled::Outdated { found: CachedContent::Keys(found), good_at: since }
                if delimiter.is_none() && !found.is_empty() && is_whole(found.len(), limit) =>
            {
                if let Some(patch) = self.patch_list(read_point.repository, prefix, after, since, now).await?
                {
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
                    self.dated_keys(read_point.repository, prefix, delimiter, after, limit).await?;
                (found.into_iter().collect(), at.unwrap_or(now))
            }
        };
        let found = Arc::new(found);
        let mut dependencies = Dependencies::default();
        dependencies.on_records(prefix, after, listed_to(&found, delimiter, limit));
        self.inner.record_cache.put(place, now, dependencies, CachedContent::Keys(Arc::clone(&found)));
        Ok(found)
    }

    /// Finds a blob as [`Store::held_blob`] does. A small blob that a record names is cached with
    /// its bytes, which were verified when they were read.
    #[boxed]
    pub async fn cached_held_blob(
        &self,
        read_point: ReadPoint,
        sha256: Sha256,
    ) -> Result<Option<HeldBlob>, StoreError> {
        let (place, now) = self.place(read_point, RecordCacheKey::Blob(sha256));
        if let Recalled::Good(CachedContent::Blob(blob)) = self.recall(&place, now) {
            return Ok(Some(HeldBlob { blob, named: true }));
        }
        let found = self.held_blob(read_point.repository, sha256).await?;
        if let Some(HeldBlob { blob, named: true }) = &found
            && blob.is_in_memory()
        {
            let mut dependencies = Dependencies::default();
            dependencies.on_blob(blob);
            self.inner.record_cache.put(place, now, dependencies, CachedContent::Blob(blob.clone()));
        }
        Ok(found)
    }

    pub(super) fn recall(&self, place: &CachePlace, now: u64) -> Recalled {
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

    /// Key of a cached read, and the revision for which the result must be valid. This revision
    /// includes commits of this process since the request began.
    pub(super) fn place(&self, read_point: ReadPoint, key: RecordCacheKey) -> (CachePlace, u64) {
        let now = self.inner.changes.latest(read_point.repository, read_point.revision);
        ((read_point.repository, key), now)
    }
}

/// Last listed key of [`Store::keys`], as in [`ended_at`]. With a delimiter the result is `None`,
/// because a cut key stands for all keys up to the next cut key.
pub fn listed_to(found: &KeyList, delimiter: Option<char>, limit: u32) -> Option<&str> {
    let ended = delimiter.is_none() && !is_whole(found.len(), limit);
    found.last().filter(|_| ended)
}

/// True if `count` is below the limit of one call, so that the list has all existing keys.
fn is_whole(count: usize, limit: u32) -> bool {
    count < usize::try_from(limit.min(MAX_KEYS)).unwrap_or(usize::MAX)
}

/// Last key, if the limit of records ended the read. Later records do not affect the result then.
pub fn ended_at(found: &[Entry], limit: u32) -> Option<&str> {
    let full = found.len() >= usize::try_from(limit.min(MAX_SCAN)).unwrap_or(usize::MAX);
    found.last().filter(|_| full).map(|entry| entry.key.as_str())
}
