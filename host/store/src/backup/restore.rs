//! A place into which a backup is restored: an empty database and an empty storage of blobs, of whatever kind.
//!
//! A row of `meta` says from the first moment to the last that it is not whole, in the same transaction as the schema and as the rows;
//! whoever opens such a database is told so. Blobs come first, some at a time, each durable before its row; all other rows follow in
//! one transaction. So a restore that was broken off has a part of the blobs and no rows, and goes on with those blobs that are missing.

use std::collections::HashSet;

use futures::future::try_join_all;

use super::rows::RestoredRows;
use super::tables::{BLOBS, Cell, SnapshotTable, table_of, tables, values_of};
use crate::blobs::row::Place as Bytes;
use crate::blobs::{Blob, Storage};
use crate::boxed;
use crate::config::StoreConfig;
use crate::db::{Database, MultiRow, Place, Value, values};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::marker;
use crate::store::Store;

/// A place that is being filled.
pub struct Restoring {
    store: Store,
    backup: String,
    tables: Vec<SnapshotTable>,
}

impl Restoring {
    /// Begins to restore this backup, of this step of the schema, or goes on with it. `Invalid` says what is wrong with the place: it is
    /// not empty, or another backup's restore was broken off in it. `Unavailable` when database or storage cannot be reached.
    #[boxed]
    pub async fn begin(config: StoreConfig, backup: &str, step: u64) -> Result<Restoring, StoreError> {
        let storage = Storage::open(&config).await?;
        let occupied = !storage.is_empty(marker::NAME).await?;
        let db = Database::open_for(&config, Place::Restored { backup, step, occupied }).await?;
        marker::check(&db, &storage, &config).await?;
        let tables = tables(&db).await?;
        let store = Store::of_parts(config, db, storage, |_| None);
        Ok(Restoring { store, backup: backup.to_owned(), tables })
    }

    /// To stage blobs in.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The tables, each after those that it names.
    #[must_use]
    pub fn tables(&self) -> &[SnapshotTable] {
        &self.tables
    }

    /// The blobs that are there already.
    #[boxed]
    pub async fn stored_blobs(&self) -> Result<HashSet<Sha256>, StoreError> {
        let rows = self.store.inner.db.fetch("SELECT sha256 FROM blobs", values![]).await?;
        rows.iter().map(|row| Ok(Sha256(row.columns().hash("sha256")?))).collect()
    }

    /// Keeps these blobs, whose rows in the snapshot have these columns: durable when this returns. `Invalid` for a column that is none.
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

    /// Closes the database.
    #[boxed]
    pub async fn close(self) {
        self.store.close().await;
    }
}
