//! The rows of all tables but the blobs', put into an empty database in one transaction.
//!
//! Triggers are silent meanwhile: what they would count or announce is among the rows, or concerns nobody yet.

use super::of_place::{OF_PLACE, is_of_place};
use super::tables::{BLOBS, Cell, SnapshotTable, table_of, values_of};
use crate::boxed;
use crate::db::{
    Database, MultiRow, Patience, Purpose, Transaction, UNFINISHED, Value, placeholders, unfinished, values,
};
use crate::error::StoreError;

/// The transaction. Dropped unfinished, there are no rows.
pub struct RestoredRows<'a> {
    transaction: Transaction,
    tables: &'a [SnapshotTable],
    /// Triggers of SQLite, to be made again.
    triggers: Vec<String>,
}

impl<'a> RestoredRows<'a> {
    pub(super) async fn begin(
        database: &Database,
        tables: &'a [SnapshotTable],
        backup: &str,
    ) -> Result<RestoredRows<'a>, StoreError> {
        let mut transaction = database.begin_for(Purpose::Write, Patience::Endless).await?;
        // Of two restores into one place the second waits here, and is told that the first has finished.
        let lock = "UPDATE meta SET value = value WHERE name = $1";
        transaction.execute(lock, values![UNFINISHED]).await?;
        if unfinished(&mut transaction).await?.as_deref() != Some(backup) {
            let other = "another restore into the same place has finished".to_owned();
            return Err(StoreError::Invalid(other));
        }
        let mut rows = RestoredRows { transaction, tables, triggers: Vec::new() };
        rows.silence().await?;
        for table in tables.iter().rev().filter(|table| table.name != BLOBS) {
            rows.empty(table).await?;
        }
        Ok(rows)
    }

    /// Adds rows of a table, in the order of [`Restoring::tables`](super::Restoring::tables). `Invalid` when it has no such columns.
    #[boxed]
    pub async fn add(
        &mut self,
        table: &str,
        columns: &[String],
        rows: Vec<Vec<Cell>>,
    ) -> Result<(), StoreError> {
        let table = table_of(self.tables, table)?;
        let here = |row: &Vec<Cell>| table.name != "meta" || !row.first().is_some_and(is_of_place);
        let rows = rows.into_iter().filter(here).map(|row| values_of(table, columns, row));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let named: Vec<String> = columns.iter().map(|column| format!("\"{column}\"")).collect();
        let before = format!("INSERT INTO \"{}\" ({}) VALUES ", table.name, named.join(", "));
        self.transaction.execute_each(vec![MultiRow::of_width(before, columns.len(), rows, "")]).await?;
        Ok(())
    }

    /// Makes the place whole: durable when this returns, and servers may open it.
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

    /// Of PostgreSQL, whose triggers need not be made again.
    async fn alter(&mut self, how: &str) -> Result<(), StoreError> {
        if !self.transaction.is_shared() {
            return Ok(());
        }
        for table in self.tables {
            self.transaction.execute(format!("ALTER TABLE \"{}\" {how}", table.name), vec![]).await?;
        }
        Ok(())
    }

    /// Removes what the schema itself put into a table, and leaves what says where this place is.
    async fn empty(&mut self, table: &SnapshotTable) -> Result<(), StoreError> {
        let mut delete = format!("DELETE FROM \"{}\"", table.name);
        let mut kept: Vec<Value> = Vec::new();
        if table.name == "meta" {
            kept.extend(OF_PLACE.iter().map(|name| Value::from(*name)));
            delete = format!("{delete} WHERE name NOT IN {}", placeholders(1, kept.len()));
        }
        self.transaction.execute(delete, kept).await?;
        Ok(())
    }

    /// Whoever serves first makes the index of packages, as after its step of the schema, which may be still to come.
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

/// The step of the schema with the index of packages.
const INDEXED: i64 = 11;
