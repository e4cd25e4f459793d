//! Versions that tokens fetched, with the days.

use std::collections::BTreeMap;

use crate::activity::day_of;
use crate::db::{Transaction, Value};
use crate::error::StoreError;
use crate::ids::TokenId;

/// Number of days in one row, one bit each, counted back from the row's last day. The statement
/// below repeats this number and its bit mask.
pub const FETCH_DAYS: i64 = 60;

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

/// A version that a token fetched: token, repository, package, version.
pub(super) type TokenFetch<'a> = (TokenId, i64, &'a str, &'a str);

/// Records these fetches, each with its time in ms since 1970.
pub(super) async fn remember<'a>(
    fetched: impl Iterator<Item = (TokenFetch<'a>, i64)>,
    transaction: &mut Transaction,
) -> Result<(), StoreError> {
    let mut rows: BTreeMap<(i64, i64, &str, &str), i64> = BTreeMap::new();
    for ((token, repository, name, version), at) in fetched {
        let day = rows.entry((token.0, repository, name, version)).or_default();
        *day = (*day).max(day_of(at));
    }
    let row = |((token, repository, name, version), day): (&(i64, i64, &str, &str), &i64)| {
        let (name, version) = (Value::from(*name), Value::from(*version));
        [Value::from(*token), Value::from(*repository), name, version, Value::from(*day), Value::from(1_i64)]
    };
    let [before, after] = INSERT;
    transaction.execute_rows(before, rows.iter().map(row).collect(), after).await.map(drop)
}
