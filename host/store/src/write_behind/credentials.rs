//! Last uses of tokens, access keys and API tokens.

use std::collections::HashMap;
use std::time::Duration;

use super::DeferredWrite;
use crate::db::{Transaction, Value};
use crate::error::StoreError;
use crate::ids::{AccessKeyId, ApiTokenId, TokenId};

/// A used credential. The value is the time of its last use, in ms since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum UsedCredential {
    Token(TokenId),
    Key(AccessKeyId),
    ApiToken(ApiTokenId),
}

impl DeferredWrite for UsedCredential {
    type Value = i64;
    const INTERVAL: Duration = Duration::from_secs(30);
    /// Maximum pending uses. This number is hardly reached because only members create credentials.
    /// Above it, the last use of further credentials is not updated.
    const CAPACITY: usize = 1_000_000;
    const NAME: &'static str = "when credentials were last used";

    fn merge(one: i64, other: i64) -> i64 {
        one.max(other)
    }

    async fn write(
        used: &HashMap<UsedCredential, i64>,
        transaction: &mut Transaction,
    ) -> Result<(), StoreError> {
        let (mut tokens, mut keys, mut api_tokens) = (Vec::new(), Vec::new(), Vec::new());
        for (what, at) in used {
            match what {
                UsedCredential::Token(id) => tokens.push([Value::from(id.0), Value::from(*at)]),
                UsedCredential::Key(id) => keys.push([Value::from(id.0), Value::from(*at)]),
                UsedCredential::ApiToken(id) => api_tokens.push([Value::from(id.0), Value::from(*at)]),
            }
        }
        let before = "WITH used (id, at) AS (VALUES ";
        let of_tokens = ") UPDATE tokens SET last_used_at = used.at FROM used WHERE tokens.id = used.id";
        transaction.execute_rows(before, tokens, of_tokens).await?;
        let of_keys =
            ") UPDATE access_keys SET last_used_at = used.at FROM used WHERE access_keys.id = used.id";
        transaction.execute_rows(before, keys, of_keys).await?;
        let of_api_tokens =
            ") UPDATE api_tokens SET last_used_at = used.at FROM used WHERE api_tokens.id = used.id";
        transaction.execute_rows(before, api_tokens, of_api_tokens).await.map(drop)
    }
}
