//! What is kept, for people: a page at a time, and how much it is.

use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// A kept answer as people see it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheEntry {
    /// `GET` or `HEAD`.
    pub method: String,
    /// As it was asked.
    pub target: String,
    /// The upstream's status.
    pub status: u16,
    /// Bytes of its content.
    pub size: u64,
    /// When it came, in ms since 1970.
    pub fetched_at: i64,
    /// When the upstream last said that it is still the answer.
    pub validated_at: i64,
    /// When it was last used; up to half a minute behind.
    pub last_used_at: i64,
}

/// How much a repository keeps.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CacheTotals {
    /// Answers.
    pub entries: u64,
    /// Bytes of their content together.
    pub bytes: u64,
}

const PAGE: &str = "SELECT method, target, status, size, fetched_at, validated_at, last_used_at FROM cached_answers \
    WHERE repository = $1 AND target >= $2 AND substr(target, 1, CAST($3 AS INTEGER)) = $2 \
    ORDER BY target, name LIMIT $4 OFFSET $5";

impl Store {
    /// Kept answers whose target begins with `prefix`, by their targets; `offset` of them are passed over.
    #[boxed]
    pub async fn cache_page(
        &self,
        repository: RepositoryId,
        prefix: &str,
        offset: u32,
        limit: u32,
    ) -> Result<Vec<CacheEntry>, StoreError> {
        let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
        let values = values![repository.0, prefix, length, i64::from(limit), i64::from(offset)];
        self.inner.db.fetch(PAGE, values).await?.iter().map(entry).collect()
    }

    /// How much is kept.
    #[boxed]
    pub async fn cache_totals(&self, repository: RepositoryId) -> Result<CacheTotals, StoreError> {
        let sql = "SELECT COUNT(*) AS entries, CAST(COALESCE(SUM(size), 0) AS BIGINT) AS bytes \
                   FROM cached_answers WHERE repository = $1";
        let row = self.inner.db.fetch_one(sql, values![repository.0]).await?;
        row.map_or(Ok(CacheTotals::default()), |row| {
            let mut columns = row.columns();
            Ok(CacheTotals { entries: columns.unsigned("entries")?, bytes: columns.unsigned("bytes")? })
        })
    }

    /// Keeps no longer what begins with `prefix`; how many answers that were. What was made of any answer of the repository
    /// counts as changed, on all servers: they may remember more of the upstream than the database. The bytes go with the next
    /// collection of garbage that finds nothing else naming them.
    #[boxed]
    pub async fn purge_cache(&self, repository: RepositoryId, prefix: &str) -> Result<u64, StoreError> {
        let sql = "DELETE FROM cached_answers WHERE repository = $1 AND target >= $2 \
                   AND substr(target, 1, CAST($3 AS INTEGER)) = $2";
        let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
        let mut transaction = self.inner.db.begin().await?;
        // The log of changes learns nothing of this revision: it takes all of the repository as changed.
        let revision = "UPDATE repositories SET revision = revision + 1 WHERE id = $1";
        transaction.execute(revision, values![repository.0]).await?;
        let purged = transaction.execute(sql, values![repository.0, prefix, length]).await?;
        transaction.commit().await?;
        Ok(purged)
    }
}

fn entry(row: &Row) -> Result<CacheEntry, StoreError> {
    let mut columns = row.columns();
    Ok(CacheEntry {
        method: columns.text("method")?,
        target: columns.text("target")?,
        status: u16::try_from(columns.unsigned("status")?).unwrap_or(u16::MAX),
        size: columns.unsigned("size")?,
        fetched_at: columns.int("fetched_at")?,
        validated_at: columns.int("validated_at")?,
        last_used_at: columns.int("last_used_at")?,
    })
}
