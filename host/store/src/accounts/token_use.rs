//! When tokens and access keys were last used.

use std::collections::HashMap;
use std::time::Duration;

use crate::db::{Transaction, Value};
use crate::error::StoreError;
use crate::ids::{AccessKeyId, TokenId};
use crate::noted::{Note, Notes};
use crate::store::{Inner, Store};

/// What was used. In ms since 1970 is noted of it when it last was.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum UsedCredential {
    Token(TokenId),
    Key(AccessKeyId),
}

impl Note for UsedCredential {
    type What = i64;
    const EVERY: Duration = Duration::from_secs(30);
    /// Of credentials there are as many as members make: what is used besides looks as old as it was before.
    const MOST: usize = 1_000_000;
    const NAME: &'static str = "when credentials were last used";

    fn notes(store: &Inner) -> &Notes<UsedCredential> {
        &store.used_credentials
    }

    fn merge(one: i64, other: i64) -> i64 {
        one.max(other)
    }

    async fn write(
        used: &HashMap<UsedCredential, i64>,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let (mut tokens, mut keys) = (Vec::new(), Vec::new());
        for (what, at) in used {
            match what {
                UsedCredential::Token(id) => tokens.push([Value::from(id.0), Value::from(*at)]),
                UsedCredential::Key(id) => keys.push([Value::from(id.0), Value::from(*at)]),
            }
        }
        let before = "WITH used (id, at) AS (VALUES ";
        let of_tokens = ") UPDATE tokens SET last_used_at = (SELECT u.at FROM used u WHERE u.id = tokens.id) \
                         WHERE id IN (SELECT id FROM used)";
        transaction.execute_rows(before, tokens, of_tokens).await?;
        let of_keys = ") UPDATE access_keys SET last_used_at = (SELECT u.at FROM used u WHERE u.id = access_keys.id) \
                       WHERE id IN (SELECT id FROM used)";
        transaction.execute_rows(before, keys, of_keys).await.map(drop)
    }
}

impl Store {
    /// Notes that a token was used at `now` (ms since 1970). Costs no SQL: written every 30 s, and when the store is closed.
    pub fn token_used(&self, id: TokenId, now: i64) {
        self.inner.used_credentials.add(UsedCredential::Token(id), now);
    }

    /// Notes that an access key was used at `now` (ms since 1970), as [`Store::token_used`] does for a token.
    pub fn access_key_used(&self, id: AccessKeyId, now: i64) {
        self.inner.used_credentials.add(UsedCredential::Key(id), now);
    }

    /// Writes what [`Store::token_used`] and [`Store::access_key_used`] noted. `Unavailable` when it could not be written; it is
    /// kept for the next time.
    pub async fn write_token_use(&self) -> Result<(), StoreError> {
        self.write_notes::<UsedCredential>().await
    }
}
