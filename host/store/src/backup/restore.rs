//! Restore of a backup into an empty database and an empty blob storage of any kind.
//!
//! A row of `meta` marks the database as incomplete during the whole restore. It is written with
//! the schema and removed with the rows, each in one transaction. Opening an incomplete database
//! fails with an error that names the interrupted restore.
//!
//! Blobs come first, some at a time, each durable before its row. All other rows follow in one
//! transaction. An interrupted restore therefore has a part of the blobs and no rows; it continues
//! with the missing blobs.

use std::collections::HashSet;

use futures::future::try_join_all;

use super::rows::RestoredRows;
use super::tables::{BLOBS, Cell, SnapshotTable, table_of, tables, values_of};
use crate::blobs::row::BlobLocation as Bytes;
use crate::blobs::{Blob, Storage};
use crate::boxed;
use crate::config::StoreConfig;
use crate::db::{Database, MultiRow, OpenPurpose, Value, values};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::storage_id;
use crate::store::Store;

/// A location that is being filled from a backup.
pub struct Restoring {
    store: Store,
    backup: String,
    tables: Vec<SnapshotTable>,
}

impl Restoring {
    /// Begins or continues the restore of this backup; `step` is the schema step of the backup.
    /// `Invalid` if the location is not empty, or if the restore of another backup was interrupted
    /// in it. `Unavailable` if the database or the storage cannot be reached.
    #[boxed]
    pub async fn begin(config: StoreConfig, backup: &str, step: u64) -> Result<Restoring, StoreError> {
        let storage = Storage::open(&config).await?;
        let occupied = !storage.is_empty(storage_id::NAME).await?;
        let db = Database::open_for(&config, OpenPurpose::Restored { backup, step, occupied }).await?;
        storage_id::check(&db, &storage, &config).await?;
        let tables = tables(&db).await?;
        let store = Store::of_parts(config, db, storage, |_| None);
        Ok(Restoring { store, backup: backup.to_owned(), tables })
    }

    /// Store in which blobs can be staged.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Tables to restore, each after the tables that it references.
    #[must_use]
    pub fn tables(&self) -> &[SnapshotTable] {
        &self.tables
    }

    /// Blobs that were restored already.
    #[boxed]
    pub async fn stored_blobs(&self) -> Result<HashSet<Sha256>, StoreError> {
        let rows = self.store.inner.db.fetch("SELECT sha256 FROM blobs", values![]).await?;
        rows.iter().map(|row| Ok(Sha256(row.columns().hash("sha256")?))).collect()
    }

    /// Stores blobs whose rows in the snapshot have these columns; durable on return. `Invalid` for
    /// an unknown column.
    #[boxed]
    pub async fn keep(&self, columns: &[String], blobs: Vec<(Vec<Cell>, Blob)>) -> Result<(), StoreError> {
        let table = table_of(&self.tables, BLOBS)?;
        let settled = try_join_all(blobs.iter().map(|(_, blob)| blob.settle(&self.store))).await?;
        let mut rows = Vec::with_capacity(blobs.len());
        for ((cells, _), settled) in blobs.into_iter().zip(settled) {
            let mut row = values_of(table, columns, cells)?;
            for (column, value) in columns.iter().zip(&mut row) {
                if column == "checked" {
                    *value = settled.check.into();
                }
            }
            let (place, data) = match &settled.place {
                Bytes::Inline(bytes) => (None, Some(bytes.as_ref())),
                Bytes::Stored(key) => (Some(key.as_str()), None),
            };
            row.extend([Value::from(place), Value::from(data)]);
            rows.push(row);
        }
        let insert = format!("INSERT INTO blobs ({}, place, data) VALUES ", columns.join(", "));
        let insert = MultiRow::of_width(insert, columns.len() + 2, rows, " ON CONFLICT (sha256) DO NOTHING");
        let mut transaction = self.store.inner.db.begin().await?;
        transaction.execute_each(vec![insert]).await?;
        transaction.commit().await
    }

    /// Begins with the rows of all other tables.
    pub async fn rows(&self) -> Result<RestoredRows<'_>, StoreError> {
        RestoredRows::begin(&self.store.inner.db, &self.tables, &self.backup).await
    }

    #[boxed]
    pub async fn close(self) {
        self.store.close().await;
    }
}
