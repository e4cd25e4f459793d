//! Which versions tokens fetched, and on which days.

use std::collections::{BTreeMap, HashMap};

use super::downloads::{Downloaded, Downloads, File};
use crate::activity::day_of;
use crate::db::{Transaction, Value};
use crate::error::StoreError;

/// Days that one row tells of, its last among them: as many bits. The statement below has the number and their mask too.
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

/// Remembers which versions these were of the tokens that are named, where `found` has their files by their place.
pub(super) async fn remember(
    fetched: &HashMap<Downloaded, Downloads>,
    found: &HashMap<i64, Vec<File>>,
    transaction: &mut Transaction,
) -> Result<(), StoreError> {
    let mut rows: BTreeMap<(i64, i64, &str, &str), i64> = BTreeMap::new();
    for (number, (what, downloads)) in (0..).zip(fetched) {
        let Some(token) = what.token else { continue };
        for (repository, name, version, _) in found.get(&number).into_iter().flatten() {
            let day = rows.entry((token.0, *repository, name, version)).or_default();
            *day = (*day).max(day_of(downloads.last));
        }
    }
    let row = |((token, repository, name, version), day): (&(i64, i64, &str, &str), &i64)| {
        let (name, version) = (Value::from(*name), Value::from(*version));
        [Value::from(*token), Value::from(*repository), name, version, Value::from(*day), Value::from(1_i64)]
    };
    let [before, after] = INSERT;
    transaction.execute_rows(before, rows.iter().map(row).collect(), after).await.map(drop)
}
