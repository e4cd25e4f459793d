//! Restore of the rows of all tables except `blobs`, in one transaction.
//!
//! Triggers are disabled meanwhile, because the restored rows already contain their results, and no
//! server listens for their notices yet.

use super::location_rows::{LOCATION_ROWS, is_location_row};
use super::tables::{BLOBS, Cell, SnapshotTable, table_of, values_of};
use crate::boxed;
use crate::db::{
    ConnectionPurpose, Database, MultiRow, Patience, Transaction, UNFINISHED, Value, placeholders,
    unfinished, values,
};
use crate::error::StoreError;

/// The transaction of a restore. If it is dropped before `finish`, no rows are written.
pub struct RestoredRows<'a> {
    transaction: Transaction,
    tables: &'a [SnapshotTable],
    /// Triggers of SQLite that must be created again.
    triggers: Vec<String>,
}

impl<'a> RestoredRows<'a> {
    pub(super) async fn begin(
        database: &Database,
        tables: &'a [SnapshotTable],
        backup: &str,
    ) -> Result<RestoredRows<'a>, StoreError> {
        let mut transaction = database.begin_for(ConnectionPurpose::Write, Patience::Endless).await?;
        // A concurrent second restore waits here, and then sees that the first one has finished.
        let lock = "UPDATE meta SET value = value WHERE name = $1";
        transaction.execute(lock, values![UNFINISHED]).await?;
        if unfinished(&mut transaction).await?.as_deref() != Some(backup) {
            let other = "another restore into the same location has finished".to_owned();
            return Err(StoreError::Invalid(other));
        }
        let mut rows = RestoredRows { transaction, tables, triggers: Vec::new() };
        rows.silence().await?;
        for table in tables.iter().rev().filter(|table| table.name != BLOBS) {
            rows.empty(table).await?;
        }
        Ok(rows)
    }

    /// Adds rows of a table, in the order of [`Restoring::tables`](super::Restoring::tables).
    /// `Invalid` if the table does not have these columns.
    #[boxed]
    pub async fn add(
        &mut self,
        table: &str,
        columns: &[String],
        rows: Vec<Vec<Cell>>,
    ) -> Result<(), StoreError> {
        let table = table_of(self.tables, table)?;
        let here = |row: &Vec<Cell>| table.name != "meta" || !row.first().is_some_and(is_location_row);
        let rows = rows.into_iter().filter(here).map(|row| values_of(table, columns, row));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let named: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
        let before = format!("INSERT INTO \"{}\" ({}) VALUES ", table.name, named.join(", "));
        self.transaction.execute_each(vec![MultiRow::of_width(before, columns.len(), rows, "")]).await?;
        Ok(())
    }

    /// Completes the restore. On return, the restore is durable and servers may open the database.
    pub async fn finish(mut self) -> Result<(), StoreError> {
        self.index().await?;
        let triggers = std::mem::take(&mut self.triggers);
        for trigger in triggers {
            self.transaction.execute(trigger, vec![]).await?;
        }
        self.alter("ENABLE TRIGGER USER").await?;
        self.transaction.execute("DELETE FROM meta WHERE name = $1", values![UNFINISHED]).await?;
        self.transaction.commit().await
    }

    async fn silence(&mut self) -> Result<(), StoreError> {
        if self.transaction.is_shared() {
            return self.alter("DISABLE TRIGGER USER").await;
        }
        let found = self
            .transaction
            .fetch("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name", vec![])
            .await?;
        for row in &found {
            let mut columns = row.columns();
            let name = columns.text("name")?;
            self.triggers.push(columns.text("sql")?);
            self.transaction.execute(format!("DROP TRIGGER \"{name}\""), vec![]).await?;
        }
        Ok(())
    }

    /// Enables or disables the triggers of all tables in PostgreSQL. Unlike SQLite, PostgreSQL need
    /// not create them again.
    async fn alter(&mut self, how: &str) -> Result<(), StoreError> {
        if !self.transaction.is_shared() {
            return Ok(());
        }
        for table in self.tables {
            self.transaction.execute(format!("ALTER TABLE \"{}\" {how}", table.name), vec![]).await?;
        }
        Ok(())
    }

    /// Deletes the rows that the schema itself inserted. Rows about this location stay.
    async fn empty(&mut self, table: &SnapshotTable) -> Result<(), StoreError> {
        let mut delete = format!("DELETE FROM \"{}\"", table.name);
        let mut names: Vec<Value> = Vec::new();
        if table.name == "meta" {
            names.extend(LOCATION_ROWS.iter().map(|name| Value::from(*name)));
            delete = format!("{delete} WHERE name NOT IN {}", placeholders(1, names.len()));
        }
        self.transaction.execute(delete, names).await?;
        Ok(())
    }

    /// Queues all packages for the search index. The first server then builds the index. Does
    /// nothing if the backup's schema is older than the index, because the schema step that
    /// introduces the index then queues the packages.
    async fn index(&mut self) -> Result<(), StoreError> {
        let step = "SELECT MAX(step) AS step FROM migrations";
        let step = self.transaction.fetch_one(step, vec![]).await?;
        if step.map_or(Ok(0), |row| row.columns().int("step"))? < INDEXED {
            return Ok(());
        }
        let queue = "INSERT INTO search_queue (id, repository, name) \
                     SELECT ROW_NUMBER() OVER (ORDER BY repository, name), repository, name FROM packages";
        self.transaction.execute(queue, vec![]).await?;
        Ok(())
    }
}

/// Schema step that introduced the package index.
const INDEXED: i64 = 11;
