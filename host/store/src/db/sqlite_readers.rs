//! Connections for reading from SQLite.
//!
//! Passing a statement to another thread costs more than running most small look-ups. So one small
//! look-up at a time runs on the calling thread, on a reserved connection. A disk that does not
//! answer then blocks only one worker thread. Statements that may read much run on their own
//! threads.

use std::iter;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::local_row::LocalRow;
use super::local_statement::{rows_of, rows_within};
use super::value::{Sql, Value};
use crate::error::StoreError;
use crate::sqlite::open_reader;

/// Maximum number of concurrent statements on their own threads.
const READERS: usize = 4;
/// Time limit for waiting for a free reader.
const TURN: Duration = Duration::from_secs(30);
/// Time limit for a statement on its own thread. Without it, a few endless statements would block
/// all other reads. Reads of the whole database, such as backups, have a separate connection.
const LONGEST: Duration = Duration::from_secs(30);
/// Number of SQLite instructions between two checks of the time limit. Most instructions take some
/// nanoseconds; a query of the full-text index may take a millisecond.
const INSTRUCTIONS: i32 = 1_000;
/// Number of times that a caller yields to the statement running inline before it uses a thread.
const YIELDS: usize = 3;
/// Page cache of a connection, in KiB.
const CACHE_KIB: i64 = 512;

/// Limit of the rows to return.
#[derive(Clone, Copy)]
pub(super) enum RowLimit {
    All,
    /// The first rows in which the bytes of a column (counted from 0) add up to at most this many.
    Within {
        column: usize,
        bytes: u64,
    },
}

#[derive(Clone)]
pub(super) struct SqliteReaders(Arc<Readers>);

struct Readers {
    file: Box<Path>,
    turns: Arc<Semaphore>,
    /// Connections without a running statement.
    idle: Mutex<Vec<Connection>>,
    /// Connection for statements on the calling thread; `None` once everything is closed. It stays
    /// open, because SQLite would remove the WAL index with the last connection, and `generation`
    /// reads that file.
    inline: Mutex<Option<Connection>>,
    /// True if the runtime has other workers that go on while this thread waits for the disk.
    has_other_workers: bool,
    longest: Duration,
}

impl SqliteReaders {
    /// Opens the connections to an existing file.
    pub(super) async fn open(file: &Path) -> Result<SqliteReaders, StoreError> {
        SqliteReaders::open_for(file, LONGEST).await
    }

    async fn open_for(file: &Path, longest: Duration) -> Result<SqliteReaders, StoreError> {
        let file: Box<Path> = file.into();
        let of_file = file.clone();
        let opened = spawn_blocking(move || open(&of_file)).await.map_err(StoreError::database)?;
        let inline = opened.map_err(StoreError::database)?;
        inline.busy_timeout(Duration::ZERO).map_err(StoreError::database)?;
        Ok(SqliteReaders(Arc::new(Readers {
            file,
            turns: Arc::new(Semaphore::new(READERS)),
            idle: Mutex::default(),
            inline: Mutex::new(Some(inline)),
            has_other_workers: Handle::current().metrics().num_workers() > 1,
            longest,
        })))
    }

    /// Runs a statement on its own thread, for at most [`LONGEST`], and returns its rows.
    pub(super) async fn fetch(
        &self,
        sql: Sql,
        values: Vec<Value>,
        limit: RowLimit,
    ) -> Result<Vec<LocalRow>, StoreError> {
        let turn = timeout(TURN, Arc::clone(&self.0.turns).acquire_owned()).await;
        let turn = turn.map_err(|_| StoreError::database("timed out while waiting for a database reader"))?;
        let turn = turn.map_err(|_| closed())?;
        let readers = Arc::clone(&self.0);
        let read = spawn_blocking(move || {
            let rows = readers.read(&sql, &values, limit);
            drop(turn);
            rows
        });
        read.await.map_err(StoreError::database)?.map_err(StoreError::database)
    }

    /// Returns the rows of a statement that looks up a few rows.
    pub(super) async fn fetch_few(
        &self,
        sql: Sql,
        values: Vec<Value>,
        limit: RowLimit,
    ) -> Result<Vec<LocalRow>, StoreError> {
        // Let other tasks run if a task calls this in a loop.
        tokio::task::coop::consume_budget().await;
        match self.0.read_inline(&sql, &values, limit) {
            Some(rows) => rows.map_err(StoreError::database),
            None => self.fetch(sql, values, limit).await,
        }
    }

    /// Returns the number of open connections, and of the idle ones among them.
    pub(super) fn connections(&self) -> (usize, usize) {
        let running = READERS.saturating_sub(self.0.turns.available_permits());
        let idle = self.0.idle().len();
        (running + idle + 1, idle + 1)
    }

    /// Returns the maximum number of connections.
    pub(super) fn most() -> usize {
        READERS + 1
    }

