//! Versions that a token fetched, by day.

use crate::activity::day_of;
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{RepositoryId, TokenId};
use crate::store::Store;
use crate::write_behind::FETCH_DAYS;

/// Rows of one transaction. The number is small so that publishes do not wait long.
const AT_ONCE: i64 = 400;
const OF_TOKEN: &str = "SELECT name, version, last_day, days FROM fetches WHERE token = $1 AND repository = $2 \
    AND (name, version) > ($3, $4) ORDER BY name, version LIMIT $5";
const FORGET: &str = "DELETE FROM fetches WHERE (token, repository, name, version) IN \
    (SELECT token, repository, name, version FROM fetches WHERE last_day < $1 ORDER BY last_day LIMIT $2)";

/// A range of whole days in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Days {
    first: i64,
    last: i64,
}

impl Days {
    /// Days from `since` to `until`, both in ms since 1970.
    #[must_use]
    pub fn between(since: i64, until: i64) -> Days {
        Days { first: day_of(since), last: day_of(until) }
    }

    /// True if the range contains a fetch day. Bit n of `days` stands for the n-th day before
    /// `last_day`.
    fn meet(self, last_day: i64, days: i64) -> bool {
        (0..FETCH_DAYS)
            .any(|bit| days >> bit & 1 == 1 && (self.first..=self.last).contains(&(last_day - bit)))
    }
}

/// A page of the versions that a token fetched.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FetchedVersions {
    /// Pairs of package and version, in order.
    pub versions: Vec<(String, String)>,
    /// Start of the next page (excluded); `None` on the last page.
    pub next: Option<(String, String)>,
}

impl Store {
    /// Versions of a repository that a token fetched on these days. One page examines at most
    /// `limit` of all versions that the token fetched there, beginning after `after`, so it may
    /// return fewer.
    #[boxed]
    pub async fn fetched_versions(
        &self,
        token: TokenId,
        repository: RepositoryId,
        days: Days,
        after: &(String, String),
        limit: u32,
    ) -> Result<FetchedVersions, StoreError> {
        let (name, version) = after;
        let values = values![token.0, repository.0, name.as_str(), version.as_str(), i64::from(limit)];
        let rows = self.inner.db.fetch(OF_TOKEN, values).await?;
        let mut page = FetchedVersions::default();
        for row in &rows {
            let (version, last_day, bits) = fetched(row)?;
            page.next = Some(version.clone());
            if days.meet(last_day, bits) {
                page.versions.push(version);
            }
        }
        if rows.len() < limit as usize {
            page.next = None;
        }
        Ok(page)
    }

    /// Deletes entries whose last fetch was more than `days` days ago; returns how many.
    #[boxed]
    pub async fn forget_fetches(&self, days: i64) -> Result<u64, StoreError> {
        let before = day_of(self.now_ms()) - days + 1;
        self.inner.db.delete_in_pieces(FORGET, before, AT_ONCE).await
    }
}

fn fetched(row: &Row) -> Result<((String, String), i64, i64), StoreError> {
    let mut columns = row.columns();
    let version = (columns.text("name")?, columns.text("version")?);
    Ok((version, columns.int("last_day")?, columns.int("days")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_meet_where_a_bit_stands_for_one_of_them() {
        const DAY: i64 = 24 * 60 * 60 * 1000;
        let days = |first: i64, last: i64| Days::between(first * DAY + 5, last * DAY + 7);
        // Fetched on the days 100, 98 and 41.
        let bits = 1 | 1 << 2 | 1 << 59;
        for (first, last, met) in [
            (100, 100, true),
            (99, 99, false),
            (98, 98, true),
            (42, 97, false),
            (41, 41, true),
            (0, 40, false),
            (101, 200, false),
            (0, 200, true),
            (100, 99, false),
        ] {
            assert_eq!(days(first, last).meet(100, bits), met, "{first} to {last}");
        }
    }
}
