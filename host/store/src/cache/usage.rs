//! When kept answers were last used: remembered, and written together now and then, so that a hit costs no write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::CacheName;
use crate::db::Value;
use crate::error::StoreError;
use crate::ids::{RepositoryId, now_ms};
use crate::store::{Inner, Store};

/// How far behind the truth `last_used_at` may be.
const EVERY: Duration = Duration::from_secs(30);
/// As many are remembered; what is used besides looks as old as it was before.
const MOST: usize = 100_000;

/// What is not yet written: answers and when they were used, in ms since 1970.
#[derive(Default)]
pub(crate) struct CacheUse {
    used: Mutex<HashMap<(RepositoryId, CacheName), i64>>,
}

impl CacheUse {
    /// Starts the task that writes, which ends with the store.
    pub(crate) fn write_now_and_then(store: &Arc<Inner>) {
        let store = Arc::downgrade(store);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                let Some(inner) = store.upgrade() else { return };
                if let Err(problem) = (Store { inner }).write_cache_use().await {
                    tracing::warn!(%problem, "when kept answers were last used could not be written");
                }
            }
        });
    }

    fn take(&self) -> HashMap<(RepositoryId, CacheName), i64> {
        std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Store {
    /// Notes that a kept answer is used now. Costs no SQL.
    pub fn cache_used(&self, repository: RepositoryId, name: &CacheName) {
        let mut used = self.inner.cache_use.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() < MOST {
            used.insert((repository, *name), now_ms());
        }
    }

    /// Writes what [`Store::cache_used`] noted.
    pub async fn write_cache_use(&self) -> Result<(), StoreError> {
        let used = self.inner.cache_use.take();
        if used.is_empty() {
            return Ok(());
        }
        let row = |((repository, name), at): (&(RepositoryId, CacheName), &i64)| {
            [Value::from(repository.0), Value::from(name), Value::from(*at)]
        };
        let rows = used.iter().map(row).collect();
        let before = "WITH used (repository, name, at) AS (VALUES ";
        let after = ") UPDATE cached_answers SET last_used_at = (SELECT u.at FROM used u \
                     WHERE u.repository = cached_answers.repository AND u.name = cached_answers.name) \
                     WHERE (repository, name) IN (SELECT repository, name FROM used)";
        let mut transaction = self.inner.db.begin().await?;
        transaction.execute_rows(before, rows, after).await?;
        transaction.commit().await
    }
}
