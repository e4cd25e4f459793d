//! Pages and totals of a cache for the portal.

use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// A cached response in a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheEntry {
    /// Request method, `GET` or `HEAD`.
    pub method: String,
    /// Request target as it was sent.
    pub target: String,
    /// Status code of the response.
    pub status: u16,
    /// Size of the body in bytes.
    pub size: u64,
    /// Time of arrival, in ms since 1970.
    pub fetched_at: i64,
    /// Time when the upstream last confirmed the response.
    pub validated_at: i64,
    /// Time of the last use; up to half a minute behind.
    pub last_used_at: i64,
}

/// Totals of the cache of a repository.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CacheTotals {
    /// Number of all cached responses.
    pub entries: u64,
    /// Total bytes of their bodies.
    pub bytes: u64,
}

const PAGE: &str = "SELECT method, target, status, size, fetched_at, validated_at, last_used_at FROM cached_answers \
    WHERE repository = $1 AND target >= $2 AND substr(target, 1, CAST($3 AS INTEGER)) = $2 \
    ORDER BY target, name LIMIT $4 OFFSET $5";

impl Store {
    /// Cached responses whose target begins with `prefix`, ordered by target, after the first
    /// `offset`.
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

    /// Removes all responses whose target begins with `prefix`; returns how many. All answers made
    /// from any response of the repository become invalid on all servers. The whole repository
    /// counts as changed, because servers may hold answers from responses that the database no
    /// longer has.
    ///
    /// Garbage collection removes the bytes once nothing else names them.
    #[boxed]
    pub async fn purge_cache(&self, repository: RepositoryId, prefix: &str) -> Result<u64, StoreError> {
        let sql = "DELETE FROM cached_answers WHERE repository = $1 AND target >= $2 \
                   AND substr(target, 1, CAST($3 AS INTEGER)) = $2";
        let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
        let mut transaction = self.inner.db.begin().await?;
        // This revision is not in the change log, so the whole repository counts as changed.
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
