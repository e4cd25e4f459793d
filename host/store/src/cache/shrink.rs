//! Keeping a proxy's cache within its bound: what was not used for the longest time goes first.

use crate::db::{Value, placeholders, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Rows looked at in one go.
const PAGE: i64 = 500;

impl Store {
    /// Keeps no more than `most` bytes of answers; how many had to go.
    pub async fn shrink_cache(&self, repository: RepositoryId, most: u64) -> Result<u64, StoreError> {
        if self.cache_totals(repository).await?.bytes <= most {
            return Ok(0);
        }
        // What was used just now must not look old.
        self.write_cache_use().await?;
        let mut removed = 0;
        loop {
            let over = self.cache_totals(repository).await?.bytes.saturating_sub(most);
            let names = self.oldest(repository, over).await?;
            if over == 0 || names.is_empty() {
                return Ok(removed);
            }
            removed += self.remove_cached(repository, names).await?;
        }
    }

    /// The oldest that together have these bytes, at most a page.
    async fn oldest(&self, repository: RepositoryId, bytes: u64) -> Result<Vec<Value>, StoreError> {
        let sql = "SELECT name, size FROM cached_answers WHERE repository = $1 ORDER BY last_used_at, name LIMIT $2";
        let (mut names, mut sum) = (Vec::new(), 0_u64);
        for row in &self.inner.db.fetch(sql, values![repository.0, PAGE]).await? {
            let mut columns = row.columns();
            if sum >= bytes {
                break;
            }
            names.push(Value::from(columns.vec("name")?));
            sum = sum.saturating_add(columns.unsigned("size")?);
        }
        Ok(names)
    }

    async fn remove_cached(&self, repository: RepositoryId, names: Vec<Value>) -> Result<u64, StoreError> {
        let list = placeholders(1, names.len());
        let sql =
            format!("DELETE FROM cached_answers WHERE name IN {list} AND repository = ${}", names.len() + 1);
        self.inner.db.execute(sql, [names, values![repository.0]].concat()).await
    }
}
