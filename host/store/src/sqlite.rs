//! How SQLite is opened: the options for a `sqlite://` address.

use std::str::FromStr;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use tracing::log::LevelFilter;

use crate::error::StoreError;

/// How long SQLite waits for another process that writes.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Prepared statements a connection keeps: those of the program, each in the lengths that batches have.
pub(crate) const STATEMENTS: usize = 512;

/// The options for a `sqlite://` address.
pub(crate) fn sqlite_options(url: &str) -> Result<SqliteConnectOptions, StoreError> {
    let options = SqliteConnectOptions::from_str(url)
        .map_err(|problem| StoreError::Invalid(format!("the database's address: {problem}")))?;
    if url.contains(":memory:") || url.contains("mode=memory") {
        return Err(StoreError::Invalid("SQLite in memory is not supported: name a file".to_owned()));
    }
    Ok(options
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .busy_timeout(BUSY_TIMEOUT)
        .pragma("temp_store", "MEMORY")
        .statement_cache_capacity(STATEMENTS)
        .log_statements(LevelFilter::Trace)
        .log_slow_statements(LevelFilter::Debug, Duration::from_secs(1)))
}
