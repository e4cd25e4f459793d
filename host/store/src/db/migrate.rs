//! The schema, step by step. A step that was released is never changed.

use super::database::{Database, Engine};
use super::pool::Purpose;
use super::transaction::Patience;
use super::value::values;
use crate::error::StoreError;
use crate::ids::now_ms;

/// What a step does: on both databases, and then with each one's own statements.
pub(crate) struct Step {
    /// Statements with a semicolon between them and none within; `{blob}` and the like stand for words that differ.
    both: &'static str,
    /// A script of SQLite's own.
    sqlite: &'static str,
    /// A script of PostgreSQL's own.
    postgres: &'static str,
}

impl Step {
    const fn of_both(both: &'static str) -> Step {
        Step { both, sqlite: "", postgres: "" }
    }
}

pub(crate) const STEPS: &[Step] = &[
    Step::of_both(include_str!("../migrations/0001_schema.sql")),
    Step::of_both(include_str!("../migrations/0002_accounts.sql")),
    Step::of_both(include_str!("../migrations/0003_sso.sql")),
    Step::of_both(include_str!("../migrations/0004_audit.sql")),
    Step::of_both(include_str!("../migrations/0005_services.sql")),
    Step::of_both(include_str!("../migrations/0006_cache.sql")),
    Step::of_both(include_str!("../migrations/0007_codes.sql")),
    Step::of_both(include_str!("../migrations/0008_open_logins.sql")),
    Step::of_both(include_str!("../migrations/0009_lists.sql")),
    Step {
        both: include_str!("../migrations/0010_growth.sql"),
        sqlite: include_str!("../migrations/0010_growth.sqlite.sql"),
        postgres: "",
    },
    Step {
        both: include_str!("../migrations/0011_people.sql"),
        sqlite: include_str!("../migrations/0011_people.sqlite.sql"),
        postgres: include_str!("../migrations/0011_people.postgres.sql"),
    },
    Step { both: "", sqlite: "", postgres: include_str!("../migrations/0012_leases.postgres.sql") },
    Step::of_both(include_str!("../migrations/0013_acme.sql")),
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
    for (number, step) in (1_i64..).zip(STEPS).skip(done) {
        for statement in statements(step.both, &database.engine) {
            transaction.execute(statement, vec![]).await?;
        }
        transaction.script(step.sqlite, step.postgres).await?;
        transaction.execute("INSERT INTO migrations VALUES ($1, $2)", values![number, now_ms()]).await?;
    }
    transaction.commit().await
}

/// The statements that both databases run, with the words filled in that differ.
fn statements(sql: &str, engine: &Engine) -> Vec<String> {
    let [integer_primary_key, blob, text_collate_c, without_rowid] = match engine {
        Engine::Sqlite { .. } => ["INTEGER PRIMARY KEY", "BLOB", "TEXT", " WITHOUT ROWID"],
        Engine::Postgres(_) => ["BIGINT PRIMARY KEY", "BYTEA", "TEXT COLLATE \"C\"", ""],
    };
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
        .map(str::to_owned)
        .collect()
}
