//! Read-only examination of a database and a blob storage, for `packhouse doctor` and `packhouse
//! migrate --check`.

use std::path::Path;
use std::time::Duration;

use sqlx::{Connection as _, PgConnection, Row as _};

use crate::blobs::Storage;
use crate::boxed;
use crate::config::StoreConfig;
use crate::db::{MIXES_STATEMENTS, STEPS, Servers, keeps_statements_apart};
use crate::error::StoreError;
use crate::ids::now_ms;
use crate::sqlite::{open_reader, sqlite_file};

/// Maximum time of one query.
const PATIENCE: Duration = Duration::from_secs(10);
/// Oldest supported PostgreSQL, in the form of `server_version_num`.
const OLDEST: i32 = 150_000;

/// Maximum size of a SQLite file that is read completely to find damage.
const CHECKED: u64 = 256 << 20;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseFacts {
    /// Number of applied schema steps; 0 in an empty or missing database.
    pub schema: usize,
    /// True if the database exists. For SQLite this is its file.
    pub exists: bool,
    /// Milliseconds by which this machine's clock is ahead of the database's; `None` with SQLite.
    pub clock_ahead_ms: Option<i64>,
    /// Problems that prevent the use of the database, one sentence each.
    pub problems: Vec<String>,
    /// Id of the sealing key that the last server used, as in `Sealer::id`.
    pub sealing_key: Option<String>,
    /// Blobs that a read found missing or damaged, and that were not uploaded again since.
    pub damaged_blobs: u64,
}

/// Number of schema steps that this program knows.
#[must_use]
pub fn known_schema() -> usize {
    STEPS.len()
}

/// Examines the database. `Unavailable` if it cannot be reached; `Invalid` for a malformed address.
#[boxed]
pub async fn examine_database(config: &StoreConfig) -> Result<DatabaseFacts, StoreError> {
    let examination = async {
        if config.database_url.starts_with("sqlite:") { sqlite(config).await } else { postgres(config).await }
    };
    let late = |_| StoreError::database(sqlx::Error::Io(std::io::Error::other("it does not answer")));
    tokio::time::timeout(PATIENCE, examination).await.map_err(late)?
}

/// Writes, reads and removes a test blob. `Invalid` if the storage rejects the credentials.
#[boxed]
pub async fn examine_blobs(config: &StoreConfig) -> Result<(), StoreError> {
    let storage = Storage::open(config).await?;
    storage.check_access().await?;
    storage.canary().await
}

async fn sqlite(config: &StoreConfig) -> Result<DatabaseFacts, StoreError> {
    let file = sqlite_file(&config.database_url)?;
    if !file.exists() {
        return Ok(DatabaseFacts::default());
    }
    let read = tokio::task::spawn_blocking(move || facts_of(&file));
    read.await.map_err(StoreError::database)?.map_err(StoreError::database)
}

/// Examines a SQLite file. It neither creates the file nor changes its journal mode.
fn facts_of(file: &Path) -> rusqlite::Result<DatabaseFacts> {
    let connection = open_reader(file)?;
    connection.busy_timeout(PATIENCE)?;
    let mut facts = DatabaseFacts { exists: true, ..DatabaseFacts::default() };
    let tables = "SELECT COUNT(*) FROM sqlite_master WHERE name IN ('migrations', 'meta')";
    if connection.query_one(tables, [], |row| row.get::<_, i64>(0))? == 2 {
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let (taken, sealing_key) = connection.query_one(FACTS, [], read)?;
        (facts.schema, facts.sealing_key) = (steps(taken), sealing_key);
        if facts.schema == known_schema() {
            let count = connection.query_one(DAMAGED, [], |row| row.get::<_, i64>(0))?;
            facts.damaged_blobs = count.unsigned_abs();
        }
    }
    let small = std::fs::metadata(file).is_ok_and(|file| file.len() <= CHECKED);
    let check = if small { "PRAGMA quick_check(1)" } else { "SELECT 'ok'" };
    let checked: String = connection.query_one(check, [], |row| row.get(0))?;
    if checked != "ok" {
        facts.problems.push(format!(
            "the database's file is damaged ({checked}): restore a backup of it, or of the data folder"
        ));
    }
    Ok(facts)
}

const FACTS: &str =
    "SELECT COALESCE(MAX(step), 0), (SELECT value FROM meta WHERE name = 'sealing_key') FROM migrations";

