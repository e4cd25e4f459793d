//! Which versions tokens fetched, and on which days. As of counters, which version a file is of is found out when it is written.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::DeferredWrite;
use super::downloads::{Downloaded, versions_of};
use crate::activity::day_of;
use crate::db::{Transaction, Value};
use crate::error::StoreError;
use crate::ids::TokenId;

/// Days that one row tells of, its last among them: as many bits. The statement below has the number and their mask too.
pub const FETCH_DAYS: i64 = 60;

/// A file that was sent to who showed a token; its value is when it last was, in ms since 1970.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Fetched {
    pub(crate) token: TokenId,
    pub(crate) what: Downloaded,
}

const INSERT: [&str; 2] = [
    "INSERT INTO fetches (token, repository, name, version, last_day, days) VALUES ",
    " ON CONFLICT (token, repository, name, version) DO UPDATE SET \
      days = CASE WHEN excluded.last_day - fetches.last_day >= 60 THEN 1 \
      WHEN excluded.last_day >= fetches.last_day \
      THEN ((fetches.days << CAST(excluded.last_day - fetches.last_day AS INTEGER)) & 1152921504606846975) | 1 \
      WHEN fetches.last_day - excluded.last_day >= 60 THEN fetches.days \
      ELSE fetches.days | (CAST(1 AS BIGINT) << CAST(fetches.last_day - excluded.last_day AS INTEGER)) END, \
      last_day = CASE WHEN excluded.last_day > fetches.last_day THEN excluded.last_day ELSE fetches.last_day END",
];

impl DeferredWrite for Fetched {
    type Value = i64;
    const INTERVAL: Duration = Duration::from_secs(30);
    /// When there is no room, files are fetched without being remembered.
    const CAPACITY: usize = 100_000;
    const NAME: &'static str = "what tokens fetched";

    fn merge(one: i64, other: i64) -> i64 {
        one.max(other)
    }

    async fn write(fetched: &HashMap<Fetched, i64>, transaction: &mut Transaction) -> Result<(), StoreError> {
        let found = versions_of(fetched.keys().map(|one| &one.what), transaction).await?;
        let mut rows: BTreeMap<(i64, i64, &str, &str), i64> = BTreeMap::new();
        for (number, (one, last)) in (0..).zip(fetched) {
            for (repository, name, version, _) in found.get(&number).into_iter().flatten() {
                let day = rows.entry((one.token.0, *repository, name, version)).or_default();
                *day = (*day).max(day_of(*last));
            }
        }
        let row = |((token, repository, name, version), day): (&(i64, i64, &str, &str), &i64)| {
            let (name, version) = (Value::from(*name), Value::from(*version));
            [
                Value::from(*token),
                Value::from(*repository),
                name,
                version,
                Value::from(*day),
                Value::from(1_i64),
            ]
        };
        let [before, after] = INSERT;
        transaction.execute_rows(before, rows.iter().map(row).collect(), after).await.map(drop)
    }
}
