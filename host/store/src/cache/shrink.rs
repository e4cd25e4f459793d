//! Eviction of the least recently used responses from a proxy's cache.

use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{CacheName, RepositoryId};
use crate::store::Store;

/// Rows handled in one pass.
const PAGE: i64 = 500;

impl Store {
    /// Evicts responses until at most `most` bytes are left; returns how many were removed.
    #[boxed]
    pub async fn shrink_cache(&self, repository: RepositoryId, most: u64) -> Result<u64, StoreError> {
        if self.cache_totals(repository).await?.bytes <= most {
            return Ok(0);
        }
        // Writes pending uses first, so that recently used responses do not look old.
        self.write_cache_use().await?;
        let mut removed = 0;
        loop {
            let over = self.cache_totals(repository).await?.bytes.saturating_sub(most);
            let names = self.oldest(repository, over).await?;
            if over == 0 || names.is_empty() {
                return Ok(removed);
            }
            self.uncache_all(repository, &names).await?;
            removed += names.len() as u64;
        }
    }

    /// The least recently used responses that together have at least this many bytes, at most one
    /// page.
    async fn oldest(&self, repository: RepositoryId, bytes: u64) -> Result<Vec<CacheName>, StoreError> {
        let sql = "SELECT name, size FROM cached_answers WHERE repository = $1 ORDER BY last_used_at, name LIMIT $2";
        let (mut names, mut sum) = (Vec::new(), 0_u64);
        for row in &self.inner.db.fetch(sql, values![repository.0, PAGE]).await? {
            let mut columns = row.columns();
            if sum >= bytes {
                break;
            }
            names.push(columns.hash("name")?);
            sum = sum.saturating_add(columns.unsigned("size")?);
        }
        Ok(names)
    }
}
