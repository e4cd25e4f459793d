//! Import and removal of advisories, in pieces of one transaction each.

use std::collections::HashMap;

use super::folded;
use crate::boxed;
use crate::db::{MultiRow, Transaction, Value, values};
use crate::error::StoreError;
use crate::store::Store;

/// An advisory to be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdvisoryRow {
    pub id: String,
    /// Time of the last change, in ms since 1970.
    pub modified: i64,
    /// Time of the withdrawal, in ms since 1970.
    pub withdrawn: Option<i64>,
    /// Severity from 0 (unknown) to 4 (critical).
    pub severity: i64,
    /// True for an advisory about malware.
    pub malware: bool,
    /// Summary that fits on one line.
    pub summary: String,
    /// The whole advisory record as JSON.
    pub record: String,
    /// Affected packages as ecosystem and name.
    pub packages: Vec<(String, String)>,
}

/// Counts of rows by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdvisoryPut {
    /// Rows that did not exist before.
    pub added: u64,
    /// Rows that replaced an older version.
    pub changed: u64,
    /// Rows that were not newer than the stored version.
    pub unchanged: u64,
}

impl Store {
    /// Writes advisories that are new, or newer than the stored ones of the same id. Pass a few
    /// hundred rows at a time.
    #[boxed]
    pub async fn put_advisories(&self, rows: Vec<AdvisoryRow>) -> Result<AdvisoryPut, StoreError> {
        // If two rows have the same id, the later row is written unless its `modified` is older.
        let mut by_id: HashMap<String, AdvisoryRow> = HashMap::with_capacity(rows.len());
        let mut put = AdvisoryPut::default();
        for row in rows {
            match by_id.get(&row.id) {
                Some(other) if other.modified > row.modified => put.unchanged += 1,
                Some(_) => {
                    put.unchanged += 1;
                    by_id.insert(row.id.clone(), row);
                }
                None => drop(by_id.insert(row.id.clone(), row)),
            }
        }
        let mut transaction = self.inner.db.begin().await?;
        // Concurrent imports wait here, so the comparison below sees the current rows.
        next_number(&mut transaction, self.now_ms()).await?;
        let there = modified(&mut transaction, by_id.keys()).await?;
        let mut rows: Vec<AdvisoryRow> = Vec::with_capacity(by_id.len());
        for row in by_id.into_values() {
            match there.get(&row.id) {
                None => put.added += 1,
                Some(modified) if *modified < row.modified => put.changed += 1,
                Some(_) => {
                    put.unchanged += 1;
                    continue;
                }
            }
            rows.push(row);
        }
        if rows.is_empty() {
            return Ok(put);
        }
        rows.sort_by(|one, other| one.id.cmp(&other.id));
        write(&mut transaction, rows).await?;
        transaction.commit().await?;
        Ok(put)
    }

    /// Removes the advisories of these ids; returns how many existed.
    #[boxed]
    pub async fn remove_advisories(&self, ids: &[String]) -> Result<u64, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        next_number(&mut transaction, self.now_ms()).await?;
        let rows = ids.iter().map(|id| [Value::from(id.as_str())]).collect();
        let removed = transaction
            .execute_each(vec![MultiRow::new("DELETE FROM advisories WHERE id IN (", rows, ")")])
            .await?;
        transaction.commit().await?;
        Ok(removed)
    }
}

async fn write(transaction: &mut Transaction, rows: Vec<AdvisoryRow>) -> Result<(), StoreError> {
    let gone = rows.iter().map(|row| [Value::from(row.id.as_str())]).collect();
    let mut packages = Vec::new();
    for row in &rows {
        let mut of_row: Vec<[String; 2]> =
            row.packages.iter().map(|(ecosystem, name)| [ecosystem.clone(), folded(name)]).collect();
        of_row.sort();
        of_row.dedup();
        packages.extend(of_row.into_iter().map(|[ecosystem, name]| {
            [Value::from(ecosystem), Value::from(name), Value::from(row.id.as_str())]
        }));
    }
    let values = |row: AdvisoryRow| {
        [
            Value::from(row.id),
            Value::from(row.modified),
            Value::Int(row.withdrawn),
            Value::from(row.severity),
            Value::from(i64::from(row.malware)),
            Value::from(row.summary),
            Value::from(row.record),
        ]
    };
    let rows = rows.into_iter().map(values).collect();
    let unlink = MultiRow::new("DELETE FROM advisory_packages WHERE advisory IN (", gone, ")");
    let put = MultiRow::new(
        "INSERT INTO advisories (id, modified, withdrawn, severity, malware, summary, record) VALUES ",
        rows,
        " ON CONFLICT (id) DO UPDATE SET modified = excluded.modified, withdrawn = excluded.withdrawn, severity = excluded.severity, \
         malware = excluded.malware, summary = excluded.summary, record = excluded.record",
    );
    let link = MultiRow::new(
        "INSERT INTO advisory_packages (ecosystem, folded, advisory) VALUES ",
        packages,
        " ON CONFLICT DO NOTHING",
    );
    transaction.execute_each(vec![unlink, put.later(), link.later()]).await.map(drop)
}

async fn modified(
    transaction: &mut Transaction,
    ids: impl Iterator<Item = &String>,
) -> Result<HashMap<String, i64>, StoreError> {
    let mut found = HashMap::new();
    for id in ids {
        let sql = "SELECT modified FROM advisories WHERE id = $1";
        if let Some(row) = transaction.fetch_one(sql, values![id.as_str()]).await? {
            found.insert(id.clone(), row.columns().int("modified")?);
        }
    }
    Ok(found)
}

/// Increments the number of changes. Concurrent callers wait for the end of this transaction.
async fn next_number(transaction: &mut Transaction, now: i64) -> Result<(), StoreError> {
    let next = "INSERT INTO advisory_changes (id, number, changed_at) VALUES (1, 1, $1) ON CONFLICT (id) DO UPDATE \
                SET number = advisory_changes.number + 1, changed_at = excluded.changed_at";
    transaction.execute(next, values![now]).await.map(drop)
}
