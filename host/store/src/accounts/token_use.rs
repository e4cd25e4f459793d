//! When tokens were last used: remembered, and written together now and then, so that a request costs no write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::db::Value;
use crate::error::StoreError;
use crate::ids::TokenId;
use crate::store::{Inner, Store};

/// How far behind the truth `last_used_at` may be.
const EVERY: Duration = Duration::from_secs(30);

/// What is not yet written: tokens and when they were used, in ms since 1970.
#[derive(Default)]
pub(crate) struct TokenUse {
    used: Mutex<HashMap<TokenId, i64>>,
}

impl TokenUse {
    /// Starts the task that writes, which ends with the store.
    pub(crate) fn write_now_and_then(store: &Arc<Inner>) {
        let store = Arc::downgrade(store);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(EVERY).await;
                let Some(inner) = store.upgrade() else { return };
                if let Err(problem) = (Store { inner }).write_token_use().await {
                    tracing::warn!(%problem, "when tokens were last used could not be written");
                }
            }
        });
    }

    fn take(&self) -> HashMap<TokenId, i64> {
        std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, id: TokenId, at: i64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let last = used.entry(id).or_insert(at);
        *last = at.max(*last);
    }
}

impl Store {
    /// Notes that a token was used at `now` (ms since 1970). Costs no SQL: written every 30 s, and when the store is closed.
    pub fn token_used(&self, id: TokenId, now: i64) {
        self.inner.token_use.note(id, now);
    }

    /// Writes what [`Store::token_used`] noted.
    pub async fn write_token_use(&self) -> Result<(), StoreError> {
        let used = self.inner.token_use.take();
        if used.is_empty() {
            return Ok(());
        }
        let done = self.write_uses(&used).await;
        if done.is_err() {
            used.into_iter().for_each(|(id, at)| self.inner.token_use.note(id, at));
        }
        done
    }

    async fn write_uses(&self, used: &HashMap<TokenId, i64>) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let rows = used.iter().map(|(id, at)| [Value::from(id.0), Value::from(*at)]).collect();
        let before = "WITH used (token, at) AS (VALUES ";
        let after = ") UPDATE tokens SET last_used_at = (SELECT u.at FROM used u WHERE u.token = tokens.id) \
                     WHERE id IN (SELECT token FROM used)";
        transaction.execute_rows(before, rows, after).await?;
        transaction.commit().await
    }
}
