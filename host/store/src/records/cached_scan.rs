//! Scans of records through the record cache: what is kept of a range is cut, brought up to date by what was touched, or continued by what
//! follows its last.

use std::sync::Arc;

use crate::boxed;
use crate::changes::TouchedRange;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::cache::{Found, Question, Recalled};
use crate::records::cached::Seen;
use crate::records::listing::Listing;
use crate::records::range::{Range, just_after};
use crate::records::read::Dated;
use crate::records::{Entry, MAX_SCAN};
use crate::store::Store;

/// What is asked for.
#[derive(Clone, Copy)]
struct Asked<'a> {
    repository: RepositoryId,
    prefix: &'a str,
    after: Option<&'a str>,
    limit: usize,
}

impl Store {
    /// As [`Store::scan`], all of it as it was at one moment.
    #[boxed]
    pub async fn cached_scan(
        &self,
        seen: Seen,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Arc<[Entry]>, StoreError> {
        let question = Question::Records { prefix: prefix.to_owned(), after: after.map(str::to_owned) };
        let (place, now) = self.place(seen, question);
        let limit = limit.min(MAX_SCAN);
        let asked = Asked {
            repository: seen.repository,
            prefix,
            after,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        };
        let (known, good_at) = match self.recall(&place, now) {
            Recalled::Good(Found::Records(known)) if known.answers(limit) => {
                return Ok(known.first(asked.limit));
            }
            Recalled::Good(Found::Records(known)) => (Some(known), now),
            Recalled::Outdated { found: Found::Records(known), good_at } => {
                let patched = self.patched(asked, &known, good_at, now).await?;
                patched.map_or((None, now), |(list, at)| (Some(list), at))
            }
            _ => (None, now),
        };
        let kept = match known {
            Some(known) if known.answers(limit) => Some((known, good_at)),
            Some(known) => self.continued(asked, known, good_at).await?,
            None => None,
        };
        let (listing, now) = match kept {
            Some(kept) => kept,
            None => {
                let Dated { found, at } = self.dated_scan(seen.repository, prefix, after, limit).await?;
                (Listing::of(found, asked.limit), at.unwrap_or(now))
            }
        };
        let found = listing.first(asked.limit);
        self.inner.record_cache.put(place, now, listing.dependencies(prefix, after), Found::Records(listing));
        Ok(found)
    }

    /// A list that was right at `since`, with what commits touched of it; and the revision at which it is right. None where that is for
    /// the database to say.
    async fn patched(
        &self,
        asked: Asked<'_>,
        known: &Listing,
        since: u64,
        now: u64,
    ) -> Result<Option<(Listing, u64)>, StoreError> {
        let Some((last, mut range)) = known.last().zip(Range::new(asked.prefix, asked.after)) else {
            return Ok(None);
        };
        if known.open {
            range.end = just_after(last);
        }
        let Some(mut patch) = self.patch(asked.repository, &range, since, now).await? else {
            return Ok(None);
        };
        // What stands behind the last may be beyond the bounds of one answer.
        let within = patch.entries.partition_point(|entry| entry.key.as_str() <= last);
        let beyond = patch.entries.split_off(within);
        let entries = patch.of(&known.entries);
        let listing = Listing { entries: entries.into(), open: known.open || !beyond.is_empty() };
        Ok(listing.is_within_bounds().then_some((listing, patch.at)))
    }

    /// A list that was right at `at`, with what follows its last; and the revision at which that is right. None where others changed it
    /// meanwhile.
    async fn continued(
        &self,
        asked: Asked<'_>,
        known: Listing,
        at: u64,
    ) -> Result<Option<(Listing, u64)>, StoreError> {
        let Asked { repository, prefix, after, limit } = asked;
        let Some((last, mut range)) = known.last().zip(Range::new(prefix, after)) else { return Ok(None) };
        let missing = limit.saturating_sub(known.entries.len());
        let missing_limit = u32::try_from(missing).unwrap_or(MAX_SCAN);
        let more = self.dated_scan(repository, prefix, Some(last), missing_limit).await?;
        let now = match more.at {
            Some(now) => {
                range.end = just_after(last);
                now
            }
            // Nothing followed at a revision that is not known: nobody may have changed any of the range up to this one.
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

    /// The repository's revision in the database; none where it is gone.
    async fn revision(&self, repository: RepositoryId) -> Result<Option<u64>, StoreError> {
        let sql = "SELECT revision FROM repositories WHERE id = $1";
        let row = self.inner.db.find(sql, values![repository.0]).await?;
        row.map(|row| row.columns().unsigned("revision")).transpose()
    }
}
