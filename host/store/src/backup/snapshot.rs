//! The rows of one moment.

use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use super::blobs::SnapshotBlob;
use super::of_place::is_of_place;
use super::tables::{Cell, Kind, SnapshotTable, tables};
use crate::boxed;
use crate::db::{Row, StandingStill, Value, values};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::gc::HELD;
use crate::store::Store;

/// All rows as they were at one moment. Whatever a commit had acknowledged before it began is in it.
pub struct Snapshot {
    still: StandingStill,
    tables: Vec<SnapshotTable>,
    step: u64,
    at: i64,
}

impl Store {
    /// Begins one. Publishes go on beside it; the log of SQLite, and what PostgreSQL keeps of old rows, grow meanwhile. `Unavailable` when
    /// the database does not answer.
    #[boxed]
    pub async fn snapshot(&self) -> Result<Snapshot, StoreError> {
        let database = &self.inner.db;
        let at = database.now_ms();
        let (still, step) = database.stand_still(&self.inner.config.database_url).await?;
        Ok(Snapshot { still, tables: tables(database).await?, step, at })
    }
}

impl Snapshot {
    /// Which step of the schema the rows are of.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// When it began, in ms since 1970 by the database's clock.
    #[must_use]
    pub fn at_ms(&self) -> i64 {
        self.at
    }

    /// The tables.
    #[must_use]
    pub fn tables(&self) -> Vec<SnapshotTable> {
        self.tables.clone()
    }

    /// The rows of a table, as they are read. Of blobs those that something holds, without their bytes.
    pub fn rows<'a>(
        &'a mut self,
        table: &'a SnapshotTable,
    ) -> Result<BoxStream<'a, Result<Vec<Cell>, StoreError>>, StoreError> {
        let columns: Vec<String> = table.columns.iter().map(|name| format!("\"{name}\"")).collect();
        let (condition, bound) = self.condition(table);
        let sql = format!("SELECT {} FROM \"{}\"{condition}", columns.join(", "), table.name);
        let rows = self.still.rows(sql.into(), bound)?;
        let wanted = |row: &Vec<Cell>| table.name != "meta" || !row.first().is_some_and(is_of_place);
        let rows = rows.map(move |row| cells(&row?, table));
        Ok(rows.try_filter(move |row| std::future::ready(wanted(row))).boxed())
    }

    /// Which rows of a table are wanted.
    fn condition(&self, table: &SnapshotTable) -> (String, Vec<Value>) {
        match table.name.as_str() {
            "blobs" => (format!(" WHERE {HELD} ORDER BY id"), values![self.at]),
            "leases" => (" WHERE until > $1".to_owned(), values![self.at]),
            _ => (String::new(), Vec::new()),
        }
    }

    /// Every blob that something holds.
    #[boxed]
    pub async fn blobs(&mut self) -> Result<Vec<SnapshotBlob>, StoreError> {
        let sql = format!("SELECT id, sha256, size FROM blobs WHERE {HELD} ORDER BY id");
        let rows = self.still.rows(sql.into(), values![self.at])?;
        let blob = |row: Row| {
            let mut columns = row.columns();
            let (id, sha256) = (columns.int("id")?, Sha256(columns.hash("sha256")?));
            Ok(SnapshotBlob { id, sha256, size: columns.unsigned("size")? })
        };
        rows.map(|row| blob(row?)).try_collect().await
    }

    /// Lets go of the moment.
    #[boxed]
    pub async fn end(self) {
        self.still.end().await;
    }
}

fn cells(row: &Row, table: &SnapshotTable) -> Result<Vec<Cell>, StoreError> {
    let mut columns = row.columns();
    let mut cells = Vec::with_capacity(table.columns.len());
    for (name, kind) in table.columns.iter().zip(&table.kinds) {
        let cell = match kind {
            Kind::Int => columns.opt_int(name)?.map(Cell::Int),
            Kind::Text => columns.opt_text(name)?.map(Cell::Text),
            Kind::Bytes => columns.opt_vec(name)?.map(Cell::Bytes),
        };
        cells.push(cell.unwrap_or(Cell::Null));
    }
    Ok(cells)
}
