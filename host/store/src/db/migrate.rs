//! Migration of the schema, step by step. A released step is never changed.

use super::database::{Database, Engine};
use super::pool::ConnectionPurpose;
use super::transaction::{Patience, Transaction};
use super::value::values;
use crate::error::StoreError;
use crate::ids::now_ms;

/// SQL of one step: statements for both databases, then those for only one.
pub(crate) struct MigrationStep {
    /// Statements separated by semicolons; a statement itself must not contain a semicolon.
    /// Placeholders such as `{blob}` stand for words that differ between the databases.
    both: &'static str,
    /// Script for SQLite only, or empty.
    sqlite: &'static str,
    /// Script for PostgreSQL only, or empty.
    postgres: &'static str,
}

impl MigrationStep {
    const fn of_both(both: &'static str) -> MigrationStep {
        MigrationStep { both, sqlite: "", postgres: "" }
    }
}

pub(crate) const STEPS: &[MigrationStep] = &[
    MigrationStep::of_both(include_str!("../migrations/0001_schema.sql")),
    MigrationStep::of_both(include_str!("../migrations/0002_accounts.sql")),
    MigrationStep::of_both(include_str!("../migrations/0003_sso.sql")),
    MigrationStep::of_both(include_str!("../migrations/0004_audit.sql")),
    MigrationStep::of_both(include_str!("../migrations/0005_services.sql")),
    MigrationStep::of_both(include_str!("../migrations/0006_cache.sql")),
    MigrationStep::of_both(include_str!("../migrations/0007_codes.sql")),
    MigrationStep::of_both(include_str!("../migrations/0008_open_logins.sql")),
    MigrationStep::of_both(include_str!("../migrations/0009_lists.sql")),
    MigrationStep {
        both: include_str!("../migrations/0010_growth.sql"),
        sqlite: include_str!("../migrations/0010_growth.sqlite.sql"),
        postgres: "",
    },
    MigrationStep {
        both: include_str!("../migrations/0011_people.sql"),
        sqlite: include_str!("../migrations/0011_people.sqlite.sql"),
        postgres: include_str!("../migrations/0011_people.postgres.sql"),
    },
    MigrationStep { both: "", sqlite: "", postgres: include_str!("../migrations/0012_leases.postgres.sql") },
    MigrationStep::of_both(include_str!("../migrations/0013_acme.sql")),
    MigrationStep::of_both(include_str!("../migrations/0014_trash.sql")),
    MigrationStep::of_both(include_str!("../migrations/0015_retention.sql")),
    MigrationStep::of_both(include_str!("../migrations/0016_backups.sql")),
    MigrationStep {
        both: include_str!("../migrations/0017_activity.sql"),
        sqlite: include_str!("../migrations/0017_activity.sqlite.sql"),
        postgres: include_str!("../migrations/0017_activity.postgres.sql"),
    },
    MigrationStep::of_both(include_str!("../migrations/0018_plugins.sql")),
    MigrationStep::of_both(include_str!("../migrations/0019_recordings.sql")),
    MigrationStep::of_both(include_str!("../migrations/0020_trials.sql")),
    MigrationStep::of_both(include_str!("../migrations/0021_webhooks.sql")),
    MigrationStep {
        both: include_str!("../migrations/0022_trusted_publishers.sql"),
        sqlite: "",
        postgres: include_str!("../migrations/0022_trusted_publishers.postgres.sql"),
    },
    MigrationStep { both: include_str!("../migrations/0023_attestations.sql"), sqlite: "", postgres: "" },
    MigrationStep::of_both(include_str!("../migrations/0024_policies.sql")),
    MigrationStep::of_both(include_str!("../migrations/0025_advisories.sql")),
    MigrationStep::of_both(include_str!("../migrations/0026_policy_recordings.sql")),
    MigrationStep::of_both(include_str!("../migrations/0027_documents.sql")),
    MigrationStep::of_both(include_str!("../migrations/0028_fetches.sql")),
    MigrationStep {
        both: include_str!("../migrations/0029_files_by_blob.sql"),
        sqlite: include_str!("../migrations/0029_files_by_blob.sqlite.sql"),
        postgres: include_str!("../migrations/0029_files_by_blob.postgres.sql"),
    },
    MigrationStep::of_both(include_str!("../migrations/0030_damaged_blobs.sql")),
    MigrationStep::of_both(include_str!("../migrations/0031_first_seen.sql")),
    MigrationStep::of_both(include_str!("../migrations/0032_no_trials.sql")),
    MigrationStep {
        both: include_str!("../migrations/0033_access.sql"),
        sqlite: "",
        postgres: include_str!("../migrations/0033_access.postgres.sql"),
    },
];

