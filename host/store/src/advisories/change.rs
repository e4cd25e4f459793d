//! Bringing advisories in, and taking them away: in pieces, each a transaction of its own.

use std::collections::HashMap;

use super::folded;
use crate::boxed;
use crate::db::{MultiRow, Transaction, Value, values};
use crate::error::StoreError;
use crate::store::Store;

/// An advisory as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdvisoryRow {
    /// Its identifier.
    pub id: String,
    /// When it was last changed, in ms since 1970.
    pub modified: i64,
    /// Since when it is withdrawn, in ms since 1970.
    pub withdrawn: Option<i64>,
    /// 0 (nobody says) to 4 (critical).
    pub severity: i64,
    /// Whether it is about malware.
    pub malware: bool,
    /// One line.
    pub summary: String,
    /// Its JSON.
    pub record: String,
    /// Which packages it is about: ecosystem and name.
    pub packages: Vec<(String, String)>,
}

/// What became of rows that were to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdvisoryPut {
    /// That were not there.
    pub added: u64,
    /// That are newer than what was there.
    pub changed: u64,
    /// That are no newer.
    pub unchanged: u64,
}

impl Store {
    /// Writes these, each where there is none of its id, or an older one. A few hundred at a time are a good measure.
    #[boxed]
    pub async fn put_advisories(&self, rows: Vec<AdvisoryRow>) -> Result<AdvisoryPut, StoreError> {
        // Of two of one id the later counts, if it is as new.
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
        // Whoever else brings advisories in waits here, so what is compared is what there is.
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

    /// Takes away those of these ids that are there; says how many were.
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

/// Takes the number of changes on: whoever does the same waits for the end of this transaction.
async fn next_number(transaction: &mut Transaction, now: i64) -> Result<(), StoreError> {
    let next = "INSERT INTO advisory_changes (id, number, changed_at) VALUES (1, 1, $1) ON CONFLICT (id) DO UPDATE \
                SET number = advisory_changes.number + 1, changed_at = excluded.changed_at";
    transaction.execute(next, values![now]).await.map(drop)
}