    /// Closes all connections after the running statements. Later calls are `Unavailable`.
    pub(super) async fn close(&self) {
        self.0.turns.close();
        let readers = Arc::clone(&self.0);
        let close = move || {
            drop(std::mem::take(&mut *readers.idle()));
            drop(readers.inline.lock().unwrap_or_else(PoisonError::into_inner).take());
        };
        let _ = spawn_blocking(close).await;
    }
}

impl Readers {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, sql: &str, values: &[Value], limit: RowLimit) -> rusqlite::Result<Vec<LocalRow>> {
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| open(&self.file), Ok)?;
        let until = Instant::now() + self.longest;
        connection.progress_handler(INSTRUCTIONS, Some(move || Instant::now() >= until))?;
        let rows = run(&connection, sql, values, limit);
        if !self.turns.is_closed() {
            self.idle().push(connection);
        }
        rows
    }

    /// Returns the connection for statements on the calling thread; `None` if another statement
    /// runs there for longer than usual.
    fn try_inline(&self) -> Option<MutexGuard<'_, Option<Connection>>> {
        // The thread that holds the lock may have lost its core to this thread, so it cannot finish
        // before this thread yields.
        let later = iter::repeat_with(|| {
            thread::yield_now();
            self.inline.try_lock().ok()
        });
        self.inline.try_lock().ok().or_else(|| later.take(YIELDS).flatten().next())
    }

    /// Returns `None` if the statement must run on its own thread.
    fn read_inline(
        &self,
        sql: &str,
        values: &[Value],
        limit: RowLimit,
    ) -> Option<rusqlite::Result<Vec<LocalRow>>> {
        if !self.has_other_workers {
            return None;
        }
        let inline = self.try_inline()?;
        match run(inline.as_ref()?, sql, values, limit) {
            // Another process is recovering the log. The wait must not block this thread.
            Err(problem) if problem.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => None,
            done => Some(done),
        }
    }
}

fn open(file: &Path) -> rusqlite::Result<Connection> {
    let connection = open_reader(file)?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
    Ok(connection)
}

fn run(
    connection: &Connection,
    sql: &str,
    values: &[Value],
    limit: RowLimit,
) -> rusqlite::Result<Vec<LocalRow>> {
    let mut statement = connection.prepare_cached(sql)?;
    match limit {
        RowLimit::All => rows_of(&mut statement, values),
        RowLimit::Within { column, bytes } => rows_within(&mut statement, values, column, bytes),
    }
}

fn closed() -> StoreError {
    StoreError::database("the store is closed")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::values;

    const SQL: &str = "SELECT a FROM t WHERE a = $1";

    async fn readers(folder: &Path) -> SqliteReaders {
        let file = folder.join("test.db");
        let connection = Connection::open(&file).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.execute_batch("CREATE TABLE t (a BIGINT); INSERT INTO t VALUES (1)").unwrap();
        SqliteReaders::open(&file).await.unwrap()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_small_look_up_runs_inline_unless_another_does() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(folder.path()).await;
        assert_eq!(readers.fetch_few(SQL.into(), values![1], RowLimit::All).await.unwrap().len(), 1);
        assert_eq!(readers.connections(), (1, 1), "no thread was needed");
        let held = Arc::clone(&readers.0);
        let busy = spawn_blocking(move || {
            let inline = held.inline.lock().unwrap();
            let read = Handle::current().block_on(SqliteReaders(Arc::clone(&held)).fetch_few(
                SQL.into(),
                values![1],
                RowLimit::All,
            ));
            drop(inline);
            read.unwrap().len()
        });
        assert_eq!(busy.await.unwrap(), 1);
        assert_eq!(readers.connections(), (2, 2));
    }

    #[tokio::test]
    async fn a_single_worker_thread_does_not_read_inline() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(folder.path()).await;
        assert_eq!(readers.fetch_few(SQL.into(), values![1], RowLimit::All).await.unwrap().len(), 1);
        assert_eq!(readers.connections(), (2, 2));
    }

    #[tokio::test]
    async fn an_endless_statement_is_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        readers(folder.path()).await.close().await;
        let readers =
            SqliteReaders::open_for(&folder.path().join("test.db"), Duration::from_millis(20)).await;
        let readers = readers.unwrap();
        let endless =
            "WITH RECURSIVE n (a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) SELECT COUNT(*) FROM n";
        for _ in 0..2 * READERS {
            let ended = readers.fetch(endless.into(), values![], RowLimit::All).await;
            assert!(matches!(ended, Err(StoreError::Unavailable { .. })));
        }
        assert_eq!(readers.fetch(SQL.into(), values![1], RowLimit::All).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn readers_cannot_write_and_closed_readers_cannot_read() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(folder.path()).await;
        assert!(readers.fetch("INSERT INTO t VALUES (2)".into(), values![], RowLimit::All).await.is_err());
        assert_eq!(readers.fetch("SELECT a FROM t".into(), values![], RowLimit::All).await.unwrap().len(), 1);
        readers.close().await;
        assert!(readers.fetch(SQL.into(), values![1], RowLimit::All).await.is_err());
        assert!(readers.fetch_few(SQL.into(), values![1], RowLimit::All).await.is_err());
    }
}
