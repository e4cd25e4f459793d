//! Snapshot of all rows at one moment.

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use super::blobs::SnapshotBlob;
use super::location_rows::is_location_row;
use super::tables::{Cell, ColumnType, SnapshotTable, tables};
use crate::boxed;
use crate::db::{Row, SnapshotReader, Value, values};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::gc::HELD;
use crate::store::Store;

/// All rows as they were at one moment, including every commit that was acknowledged before that
/// moment.
pub struct Snapshot {
    reader: SnapshotReader,
    tables: Vec<SnapshotTable>,
    step: u64,
    at: i64,
}

impl Store {
    /// Begins a snapshot. Publishes continue meanwhile, but SQLite's log and PostgreSQL's old row
    /// versions grow. `Unavailable` if the database does not answer.
    #[boxed]
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let database = &self.inner.db;
        let at = database.now_ms();
        let (reader, step) = database.begin_snapshot(&self.inner.config.database_url).await?;
        Ok(Snapshot { reader, tables: tables(database).await?, step, at })
    }
}

impl Snapshot {
    /// Schema step of the rows.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Time of the snapshot, in ms since 1970 by the database's clock.
    #[must_use]
    pub fn at_ms(&self) -> i64 {
        self.at
    }

    #[must_use]
    pub fn tables(&self) -> Vec<SnapshotTable> {
        self.tables.clone()
    }

    /// Streams the rows of a table. `blobs` contains only blobs that something holds, without their
    /// bytes.
    pub fn rows<'a>(
        &'a mut self,
        table: &'a SnapshotTable,
    ) -> Result<BoxStream<'a, Result<Vec<Cell>, StoreError>>, StoreError> {
        let columns: Vec<String> = table.columns.iter().map(|name| format!("\"{name}\"")).collect();
        let (condition, bound) = self.condition(table);
        let sql = format!("SELECT {} FROM \"{}\"{condition}", columns.join(", "), table.name);
        let rows = self.reader.rows(sql.into(), bound)?;
        let is_included = |row: &Vec<Cell>| table.name != "meta" || !row.first().is_some_and(is_location_row);
        let rows = rows.map(move |row| cells(&row?, table));
        Ok(rows.try_filter(move |row| std::future::ready(is_included(row))).boxed())
    }

    /// Condition for the rows of a table.
    fn condition(&self, table: &SnapshotTable) -> (String, Vec<Value>) {
        match table.name.as_str() {
            "blobs" => (format!(" WHERE {HELD} ORDER BY id"), values![self.at]),
            "leases" => (" WHERE until > $1".to_owned(), values![self.at]),
            _ => (String::new(), Vec::new()),
        }
    }

    /// All blobs that something holds.
    #[boxed]
    pub async fn blobs(&mut self) -> Result<Vec<SnapshotBlob>, StoreError> {
        let sql = format!("SELECT id, sha256, size FROM blobs WHERE {HELD} ORDER BY id");
        let rows = self.reader.rows(sql.into(), values![self.at])?;
        let blob = |row: Row| {
            let mut columns = row.columns();
            let (id, sha256) = (columns.int("id")?, Sha256(columns.hash("sha256")?));
            Ok(SnapshotBlob { id, sha256, size: columns.unsigned("size")? })
        };
        rows.map(|row| blob(row?)).try_collect().await
    }

    /// Ends the transaction of the snapshot.
    #[boxed]
    pub async fn end(self) {
        self.reader.end().await;
    }
}

fn cells(row: &Row, table: &SnapshotTable) -> Result<Vec<Cell>, StoreError> {
    let mut columns = row.columns();
    let mut cells = Vec::with_capacity(table.columns.len());
    for (name, kind) in table.columns.iter().zip(&table.kinds) {
        let cell = match kind {
            ColumnType::Int => columns.opt_int(name)?.map(Cell::Int),
            ColumnType::Text => columns.opt_text(name)?.map(Cell::Text),
            ColumnType::Bytes => columns.opt_vec(name)?.map(Cell::Bytes),
        };
        cells.push(cell.unwrap_or(Cell::Null));
    }
    Ok(cells)
}