/// Query for the number of damaged blobs. It runs only on the schema of this program.
const DAMAGED: &str = "SELECT COUNT(*) FROM blobs WHERE damaged_at IS NOT NULL";

async fn postgres(config: &StoreConfig) -> Result<DatabaseFacts, StoreError> {
    // No statement cache: a pooler may run each statement on another connection.
    let servers = Servers::parse(&config.database_url)?.with(|options| {
        options.application_name("packhouse doctor").extra_float_digits(None).statement_cache_capacity(0)
    });
    let mut connection = servers.connect().await.map_err(StoreError::database)?;
    let mut facts = DatabaseFacts { exists: true, ..DatabaseFacts::default() };
    let settings = "SELECT current_setting('server_version_num')::INTEGER, pg_is_in_recovery(), \
                 has_schema_privilege(current_schema(), 'CREATE'), \
                 (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT, \
                 to_regclass('migrations') IS NOT NULL AND to_regclass('meta') IS NOT NULL, \
                 COALESCE(has_table_privilege(to_regclass('migrations'), 'SELECT'), TRUE), \
                 current_setting('server_encoding'), current_setting('synchronous_commit'), current_setting('fsync')";
    let row = fetch(&mut connection, settings).await?;
    let read = |error: sqlx::Error| StoreError::database(error);
    let version: i32 = row.try_get(0).map_err(read)?;
    let standby: bool = row.try_get(1).map_err(read)?;
    let may_create: Option<bool> = row.try_get(2).map_err(read)?;
    facts.clock_ahead_ms = Some(now_ms().saturating_sub(row.try_get(3).map_err(read)?));
    let made: bool = row.try_get(4).map_err(read)?;
    let readable: bool = row.try_get(5).map_err(read)?;
    let encoding: String = row.try_get(6).map_err(read)?;
    let [synchronous, fsync]: [String; 2] = [row.try_get(7).map_err(read)?, row.try_get(8).map_err(read)?];
    if version < OLDEST {
        facts
            .problems
            .push(format!("PostgreSQL has version {}: this program needs 15 or later", version / 10_000));
    }
    if standby {
        facts.problems.push(
            "the server is a standby and does not accept writes: name the primary, or several hosts with \
             target_session_attrs=read-write"
                .to_owned(),
        );
    }
    if may_create != Some(true) && !standby {
        facts.problems.push(
            "the role may not create tables in its schema: make it the owner of the database, or GRANT \
             CREATE ON SCHEMA to it"
                .to_owned(),
        );
    }
    if !readable {
        facts.problems.push(
            "the tables belong to another role and this one may not read them: use the role that created them"
                .to_owned(),
        );
    }
    if encoding != "UTF8" {
        facts.problems.push(format!(
            "the database's encoding is {encoding}: create the database again with ENCODING 'UTF8'"
        ));
    }
    if synchronous == "off" || fsync == "off" {
        facts.problems.push(
            "the database acknowledges commits that a power failure can lose: set fsync and \
             synchronous_commit to on"
                .to_owned(),
        );
    }
    if made && readable {
        let row = fetch(&mut connection, FACTS).await?;
        facts.schema = steps(row.try_get(0).map_err(read)?);
        facts.sealing_key = row.try_get(1).map_err(read)?;
        if facts.schema == known_schema() {
            let row = fetch(&mut connection, DAMAGED).await?;
            facts.damaged_blobs = row.try_get::<i64, _>(0).map_err(read)?.unsigned_abs();
        }
    }
    connection.close().await.map_err(StoreError::database)?;
    // With a statement cache, as the server has one.
    let servers = Servers::parse(&config.database_url)?.with(|options| options.extra_float_digits(None));
    if !keeps_statements_apart(&servers).await.map_err(StoreError::database)? {
        facts.problems.push(MIXES_STATEMENTS.to_owned());
    }
    Ok(facts)
}

async fn fetch(
    connection: &mut PgConnection,
    sql: &'static str,
) -> Result<sqlx::postgres::PgRow, StoreError> {
    let row = sqlx::query(sql).persistent(false).fetch_one(connection).await;
    row.map_err(StoreError::database)
}

fn steps(taken: i64) -> usize {
    usize::try_from(taken).unwrap_or(usize::MAX)
}
