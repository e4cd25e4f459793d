//! The schema, step by step. A step that was released is never changed.

use super::database::{Database, Engine};
use super::pool::Purpose;
use super::transaction::{Patience, Transaction};
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
    Step::of_both(include_str!("../migrations/0014_trash.sql")),
    Step::of_both(include_str!("../migrations/0015_retention.sql")),
    Step::of_both(include_str!("../migrations/0016_backups.sql")),
    Step {
        both: include_str!("../migrations/0017_activity.sql"),
        sqlite: include_str!("../migrations/0017_activity.sqlite.sql"),
        postgres: include_str!("../migrations/0017_activity.postgres.sql"),
    },
    Step::of_both(include_str!("../migrations/0018_plugins.sql")),
    Step::of_both(include_str!("../migrations/0019_recordings.sql")),
    Step::of_both(include_str!("../migrations/0020_trials.sql")),
    Step::of_both(include_str!("../migrations/0021_webhooks.sql")),
    Step {
        both: include_str!("../migrations/0022_trusted_publishers.sql"),
        sqlite: "",
        postgres: include_str!("../migrations/0022_trusted_publishers.postgres.sql"),
    },
    Step { both: include_str!("../migrations/0023_attestations.sql"), sqlite: "", postgres: "" },
    Step::of_both(include_str!("../migrations/0024_policies.sql")),
    Step::of_both(include_str!("../migrations/0025_advisories.sql")),
    Step::of_both(include_str!("../migrations/0026_policy_recordings.sql")),
    Step::of_both(include_str!("../migrations/0027_documents.sql")),
    Step::of_both(include_str!("../migrations/0028_fetches.sql")),
    Step {
        both: include_str!("../migrations/0029_files_by_blob.sql"),
        sqlite: include_str!("../migrations/0029_files_by_blob.sqlite.sql"),
        postgres: include_str!("../migrations/0029_files_by_blob.postgres.sql"),
    },
    Step::of_both(include_str!("../migrations/0030_damaged_blobs.sql")),
    Step::of_both(include_str!("../migrations/0031_first_seen.sql")),
];

/// Any number: what processes that start at once wait for on PostgreSQL.
const LOCK: i64 = 0x7061_636b;

/// The row of `meta` that says that a restore is not whole yet, and of which backup.
pub(crate) const UNFINISHED: &str = "restore_unfinished";

/// What a database is opened for.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// A server or a command. The schema is brought up to date.
    InUse,
    /// A restore of this backup, which has this step of the schema. Nothing else may be there, in the database or, as `occupied` says,
    /// in the storage of blobs, unless it is the same restore, which was broken off.
    Restored { backup: &'a str, step: u64, occupied: bool },
}

/// Brings the schema up to date, or to the step of a backup. `Invalid` when it is newer than this program, or when the database is
/// not one for this.
pub(super) async fn migrate(database: &Database, place: Place<'_>) -> Result<(), StoreError> {
    let used = !database.table_names().await?.is_empty();
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
    let unfinished = if done > 0 { unfinished(&mut transaction).await? } else { None };
    let until = match place {
        Place::InUse => {
            if let Some(backup) = unfinished {
                return Err(broken_off(&backup));
            }
            STEPS.len()
        }
        Place::Restored { backup, step, occupied } => {
            let until = usize::try_from(step).unwrap_or(usize::MAX);
            if until == 0 || until > STEPS.len() {
                return Err(StoreError::Invalid(format!(
                    "the backup was made by a newer version of this program (its schema is {step}, this one's {}): restore it with \
                     that version",
                    STEPS.len()
                )));
            }
            match unfinished {
                Some(other) if other != backup => return Err(broken_off(&other)),
                Some(_) => {}
                None if used || occupied => {
                    return Err(not_empty(if used { "database" } else { "storage of blobs" }));
                }
                None => {}
            }
            until
        }
    };
    for (number, step) in (1_i64..).zip(STEPS).take(until).skip(done) {
        for statement in statements(step.both, &database.engine) {
            transaction.execute(statement, vec![]).await?;
        }
        transaction.script(step.sqlite, step.postgres).await?;
        transaction.execute("INSERT INTO migrations VALUES ($1, $2)", values![number, now_ms()]).await?;
    }
    if let Place::Restored { backup, .. } = place {
        let mark = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        transaction.execute(mark, values![UNFINISHED, backup]).await?;
    }
    transaction.commit().await
}

/// The backup whose restore into this database is not whole.
pub(crate) async fn unfinished(transaction: &mut Transaction) -> Result<Option<String>, StoreError> {
    let sql = "SELECT value FROM meta WHERE name = $1";
    let row = transaction.fetch_one(sql, values![UNFINISHED]).await?;
    row.map(|row| row.columns().text("value")).transpose()
}

fn broken_off(backup: &str) -> StoreError {
    StoreError::Invalid(format!(
        "the backup {backup} was being restored into this database, and that was broken off: run the same `packhouse restore` again, \
         which goes on where it stopped, or empty the database and the storage of blobs"
    ))
}

fn not_empty(what: &str) -> StoreError {
    StoreError::Invalid(format!(
        "the {what} is not empty, and a backup is restored into an empty place only: name another"
    ))
}

/// The statements of a step, with what differs between the databases filled in; one that begins with `{sqlite}` is for SQLite alone.
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
