//! The schema, step by step. A step that was released is never changed.

use super::database::{Database, Engine};
use super::pool::Purpose;
use super::transaction::Patience;
use super::value::values;
use crate::error::StoreError;
use crate::ids::now_ms;

/// The number of a step, and what it does on PostgreSQL besides.
const OF_POSTGRES: &[(i64, &str)] = &[(12, include_str!("../migrations/0012_leases.postgres.sql"))];

pub(crate) const STEPS: &[&str] = &[
    include_str!("../migrations/0001_schema.sql"),
    include_str!("../migrations/0002_accounts.sql"),
    include_str!("../migrations/0003_sso.sql"),
    include_str!("../migrations/0004_audit.sql"),
    include_str!("../migrations/0005_services.sql"),
    include_str!("../migrations/0006_cache.sql"),
    include_str!("../migrations/0007_codes.sql"),
    include_str!("../migrations/0008_open_logins.sql"),
    include_str!("../migrations/0009_lists.sql"),
    include_str!("../migrations/0010_growth.sql"),
    include_str!("../migrations/0011_people.sql"),
    include_str!("../migrations/0012_leases.sql"),
    include_str!("../migrations/0013_acme.sql"),
];

/// Where the databases differ in more than a word: what counts, and the index of texts.
const SQLITE: [&str; 2] = [
    include_str!("../migrations/usage.sqlite.sql"),
    "CREATE VIRTUAL TABLE search_grams USING fts5(grams, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');",
];
const POSTGRES: [&str; 2] = [
    include_str!("../migrations/usage.postgres.sql"),
    "CREATE TABLE search_grams (rowid BIGINT PRIMARY KEY, grams TSVECTOR NOT NULL);
     CREATE INDEX search_grams_by_gram ON search_grams USING gin (grams);",
];

/// Any number: what processes that start at once wait for on PostgreSQL.
const LOCK: i64 = 0x7061_636b;

/// Brings the schema up to date. `Invalid` when it is newer than this program.
pub(super) async fn migrate(database: &Database) -> Result<(), StoreError> {
    let mut transaction = database.begin_for(Purpose::Write, Patience::Endless).await?;
    if database.is_shared() {
        transaction.fetch("SELECT CAST(pg_advisory_xact_lock($1) AS TEXT)", values![LOCK]).await?;
    }
    let table = "CREATE TABLE IF NOT EXISTS migrations (step BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)";
    transaction.execute(table, vec![]).await?;
    let row = transaction.fetch_one("SELECT COALESCE(MAX(step), 0) AS step FROM migrations", vec![]).await?;
    let done = row.map_or(Ok(0), |row| row.columns().unsigned("step"))?;
    let done = usize::try_from(done).unwrap_or(usize::MAX);
    if done > STEPS.len() {
        let newer = "the database was written by a newer version of this program: start that one".to_owned();
        return Err(StoreError::Invalid(newer));
    }
    for (step, sql) in (1_i64..).zip(STEPS).skip(done) {
        for statement in statements(sql, &database.engine) {
            transaction.execute(statement, vec![]).await?;
        }
        for (_, script) in OF_POSTGRES.iter().filter(|(of, _)| *of == step) {
            transaction.script(script).await?;
        }
        transaction.execute("INSERT INTO migrations VALUES ($1, $2)", values![step, now_ms()]).await?;
    }
    transaction.commit().await
}

/// The statements of a step, with what differs between the databases filled in; one that begins with `{sqlite}` is for SQLite alone.
fn statements(sql: &str, engine: &Engine) -> Vec<String> {
    let [integer_primary_key, blob, text_collate_c, without_rowid] = match engine {
        Engine::Sqlite { .. } => ["INTEGER PRIMARY KEY", "BLOB", "TEXT", " WITHOUT ROWID"],
        Engine::Postgres(_) => ["BIGINT PRIMARY KEY", "BYTEA", "TEXT COLLATE \"C\"", ""],
    };
    let [usage_triggers, search_grams] = match engine {
        Engine::Sqlite { .. } => SQLITE,
        Engine::Postgres(_) => POSTGRES,
    };
    let sql = sql.replace("{usage_triggers}", usage_triggers).replace("{search_grams}", search_grams);
    let lines: Vec<&str> = sql.lines().filter(|line| !line.trim_start().starts_with("--")).collect();
    lines
        .join("\n")
        .replace("{integer_primary_key}", integer_primary_key)
        .replace("{blob}", blob)
        .replace("{text_collate_c}", text_collate_c)
        .replace("{without_rowid}", without_rowid)
        .split(';')
        .map(str::trim)
        .filter(|statement| !statement.is_empty())
        .filter_map(|statement| match statement.strip_prefix("{sqlite}") {
            Some(_) if matches!(engine, Engine::Postgres(_)) => None,
            Some(own) => Some(own.trim_start().to_owned()),
            None => Some(statement.to_owned()),
        })
        // Those within a statement.
        .map(|statement| statement.replace("{semicolon}", ";"))
        .collect()
}
