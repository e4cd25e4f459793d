//! When kept answers were last used.

use std::collections::HashMap;
use std::time::Duration;

use super::CacheName;
use crate::db::{Transaction, Value};
use crate::error::StoreError;
use crate::ids::{RepositoryId, now_ms};
use crate::noted::{Note, Notes};
use crate::store::{Inner, Store};

/// The answer that was used. In ms since 1970 is noted of it when it last was.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct UsedAnswer(RepositoryId, CacheName);

impl Note for UsedAnswer {
    type What = i64;
    const EVERY: Duration = Duration::from_secs(30);
    /// What is used besides looks as old as it was before.
    const MOST: usize = 100_000;
    const NAME: &'static str = "when kept answers were last used";

    fn notes(store: &Inner) -> &Notes<UsedAnswer> {
        &store.used_answers
    }

    fn merge(one: i64, other: i64) -> i64 {
        one.max(other)
    }

    async fn write(used: &HashMap<UsedAnswer, i64>, transaction: &mut Transaction) -> Result<(), StoreError> {
        let row = |(UsedAnswer(repository, name), at): (&UsedAnswer, &i64)| {
            [Value::from(repository.0), Value::from(name), Value::from(*at)]
        };
        let before = "WITH used (repository, name, at) AS (VALUES ";
        let after = ") UPDATE cached_answers SET last_used_at = (SELECT u.at FROM used u \
                     WHERE u.repository = cached_answers.repository AND u.name = cached_answers.name) \
                     WHERE (repository, name) IN (SELECT repository, name FROM used)";
        transaction.execute_rows(before, used.iter().map(row).collect(), after).await.map(drop)
    }
}

impl Store {
    /// Notes that a kept answer is used now. Costs no SQL: written every 30 s, and when the store is closed.
    pub fn cache_used(&self, repository: RepositoryId, name: &CacheName) {
        self.inner.used_answers.add(UsedAnswer(repository, *name), now_ms());
    }

    /// Writes what [`Store::cache_used`] noted. `Unavailable` when it could not be written; it is kept for the next time.
    pub async fn write_cache_use(&self) -> Result<(), StoreError> {
        self.write_notes::<UsedAnswer>().await
    }
}
