//! Which tables a backup holds, with which columns, and in which order they are filled: as the schema says, so that no table is
//! forgotten that a later step of the schema adds.

use crate::db::{Database, Value, values};
use crate::error::StoreError;

/// Tables whose rows no backup holds: what is made anew from others (the index of packages), what belongs to servers that run and to
/// bytes that are on their way, and secrets that live for minutes or hours, among them people's sessions: what had ended since
/// would be alive again, as would a trial of a component. Advisories are brought in again from where they came.
const LEFT_OUT: [&str; 24] = [
    "migrations",
    "search_queue",
    "search_documents",
    "server_leases",
    "announced_changes",
    "upstream_fetches",
    "backups",
    "acme_proofs",
    "acme_leases",
    "strays",
    "uploads",
    "upload_parts",
    "sessions",
    "confirmations",
    "password_resets",
    "logins",
    "sso_spent",
    "recording_sets",
    "recordings",
    "spent_id_tokens",
    "plugin_trials",
    "advisories",
    "advisory_packages",
    "advisory_changes",
];
/// What the tables of the index of texts begin with, of which SQLite has several.
const INDEX: &str = "search_grams";
/// The table that is not filled like the others.
pub(super) const BLOBS: &str = "blobs";

/// Columns of `blobs` that say where the bytes lie, in what state they are, and since when nobody
/// wants them.
const OF_PLACE: [&str; 4] = ["place", "data", "marked_at", "damaged_at"];

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// None.
    Null,
    /// A number; times are in ms since 1970.
    Int(i64),
    /// A text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A table of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotTable {
    /// Its name.
    pub name: String,
    /// The names of its columns, in the order in which a row's values come.
    pub columns: Vec<String>,
    pub(super) kinds: Vec<Kind>,
    /// Tables whose rows its own name.
    parents: Vec<String>,
}

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Int,
    Text,
    Bytes,
}

impl SnapshotTable {
    /// What its column of this name holds; none when it has none.
    pub(super) fn kind(&self, column: &str) -> Option<Kind> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.kinds.get(at).copied()
    }
}

impl Kind {
    /// A value as it is written; none when it is of another kind.
    pub(super) fn value(self, cell: Cell) -> Option<Value> {
        Some(match (self, cell) {
            (Kind::Int, Cell::Null) => Value::Int(None),
            (Kind::Int, Cell::Int(number)) => Value::from(number),
            (Kind::Text, Cell::Null) => Value::Text(None),
            (Kind::Text, Cell::Text(text)) => Value::from(text),
            (Kind::Bytes, Cell::Null) => Value::Bytes(None),
            (Kind::Bytes, Cell::Bytes(bytes)) => Value::from(bytes),
            _ => return None,
        })
    }
}

/// The tables of this database, each after those that it names.
pub(super) async fn tables(database: &Database) -> Result<Vec<SnapshotTable>, StoreError> {
    let mut tables = Vec::new();
    for name in database.table_names().await?.into_iter().filter(|name| is_kept(name)) {
        tables.push(table(database, name).await?);
    }
    Ok(in_order(tables))
}

fn is_kept(name: &str) -> bool {
    !LEFT_OUT.contains(&name) && !name.starts_with(INDEX)
}

async fn table(database: &Database, name: String) -> Result<SnapshotTable, StoreError> {
    let [columns, parents] = if database.is_shared() {
        [
            "SELECT CAST(column_name AS TEXT) AS name, CAST(data_type AS TEXT) AS kind FROM information_schema.columns \
             WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position",
            "SELECT DISTINCT CAST(p.relname AS TEXT) AS name FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid \
             JOIN pg_class p ON p.oid = k.confrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE k.contype = 'f' AND n.nspname = current_schema() AND c.relname = $1",
        ]
    } else {
        [
            "SELECT name, type AS kind FROM pragma_table_info($1) ORDER BY cid",
            "SELECT DISTINCT \"table\" AS name FROM pragma_foreign_key_list($1)",
        ]
    };
    let mut table = SnapshotTable { name, columns: Vec::new(), kinds: Vec::new(), parents: Vec::new() };
    for row in &database.fetch(columns, values![table.name.as_str()]).await? {
        let mut found = row.columns();
        let (column, kind) = (found.text("name")?, found.text("kind")?);
        if table.name == BLOBS && OF_PLACE.contains(&column.as_str()) {
            continue;
        }
        table.kinds.push(kind_of(&table.name, &column, &kind)?);
        table.columns.push(column);
    }
    let rows = database.fetch(parents, values![table.name.as_str()]).await?;
    table.parents = rows.iter().map(|row| row.columns().text("name")).collect::<Result<_, _>>()?;
    Ok(table)
}

