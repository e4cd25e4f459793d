//! Scans of records through the record cache. A cached list of a range is shortened, updated with
//! touched records, or continued after its last record.

use std::sync::Arc;

use crate::boxed;
use crate::changes::TouchedRange;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::cache::{CachedContent, Recalled, RecordCacheKey};
use crate::records::cached::ReadPoint;
use crate::records::listing::Listing;
use crate::records::range::{Range, just_after};
use crate::records::read::Dated;
use crate::records::{Entry, MAX_SCAN};
use crate::store::Store;

#[derive(Clone, Copy)]
struct ScanQuery<'a> {
    repository: RepositoryId,
    prefix: &'a str,
    after: Option<&'a str>,
    limit: usize,
}

impl Store {
    /// Scans records as [`Store::scan`] does. The result is the state at one moment.
    #[boxed]
    pub async fn cached_scan(
        &self,
        read_point: ReadPoint,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Arc<[Entry]>, StoreError> {
        let key = RecordCacheKey::Records { prefix: prefix.to_owned(), after: after.map(str::to_owned) };
        let (place, now) = self.place(read_point, key);
        let limit = limit.min(MAX_SCAN);
        let query = ScanQuery {
            repository: read_point.repository,
            prefix,
            after,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        };
        let (known, good_at) = match self.recall(&place, now) {
            Recalled::Good(CachedContent::Records(known)) if known.answers(limit) => {
                return Ok(known.first(query.limit));
            }
            Recalled::Good(CachedContent::Records(known)) => (Some(known), now),
            Recalled::Outdated { found: CachedContent::Records(known), good_at } => {
                let patched = self.patched(query, &known, good_at, now).await?;
                patched.map_or((None, now), |(list, at)| (Some(list), at))
            }
            _ => (None, now),
        };
        let updated = match known {
            Some(known) if known.answers(limit) => Some((known, good_at)),
            Some(known) => self.continued(query, known, good_at).await?,
            None => None,
        };
        let (listing, now) = match updated {
            Some(updated) => updated,
            None => {
                let Dated { found, at } =
                    self.dated_scan(read_point.repository, prefix, after, limit).await?;
                (Listing::of(found, query.limit), at.unwrap_or(now))
            }
        };
        let found = listing.first(query.limit);
        self.inner.record_cache.put(
            place,
            now,
            listing.dependencies(prefix, after),
            CachedContent::Records(listing),
        );
        Ok(found)
    }

    /// Updates a list that was valid at `since` with the records that later commits touched.
    /// Returns the list and its revision, or `None` if the database must be read.
    async fn patched(
        &self,
        query: ScanQuery<'_>,
        known: &Listing,
        since: u64,
        now: u64,
    ) -> Result<Option<(Listing, u64)>, StoreError> {
        let Some((last, mut range)) = known.last().zip(Range::new(query.prefix, query.after)) else {
            return Ok(None);
        };
        if known.open {
            range.end = just_after(last);
        }
        let Some(mut patch) = self.patch(query.repository, &range, since, now).await? else {
            return Ok(None);
        };
        // Records after the last one may exceed the limits of one result.
        let within = patch.entries.partition_point(|entry| entry.key.as_str() <= last);
        let beyond = patch.entries.split_off(within);
        let entries = patch.of(&known.entries);
        let listing = Listing { entries: entries.into(), open: known.open || !beyond.is_empty() };
        Ok(listing.is_within_bounds().then_some((listing, patch.at)))
    }

    /// Continues a list that was valid at `at` with the records after its last one. Returns the
    /// list and its revision, or `None` if commits changed it meanwhile.
    async fn continued(
        &self,
        query: ScanQuery<'_>,
        known: Listing,
        at: u64,
    ) -> Result<Option<(Listing, u64)>, StoreError> {
        let ScanQuery { repository, prefix, after, limit } = query;
        let Some((last, mut range)) = known.last().zip(Range::new(prefix, after)) else { return Ok(None) };
        let missing = limit.saturating_sub(known.entries.len());
        let missing_limit = u32::try_from(missing).unwrap_or(MAX_SCAN);
        let more = self.dated_scan(repository, prefix, Some(last), missing_limit).await?;
        let now = match more.at {
            Some(now) => {
                range.end = just_after(last);
                now
            }
            // The statement returned no row, and so no revision. Use the present revision, and
            // require that no commit up to it touched the range.
            None => match self.revision(repository).await? {
                Some(now) => now,
                None => return Ok(None),
            },
        };
        let touched = TouchedRange { range: &range, since: at, now, most: 0 };
        if at != now && self.inner.changes.touched(repository, touched).is_none() {
            return Ok(None);
        }
        let open = more.found.len() >= missing;
        let entries = known.entries.iter().cloned().chain(more.found).collect();
        let listing = Listing { entries, open };
        Ok(listing.is_within_bounds().then_some((listing, now)))
    }

    /// Revision of the repository in the database; `None` if the repository is gone.
    async fn revision(&self, repository: RepositoryId) -> Result<Option<u64>, StoreError> {
        let sql = "SELECT revision FROM repositories WHERE id = $1";
        let row = self.inner.db.find(sql, values![repository.0]).await?;
        row.map(|row| row.columns().unsigned("revision")).transpose()
    }
}
