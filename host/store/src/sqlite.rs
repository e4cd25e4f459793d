//! Opening of SQLite databases: the file of a `sqlite://` URL, and the setup of every connection.

use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use crate::error::StoreError;

/// Maximum time that SQLite waits for another writing process.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum prepared statements of a connection: enough for all statements of the program, each for
/// the usual batch sizes.
pub(crate) const STATEMENTS: usize = 512;
/// URL parameters that are allowed, because they only request the default.
const MODES: [&str; 2] = ["mode=rw", "mode=rwc"];

/// File of a `sqlite://` URL. The rest of the URL is a path, in which a question mark is written
/// `%3F`. `Invalid` for a database in memory, and for parameters that would change how SQLite opens
/// the file.
pub(crate) fn sqlite_file(url: &str) -> Result<PathBuf, StoreError> {
    let address = url.strip_prefix("sqlite:").unwrap_or(url);
    let address = address.strip_prefix("//").unwrap_or(address);
    let (path, parameters) = address.split_once('?').unwrap_or((address, ""));
    if path == ":memory:" || parameters.contains("mode=memory") {
        return Err(StoreError::Invalid("SQLite in memory is not supported: name a file".to_owned()));
    }
    if !parameters.is_empty() && !MODES.contains(&parameters) {
        return Err(StoreError::Invalid(format!(
            "the database URL has the unknown parameter {parameters:?}; write sqlite://PATH, with %3F for \
             a question mark"
        )));
    }
    let path = percent_decode_str(path).decode_utf8();
    let path = path.map_err(|problem| StoreError::Invalid(format!("the database URL: {problem}")))?;
    if path.is_empty() {
        return Err(StoreError::Invalid("the database URL does not name a file".to_owned()));
    }
    Ok(PathBuf::from(path.into_owned()))
}

/// Opens an existing file for reading.
pub(crate) fn open_reader(file: &Path) -> rusqlite::Result<Connection> {
    // The connection needs write access, because readers also write to the WAL index.
    let connection = Connection::open_with_flags(
        file,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "query_only", "ON")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    keep_plans(&connection)?;
    Ok(connection)
}

/// Makes SQLite plan each statement only once. By default, SQLite plans a statement with `LIMIT $1`
/// again on each run, because another number might have a better plan.
pub(crate) fn keep_plans(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_file() {
        let file = |url| sqlite_file(url).map(|file| file.display().to_string()).ok();
        assert_eq!(file("sqlite:///var/lib/a.db").as_deref(), Some("/var/lib/a.db"));
        assert_eq!(file("sqlite://a%3Fb%20c.db?mode=rwc").as_deref(), Some("a?b c.db"));
        assert_eq!(file("sqlite:a.db").as_deref(), Some("a.db"));
        for wrong in [
            "sqlite::memory:",
            "sqlite://:memory:",
            "sqlite://a?mode=memory",
            "sqlite://a?mode=ro",
            "sqlite://",
            "sqlite://%ff",
        ] {
            assert_eq!(file(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_bound_limit_is_planned_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("test.db");
        Connection::open(&file).unwrap().execute_batch("CREATE TABLE t (a BIGINT)").unwrap();
        let connection = open_reader(&file).unwrap();
        let mut statement = connection.prepare("SELECT a FROM t LIMIT $1").unwrap();
        for limit in 1..5 {
            statement.query_map([limit], |row| row.get::<_, i64>(0)).unwrap().for_each(drop);
        }
        assert_eq!(statement.get_status(rusqlite::StatementStatus::RePrepare), 0);
    }
}
