//! The connections on which this process reads from SQLite.
//!
//! To hand a statement to another thread costs more than most of those do that look a few rows up. So one of these runs where it is asked
//! for, on a connection that is there for it, unless another is running there: a disk that does not answer holds up one thread of those
//! that serve, and all others go on. What may read much runs on a thread of its own.

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

/// Statements on threads of their own at one time.
const READERS: usize = 4;
/// How long one waits for those before it.
const TURN: Duration = Duration::from_secs(30);
/// How long a statement on a thread of its own may run: a few that come to no end would hold up all that others read. What reads a whole
/// database, such as a backup, has a connection of its own.
const LONGEST: Duration = Duration::from_secs(30);
/// After how many of SQLite's instructions it is looked at whether the time is over. Most take some nanoseconds; one that asks the index of
/// texts may take a millisecond.
const INSTRUCTIONS: i32 = 1_000;
/// How many times one that finds another running where it is asked for gives way to it.
const YIELDS: usize = 3;
/// KiB of the database that a connection holds in memory.
const CACHE_KIB: i64 = 512;

/// How many of a statement's rows are wanted.
#[derive(Clone, Copy)]
pub(super) enum Wanted {
    All,
    /// Those at the beginning of which the bytes of a column, counted from 0, add up to no more than so many.
    Within {
        column: usize,
        bytes: u64,
    },
}

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct SqliteReaders(Arc<Readers>);

struct Readers {
    file: Box<Path>,
    turns: Arc<Semaphore>,
    /// Connections of which no statement runs.
    idle: Mutex<Vec<Connection>>,
    /// For statements that run where they are asked for; none once all is closed. It is open at all times: closing the last connection
    /// removes the index of the log, from which `generation` is read.
    here: Mutex<Option<Connection>>,
    /// Whether other threads go on while this one waits for the disk.
    beside_others: bool,
    longest: Duration,
}

impl SqliteReaders {
    /// Of this file, which is there.
    pub(super) async fn open(file: &Path) -> Result<SqliteReaders, StoreError> {
        SqliteReaders::open_for(file, LONGEST).await
    }

    async fn open_for(file: &Path, longest: Duration) -> Result<SqliteReaders, StoreError> {
        let file: Box<Path> = file.into();
        let of_file = file.clone();
        let opened = spawn_blocking(move || open(&of_file)).await.map_err(StoreError::database)?;
        let here = opened.map_err(StoreError::database)?;
        here.busy_timeout(Duration::ZERO).map_err(StoreError::database)?;
        Ok(SqliteReaders(Arc::new(Readers {
            file,
            turns: Arc::new(Semaphore::new(READERS)),
            idle: Mutex::default(),
            here: Mutex::new(Some(here)),
            beside_others: Handle::current().metrics().num_workers() > 1,
            longest,
        })))
    }

    /// The rows of a statement, which runs on a thread of its own, for [`LONGEST`] at most.
    pub(super) async fn fetch(
        &self,
        sql: Sql,
        values: Vec<Value>,
        wanted: Wanted,
    ) -> Result<Vec<LocalRow>, StoreError> {
        let turn = timeout(TURN, Arc::clone(&self.0.turns).acquire_owned()).await;
        let turn = turn.map_err(|_| StoreError::database("no turn to read came in time"))?;
        let turn = turn.map_err(|_| closed())?;
        let readers = Arc::clone(&self.0);
        let read = spawn_blocking(move || {
            let rows = readers.read(&sql, &values, wanted);
            drop(turn);
            rows
        });
        read.await.map_err(StoreError::database)?.map_err(StoreError::database)
    }

    /// The rows of a statement that looks a few up.
    pub(super) async fn fetch_few(
        &self,
        sql: Sql,
        values: Vec<Value>,
        wanted: Wanted,
    ) -> Result<Vec<LocalRow>, StoreError> {
        // Who asks again and again lets others run in between.
        tokio::task::coop::consume_budget().await;
        match self.0.read_here(&sql, &values, wanted) {
            Some(rows) => rows.map_err(StoreError::database),
            None => self.fetch(sql, values, wanted).await,
        }
    }

    /// How many connections are open, and on how many of them nothing runs.
    pub(super) fn connections(&self) -> (usize, usize) {
        let running = READERS.saturating_sub(self.0.turns.available_permits());
        let idle = self.0.idle().len();
        (running + idle + 1, idle + 1)
    }

    /// The most connections that there ever are.
    pub(super) fn most() -> usize {
        READERS + 1
    }