/// Number of the PostgreSQL advisory lock that makes concurrently starting processes migrate one
/// after another. The value is arbitrary.
const LOCK: i64 = 0x7061_636b;

/// Name of the row in `meta` that marks an incomplete restore. Its value names the backup.
pub(crate) const UNFINISHED: &str = "restore_unfinished";

/// Purpose of opening a database.
#[derive(Clone, Copy)]
pub(crate) enum OpenPurpose<'a> {
    /// Use by a server or a command. The schema is migrated to the newest step.
    InUse,
    /// Restore of this backup, whose schema has this step. The database and the blob storage must
    /// be empty (`occupied` is false), unless the same restore was started earlier and interrupted.
    Restored { backup: &'a str, step: u64, occupied: bool },
}

/// Migrates the schema to the newest step, or to the step of a backup. `Invalid` if the schema is
/// newer than this program, or if the database is in the wrong state for this purpose.
pub(super) async fn migrate(database: &Database, purpose: OpenPurpose<'_>) -> Result<(), StoreError> {
    let used = !database.table_names().await?.is_empty();
    let mut transaction = database.begin_for(ConnectionPurpose::Write, Patience::Endless).await?;
    if database.is_shared() {
        transaction.fetch("SELECT CAST(pg_advisory_xact_lock($1) AS TEXT)", values![LOCK]).await?;
    }
    let table = "CREATE TABLE IF NOT EXISTS migrations (step BIGINT PRIMARY KEY, applied_at BIGINT NOT NULL)";
    transaction.execute(table, vec![]).await?;
    let row = transaction.fetch_one("SELECT COALESCE(MAX(step), 0) AS step FROM migrations", vec![]).await?;
    let done = row.map_or(Ok(0), |row| row.columns().unsigned("step"))?;
    let done = usize::try_from(done).unwrap_or(usize::MAX);
    if done > STEPS.len() {
        let newer =
            "the database was written by a newer version of this program: start that version".to_owned();
        return Err(StoreError::Invalid(newer));
    }
    let unfinished = if done > 0 { unfinished(&mut transaction).await? } else { None };
    let until = match purpose {
        OpenPurpose::InUse => {
            if let Some(backup) = unfinished {
                return Err(broken_off(&backup));
            }
            STEPS.len()
        }
        OpenPurpose::Restored { backup, step, occupied } => {
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
                    return Err(not_empty(if used { "database" } else { "blob storage" }));
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
    if let OpenPurpose::Restored { backup, .. } = purpose {
        let mark = "INSERT INTO meta (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
        transaction.execute(mark, values![UNFINISHED, backup]).await?;
    }
    transaction.commit().await
}

/// Returns the backup whose restore into this database is incomplete.
pub(crate) async fn unfinished(transaction: &mut Transaction) -> Result<Option<String>, StoreError> {
    let sql = "SELECT value FROM meta WHERE name = $1";
    let row = transaction.fetch_one(sql, values![UNFINISHED]).await?;
    row.map(|row| row.columns().text("value")).transpose()
}

fn broken_off(backup: &str) -> StoreError {
    StoreError::Invalid(format!(
        "the restore of the backup {backup} into this database was interrupted: run the same `packhouse \
         restore` again to continue it, or empty the database and the blob storage"
    ))
}

fn not_empty(what: &str) -> StoreError {
    StoreError::Invalid(format!(
        "the {what} is not empty, but a backup can only be restored into an empty one: name another"
    ))
}

/// Splits a step into statements and fills in the words that differ between the databases.
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
