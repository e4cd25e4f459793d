//! When tokens and access keys were last used: remembered, and written together now and then, so that a request costs no
//! write.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::db::Value;
use crate::error::StoreError;
use crate::ids::{AccessKeyId, TokenId};
use crate::store::{Inner, Store};

/// How far behind the truth `last_used_at` may be.
const EVERY: Duration = Duration::from_secs(30);

/// What was used.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Used {
    Token(TokenId),
    Key(AccessKeyId),
}

/// What is not yet written: credentials and when they were used, in ms since 1970.
#[derive(Default)]
pub(crate) struct TokenUse {
    used: Mutex<HashMap<Used, i64>>,
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
                    tracing::warn!(%problem, "when credentials were last used could not be written");
                }
            }
        });
    }

    fn take(&self) -> HashMap<Used, i64> {
        std::mem::take(&mut *self.used.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, what: Used, at: i64) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let last = used.entry(what).or_insert(at);
        *last = at.max(*last);
    }
}

impl Store {
    /// Notes that a token was used at `now` (ms since 1970). Costs no SQL: written every 30 s, and when the store is closed.
    pub fn token_used(&self, id: TokenId, now: i64) {
        self.inner.token_use.note(Used::Token(id), now);
    }

    /// Notes that an access key was used at `now` (ms since 1970), as [`Store::token_used`] does for a token.
    pub fn access_key_used(&self, id: AccessKeyId, now: i64) {
        self.inner.token_use.note(Used::Key(id), now);
    }

    /// Writes what [`Store::token_used`] and [`Store::access_key_used`] noted.
    pub async fn write_token_use(&self) -> Result<(), StoreError> {
        let used = self.inner.token_use.take();
        if used.is_empty() {
            return Ok(());
        }
        let done = self.write_uses(&used).await;
        if done.is_err() {
            used.into_iter().for_each(|(what, at)| self.inner.token_use.note(what, at));
        }
        done
    }

    async fn write_uses(&self, used: &HashMap<Used, i64>) -> Result<(), StoreError> {
        let (mut tokens, mut keys) = (Vec::new(), Vec::new());
        for (what, at) in used {
            match what {
                Used::Token(id) => tokens.push([Value::from(id.0), Value::from(*at)]),
                Used::Key(id) => keys.push([Value::from(id.0), Value::from(*at)]),
            }
        }
        let mut transaction = self.inner.db.begin().await?;
        let generation = self.generation();
        let before = "WITH used (id, at) AS (VALUES ";
        let of_tokens = ") UPDATE tokens SET last_used_at = (SELECT u.at FROM used u WHERE u.id = tokens.id) \
                         WHERE id IN (SELECT id FROM used)";
        transaction.execute_rows(before, tokens, of_tokens).await?;
        let of_keys = ") UPDATE access_keys SET last_used_at = (SELECT u.at FROM used u WHERE u.id = access_keys.id) \
                       WHERE id IN (SELECT id FROM used)";
        transaction.execute_rows(before, keys, of_keys).await?;
        transaction.commit().await?;
        self.nothing_changed_since(generation);
        Ok(())
    }
}
