//! Last uses of cached responses.

use std::collections::HashMap;
use std::time::Duration;

use super::DeferredWrite;
use crate::db::{Transaction, Value};
use crate::error::StoreError;
use crate::ids::{CacheName, RepositoryId};

/// A used cached response. The value is the time of its last use, in ms since 1970.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct UsedAnswer(pub(crate) RepositoryId, pub(crate) CacheName);

// A join finds each row by its whole key. `IN` over several columns would scan all responses of the
// repository.
pub(crate) const USED: [&str; 2] = [
    "WITH used (repository, name, at) AS (VALUES ",
    ") UPDATE cached_answers SET last_used_at = used.at FROM used \
      WHERE cached_answers.repository = used.repository AND cached_answers.name = used.name",
];

impl DeferredWrite for UsedAnswer {
    type Value = i64;
    const INTERVAL: Duration = Duration::from_secs(30);
    /// Maximum pending uses. Above it, the last use of further responses is not updated.
    const CAPACITY: usize = 100_000;
    const NAME: &'static str = "when cached responses were last used";

    fn merge(one: i64, other: i64) -> i64 {
        one.max(other)
    }

    async fn write(used: &HashMap<UsedAnswer, i64>, transaction: &mut Transaction) -> Result<(), StoreError> {
        let row = |(UsedAnswer(repository, name), at): (&UsedAnswer, &i64)| {
            [Value::from(repository.0), Value::from(name), Value::from(*at)]
        };
        let [before, after] = USED;
        transaction.execute_rows(before, used.iter().map(row).collect(), after).await.map(drop)
    }
}