    /// Closes all of them, after the statements that run. Later ones are `Unavailable`.
    pub(super) async fn close(&self) {
        self.0.turns.close();
        let readers = Arc::clone(&self.0);
        let close = move || {
            drop(std::mem::take(&mut *readers.idle()));
            drop(readers.here.lock().unwrap_or_else(PoisonError::into_inner).take());
        };
        let _ = spawn_blocking(close).await;
    }
}

impl Readers {
    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, sql: &str, values: &[Value], wanted: Wanted) -> rusqlite::Result<Vec<LocalRow>> {
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| open(&self.file), Ok)?;
        let until = Instant::now() + self.longest;
        connection.progress_handler(INSTRUCTIONS, Some(move || Instant::now() >= until))?;
        let rows = run(&connection, sql, values, wanted);
        if !self.turns.is_closed() {
            self.idle().push(connection);
        }
        rows
    }

    /// The connection for statements that run where they are asked for; none where another runs there for longer than most do.
    fn here(&self) -> Option<MutexGuard<'_, Option<Connection>>> {
        // Who has it may have lost its core to who asks, and comes to an end no sooner than it has that again.
        let later = iter::repeat_with(|| {
            thread::yield_now();
            self.here.try_lock().ok()
        });
        self.here.try_lock().ok().or_else(|| later.take(YIELDS).flatten().next())
    }

    /// None where it is to run on a thread of its own.
    fn read_here(
        &self,
        sql: &str,
        values: &[Value],
        wanted: Wanted,
    ) -> Option<rusqlite::Result<Vec<LocalRow>>> {
        if !self.beside_others {
            return None;
        }
        let here = self.here()?;
        match run(here.as_ref()?, sql, values, wanted) {
            // Another process recovers the log, which takes a while.
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
    wanted: Wanted,
) -> rusqlite::Result<Vec<LocalRow>> {
    let mut statement = connection.prepare_cached(sql)?;
    match wanted {
        Wanted::All => rows_of(&mut statement, values),
        Wanted::Within { column, bytes } => rows_within(&mut statement, values, column, bytes),
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
    async fn what_looks_a_few_up_runs_where_it_is_asked_for_unless_another_does() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(folder.path()).await;
        assert_eq!(readers.fetch_few(SQL.into(), values![1], Wanted::All).await.unwrap().len(), 1);
        assert_eq!(readers.connections(), (1, 1), "no thread was needed");
        let held = Arc::clone(&readers.0);
        let busy = spawn_blocking(move || {
            let here = held.here.lock().unwrap();
            let asked = Handle::current().block_on(SqliteReaders(Arc::clone(&held)).fetch_few(
                SQL.into(),
                values![1],
                Wanted::All,
            ));
            drop(here);
            asked.unwrap().len()
        });
        assert_eq!(busy.await.unwrap(), 1);
        assert_eq!(readers.connections(), (2, 2));
    }

    #[tokio::test]
    async fn the_one_thread_that_serves_does_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(folder.path()).await;
        assert_eq!(readers.fetch_few(SQL.into(), values![1], Wanted::All).await.unwrap().len(), 1);
        assert_eq!(readers.connections(), (2, 2));
    }

    #[tokio::test]
    async fn a_statement_that_comes_to_no_end_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        readers(folder.path()).await.close().await;
        let readers =
            SqliteReaders::open_for(&folder.path().join("test.db"), Duration::from_millis(20)).await;
        let readers = readers.unwrap();
        let endless =
            "WITH RECURSIVE n (a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n) SELECT COUNT(*) FROM n";
        for _ in 0..2 * READERS {
            let ended = readers.fetch(endless.into(), values![], Wanted::All).await;
            assert!(matches!(ended, Err(StoreError::Unavailable { .. })));
        }
        assert_eq!(readers.fetch(SQL.into(), values![1], Wanted::All).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn nothing_is_written_and_nothing_read_once_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let readers = readers(folder.path()).await;
        assert!(readers.fetch("INSERT INTO t VALUES (2)".into(), values![], Wanted::All).await.is_err());
        assert_eq!(readers.fetch("SELECT a FROM t".into(), values![], Wanted::All).await.unwrap().len(), 1);
        readers.close().await;
        assert!(readers.fetch(SQL.into(), values![1], Wanted::All).await.is_err());
        assert!(readers.fetch_few(SQL.into(), values![1], Wanted::All).await.is_err());
    }
}