fn kind_of(table: &str, column: &str, kind: &str) -> Result<Kind, StoreError> {
    match kind.to_ascii_uppercase().as_str() {
        "BIGINT" | "INTEGER" => Ok(Kind::Int),
        "TEXT" => Ok(Kind::Text),
        "BLOB" | "BYTEA" => Ok(Kind::Bytes),
        other => Err(StoreError::Invalid(format!(
            "no backup can hold the column {column} of the table {table}, which is of the type {other}"
        ))),
    }
}

/// Each after those that it names; where some name each other in a circle, as they come.
fn in_order(mut tables: Vec<SnapshotTable>) -> Vec<SnapshotTable> {
    let mut ordered: Vec<SnapshotTable> = Vec::with_capacity(tables.len());
    while !tables.is_empty() {
        let waits = |table: &SnapshotTable| {
            let waiting = |parent: &String| *parent != table.name && tables.iter().any(|t| t.name == *parent);
            table.parents.iter().any(waiting)
        };
        let next = tables.iter().position(|table| !waits(table)).unwrap_or(0);
        ordered.push(tables.remove(next));
    }
    ordered
}

/// The table of this name. `Invalid` when there is none: the backup is another program's.
pub(super) fn table_of<'a>(tables: &'a [SnapshotTable], name: &str) -> Result<&'a SnapshotTable, StoreError> {
    let found = tables.iter().find(|table| table.name == name);
    found.ok_or_else(|| {
        StoreError::Invalid(format!("the backup has a table that this program does not know: {name}"))
    })
}

/// A row as it is written, each value of its column's kind. `Invalid` when the table has no such columns.
pub(super) fn values_of(
    table: &SnapshotTable,
    columns: &[String],
    cells: Vec<Cell>,
) -> Result<Vec<Value>, StoreError> {
    let wrong =
        || StoreError::Invalid(format!("the backup has a row that is none of the table {}", table.name));
    if cells.len() != columns.len() {
        return Err(wrong());
    }
    let value = |(name, cell): (&String, Cell)| {
        let kind = table.kind(name).ok_or_else(wrong)?;
        kind.value(cell).ok_or_else(wrong)
    };
    columns.iter().zip(cells).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::StoreConfig;

    #[tokio::test]
    async fn each_table_comes_after_those_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&StoreConfig::new(folder.path())).await.unwrap();
        let tables = tables(&database).await.unwrap();
        let at = |name: &str| tables.iter().position(|table| table.name == name);
        for table in &tables {
            for parent in table.parents.iter().filter(|parent| is_kept(parent)) {
                assert!(at(parent) <= at(&table.name), "{} comes before {parent}", table.name);
            }
        }
        assert!(at("records") < at("record_blobs") || at("blobs") < at("record_blobs"));
        assert!(LEFT_OUT.iter().all(|name| at(name).is_none()));
        let blobs = &tables[at("blobs").unwrap()];
        assert!(blobs.columns.contains(&"sha256".to_owned()) && !blobs.columns.contains(&"data".to_owned()));
        database.close().await;
    }

    #[test]
    fn a_circle_is_no_endless_loop() {
        let table = |name: &str, parent: &str| SnapshotTable {
            name: name.to_owned(),
            columns: Vec::new(),
            kinds: Vec::new(),
            parents: vec![parent.to_owned()],
        };
        let ordered = in_order(vec![table("a", "b"), table("b", "a"), table("c", "d"), table("d", "d")]);
        let names: Vec<&str> = ordered.iter().map(|table| table.name.as_str()).collect();
        assert_eq!(names, ["d", "c", "a", "b"]);
    }
}
