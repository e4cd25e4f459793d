//! Tables of a backup, with their columns and the order in which they are filled. Columns and order
//! come from the schema.

use crate::db::{Database, Value, values};
use crate::error::StoreError;

/// Tables that a backup contains. A backup contains only listed tables, so that it does not include
/// a new table of secrets by default.
const HELD: [&str; 60] = [
    "access_keys",
    "acme_values",
    "activity",
    "api_tokens",
    "attestations",
    "audit_events",
    "blobs",
    "cached_answers",
    "deletions",
    "documents",
    "fetches",
    "files",
    "first_seen",
    "formats",
    "invitations",
    "key_owner_repositories",
    "key_owners",
    "leases",
    "members",
    "meta",
    "organizations",
    "packages",
    "plugin_changes",
    "plugin_components",
    "plugin_formats",
    "plugin_pieces",
    "policy_components",
    "policy_exceptions",
    "policy_pieces",
    "policy_rules",
    "publisher_tokens",
    "record_blobs",
    "records",
    "removals",
    "repositories",
    "repository_usage",
    "retention_policies",
    "retention_runs",
    "signing_keys",
    "sso_identities",
    "sso_settings",
    "subscriber_groups",
    "team_members",
    "teams",
    "token_repositories",
    "tokens",
    "totp",
    "trash",
    "trash_attestations",
    "trash_blobs",
    "trash_documents",
    "trash_files",
    "trash_records",
    "trash_versions",
    "trusted_publishers",
    "upstream_credentials",
    "versions",
    "webhook_deliveries",
    "webhook_tries",
    "webhooks",
];

/// The table that a restore fills separately.
pub(super) const BLOBS: &str = "blobs";

/// Columns of `blobs` that describe the location and the state of the bytes, and since when the
/// blob has been unreferenced.
const LOCATION_COLUMNS: [&str; 4] = ["place", "data", "marked_at", "damaged_at"];

/// A value of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    Null,
    /// A number; times are in ms since 1970.
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A table of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotTable {
    pub name: String,
    /// Names of the columns, in the order of the values of a row.
    pub columns: Vec<String>,
    pub(super) kinds: Vec<ColumnType>,
    /// Tables that rows of this table reference.
    parents: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Int,
    Text,
    Bytes,
}

impl SnapshotTable {
    /// Type of the column of this name; `None` if it does not exist.
    pub(super) fn kind(&self, column: &str) -> Option<ColumnType> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.kinds.get(at).copied()
    }
}

impl ColumnType {
    /// Converts a cell to a database value; `None` if its type differs.
    pub(super) fn value(self, cell: Cell) -> Option<Value> {
        Some(match (self, cell) {
            (ColumnType::Int, Cell::Null) => Value::Int(None),
            (ColumnType::Int, Cell::Int(number)) => Value::from(number),
            (ColumnType::Text, Cell::Null) => Value::Text(None),
            (ColumnType::Text, Cell::Text(text)) => Value::from(text),
            (ColumnType::Bytes, Cell::Null) => Value::Bytes(None),
            (ColumnType::Bytes, Cell::Bytes(bytes)) => Value::from(bytes),
            _ => return None,
        })
    }
}

/// Tables of this database, each after the tables that it references.
pub(super) async fn tables(database: &Database) -> Result<Vec<SnapshotTable>, StoreError> {
    let mut tables = Vec::new();
    for name in database.table_names().await?.into_iter().filter(|name| HELD.contains(&name.as_str())) {
        tables.push(table(database, name).await?);
    }
    Ok(in_order(tables))
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
        if table.name == BLOBS && LOCATION_COLUMNS.contains(&column.as_str()) {
            continue;
        }
        table.kinds.push(kind_of(&table.name, &column, &kind)?);
        table.columns.push(column);
    }
    let rows = database.fetch(parents, values![table.name.as_str()]).await?;
    table.parents = rows.iter().map(|row| row.columns().text("name")).collect::<Result<_, _>>()?;
    Ok(table)
}

fn kind_of(table: &str, column: &str, kind: &str) -> Result<ColumnType, StoreError> {
    match kind.to_ascii_uppercase().as_str() {
        "BIGINT" | "INTEGER" => Ok(ColumnType::Int),
        "TEXT" => Ok(ColumnType::Text),
        "BLOB" | "BYTEA" => Ok(ColumnType::Bytes),
        other => Err(StoreError::Invalid(format!(
            "a backup cannot contain the column {column} of the table {table}, because its type is {other}"
        ))),
    }
}

/// Orders each table after the tables that it references. Tables in a cycle keep their order.
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

/// The table of this name. `Invalid` if it is unknown: the backup is from another program.
pub(super) fn table_of<'a>(tables: &'a [SnapshotTable], name: &str) -> Result<&'a SnapshotTable, StoreError> {
    let found = tables.iter().find(|table| table.name == name);
    found.ok_or_else(|| {
        StoreError::Invalid(format!("the backup has a table that this program does not know: {name}"))
    })
}

/// Values of a row, each of the type of its column. `Invalid` if the table does not have these
/// columns.
pub(super) fn values_of(
    table: &SnapshotTable,
    columns: &[String],
    cells: Vec<Cell>,
) -> Result<Vec<Value>, StoreError> {
    let wrong =
        || StoreError::Invalid(format!("the backup has a row that does not fit the table {}", table.name));
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

    /// Tables that no backup contains. They hold data that servers rebuild from other tables, the
    /// state of running servers and unfinished uploads, and short-lived secrets such as sessions.
    /// Advisories are imported again from their source.
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
    /// Prefix of the tables of the search index, of which SQLite has several. No backup contains
    /// them.
    const INDEX: &str = "search_grams";

    #[tokio::test]
    async fn each_table_comes_after_those_that_it_names() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::open(&StoreConfig::new(folder.path())).await.unwrap();
        let tables = tables(&database).await.unwrap();
        let at = |name: &str| tables.iter().position(|table| table.name == name);
        for table in &tables {
            for parent in table.parents.iter().filter(|parent| HELD.contains(&parent.as_str())) {
                assert!(at(parent) <= at(&table.name), "{} comes before {parent}", table.name);
            }
        }
        assert!(at("records") < at("record_blobs") || at("blobs") < at("record_blobs"));
        for name in HELD {
            assert!(at(name).is_some(), "{name} is not a table of the database");
        }
        let blobs = &tables[at("blobs").unwrap()];
        assert!(blobs.columns.contains(&"sha256".to_owned()) && !blobs.columns.contains(&"data".to_owned()));
        database.close().await;
    }

    /// The migrations name the tables of both databases.
    #[test]
    fn every_table_is_in_backups_or_left_out() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/migrations");
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        let sql: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
        let renamed = |name: &str| sql.contains(&format!("ALTER TABLE {name} RENAME TO"));
        let named = sql.split("CREATE TABLE ").skip(1).filter_map(|rest| rest.split([' ', '(']).next());
        for name in named.filter(|name| !renamed(name)) {
            let is_listed = HELD.contains(&name) || LEFT_OUT.contains(&name);
            assert!(
                is_listed || name.starts_with(INDEX),
                "say in HELD or LEFT_OUT whether a backup contains {name}"
            );
        }
    }

    #[test]
    fn cyclic_references_do_not_loop_forever() {
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
