//! The statements of a batch: each over all its rows at once.

use std::collections::{BTreeSet, HashMap};

use super::batch::Revisions;
use crate::blobs::row::{BlobRow, Place};
use crate::db::{Transaction, Value, signed};
use crate::digest::{Digest, Sha256};
use crate::error::StoreError;
use crate::ids::{RepositoryId, now_ms};

pub(crate) const ENTRIES: [&str; 2] =
    ["SELECT repository, key, revision FROM records WHERE (repository, key) IN (VALUES ", ")"];
pub(crate) const BLOBS: [&str; 2] = [
    "WITH wanted (repository, sha256, now) AS (VALUES ",
    ") SELECT w.repository, b.sha256, b.id, \
        CAST(CASE WHEN EXISTS (SELECT 1 FROM record_blobs n WHERE n.blob = b.id AND n.repository = w.repository) \
        OR EXISTS (SELECT 1 FROM leases l WHERE l.blob = b.id AND l.repository = w.repository AND l.until > w.now) \
        THEN 1 ELSE 0 END AS BIGINT) \
      FROM wanted w JOIN blobs b ON b.sha256 = w.sha256",
];
pub(crate) const UNNAME: [&str; 2] = ["DELETE FROM record_blobs WHERE (repository, key) IN (VALUES ", ")"];
pub(crate) const REMOVE: [&str; 2] = ["DELETE FROM records WHERE (repository, key) IN (VALUES ", ")"];
pub(crate) const REVISIONS: [&str; 2] = [
    "WITH bumped (id, revision) AS (VALUES ",
    ") UPDATE repositories SET revision = (SELECT x.revision FROM bumped x WHERE x.id = repositories.id) \
      WHERE id IN (SELECT id FROM bumped)",
];

/// A blob that is stored, as one repository sees it.
pub(super) struct Found {
    pub(super) repository: RepositoryId,
    pub(super) sha256: Sha256,
    pub(super) id: i64,
    /// Whether a record or a lease of this repository holds it.
    pub(super) held: bool,
}

pub(super) async fn revisions(
    transaction: &mut Transaction,
    repositories: &BTreeSet<RepositoryId>,
) -> Result<HashMap<RepositoryId, u64>, StoreError> {
    let rows = repositories.iter().map(|id| [Value::from(id.0)]).collect();
    let after = format!(") ORDER BY id{}", transaction.for_update());
    let before = "SELECT id, revision FROM repositories WHERE id IN (VALUES ";
    let found = transaction.fetch_rows(before, rows, &after).await?;
    found
        .iter()
        .map(|row| {
            let mut columns = row.columns();
            Ok((RepositoryId(columns.int()?), columns.unsigned()?))
        })
        .collect()
}

pub(super) async fn entries(
    transaction: &mut Transaction,
    keys: &BTreeSet<(RepositoryId, &str)>,
) -> Result<HashMap<(RepositoryId, String), u64>, StoreError> {
    let rows = keys.iter().map(|(repository, key)| [Value::from(repository.0), Value::from(*key)]).collect();
    let [before, after] = ENTRIES;
    let found = transaction.fetch_rows(before, rows, after).await?;
    found
        .iter()
        .map(|row| {
            let mut columns = row.columns();
            Ok(((RepositoryId(columns.int()?), columns.text()?), columns.unsigned()?))
        })
        .collect()
}

pub(super) async fn blobs(
    transaction: &mut Transaction,
    named: &BTreeSet<(RepositoryId, Sha256)>,
) -> Result<Vec<Found>, StoreError> {
    let now = now_ms();
    let row = |(repository, sha256): &(RepositoryId, Sha256)| {
        [Value::from(repository.0), Value::from(&sha256.0), Value::from(now)]
    };
    let [before, after] = BLOBS;
    let found = transaction.fetch_rows(before, named.iter().map(row).collect(), after).await?;
    found
        .iter()
        .map(|row| {
            let mut columns = row.columns();
            let repository = RepositoryId(columns.int()?);
            Ok(Found {
                repository,
                sha256: Sha256(columns.hash()?),
                id: columns.int()?,
                held: columns.bool()?,
            })
        })
        .collect()
}

pub(super) async fn insert_blobs(
    transaction: &mut Transaction,
    fresh: &[&BlobRow],
) -> Result<(), StoreError> {
    let now = now_ms();
    let rows = fresh.iter().map(|row| blob_values(row, now)).collect();
    let before = "INSERT INTO blobs (id, sha256, size, checked, place, data, digests, created_at) VALUES ";
    transaction.execute_rows(before, rows, " ON CONFLICT (sha256) DO NOTHING").await?;
    Ok(())
}

fn blob_values(row: &BlobRow, now: i64) -> [Value; 8] {
    let (place, data) = match &row.place {
        Place::Inline(bytes) => (None, Some(bytes.as_ref())),
        Place::Stored(key) => (Some(key.as_str()), None),
    };
    let digests: Vec<String> = row.digests.iter().map(Digest::to_string).collect();
    [
        Value::from(row.id),
        Value::from(&row.sha256.0),
        Value::from(signed(row.size)),
        Value::from(row.check),
        Value::from(place),
        Value::from(data),
        Value::from(digests.join(" ")),
        Value::from(now),
    ]
}

pub(super) async fn hold(
    transaction: &mut Transaction,
    leases: &BTreeSet<(i64, RepositoryId)>,
    lease_ms: i64,
) -> Result<(), StoreError> {
    let until = now_ms().saturating_add(lease_ms);
    let row = |(blob, repository): &(i64, RepositoryId)| {
        [Value::from(*blob), Value::from(repository.0), Value::from(until)]
    };
    let before = "INSERT INTO leases (blob, repository, until) VALUES ";
    let after = " ON CONFLICT (blob, repository) DO UPDATE SET until = excluded.until";
    transaction.execute_rows(before, leases.iter().map(row).collect(), after).await?;
    Ok(())
}

pub(super) async fn unname(transaction: &mut Transaction, rows: Vec<[Value; 2]>) -> Result<(), StoreError> {
    let [before, after] = UNNAME;
    transaction.execute_rows(before, rows, after).await?;
    Ok(())
}

pub(super) async fn remove(transaction: &mut Transaction, rows: Vec<[Value; 2]>) -> Result<(), StoreError> {
    let [before, after] = REMOVE;
    transaction.execute_rows(before, rows, after).await?;
    Ok(())
}

pub(super) async fn put(transaction: &mut Transaction, rows: Vec<[Value; 4]>) -> Result<(), StoreError> {
    let before = "INSERT INTO records (repository, key, value, revision) VALUES ";
    let after =
        " ON CONFLICT (repository, key) DO UPDATE SET value = excluded.value, revision = excluded.revision";
    transaction.execute_rows(before, rows, after).await?;
    Ok(())
}

pub(super) async fn name(transaction: &mut Transaction, rows: Vec<[Value; 3]>) -> Result<(), StoreError> {
    let before = "INSERT INTO record_blobs (repository, key, blob) VALUES ";
    transaction.execute_rows(before, rows, "").await?;
    Ok(())
}

pub(super) async fn set_revisions(
    transaction: &mut Transaction,
    revisions: Revisions,
) -> Result<(), StoreError> {
    let row = |(id, revision): (RepositoryId, u64)| [Value::from(id.0), Value::from(signed(revision))];
    let [before, after] = REVISIONS;
    transaction.execute_rows(before, revisions.into_iter().map(row).collect(), after).await?;
    Ok(())
}
