//! Connection on which this process writes to SQLite.
//!
//! Passing a statement to another thread costs more than running most statements. So a transaction
//! passes all its reads to a thread at once, and later all its writes together with the commit. On
//! that thread, a statement over many rows runs once for each row. Its text is then always the
//! same, so SQLite prepares it once.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use rusqlite::Connection;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::checkpoints::Checkpoints;
use super::local_row::LocalRow;
use super::local_statement::rows_of;
use super::multi_row::MultiRow;
use super::value::{Sql, Value};
use crate::error::StoreError;
use crate::sqlite::{BUSY_TIMEOUT, keep_plans};

/// Idle time after which the connection releases its memory.
const IDLE: Duration = Duration::from_secs(10);
/// Time limit for waiting for earlier transactions.
const TURN: Duration = Duration::from_secs(30);
/// Log length in pages from which a commit copies the log into the database itself, without a
/// checkpoint task.
const LOG_PAGES: u32 = 8000;
/// Log length in pages from which a commit copies the log itself even if a checkpoint task exists.
/// At this length, the task must have stalled.
const LOG_PAGES_AT_LAST: u32 = 64_000;

#[derive(Clone)]
pub(super) struct SqliteWriter {
    connection: Arc<Mutex<Option<Connection>>>,
    checkpoints: Arc<OnceLock<Arc<Checkpoints>>>,
    /// Number of transactions begun so far.
    begun: Arc<AtomicU64>,
}

/// A transaction that may write. It begins with its first statement. Dropping it before the commit
/// undoes it.
pub(super) struct LocalTransaction {
    /// `None` after an abandoned call: the thread that runs it rolls back.
    turn: Option<WriterTurn>,
    begun: bool,
    checkpoints: Arc<OnceLock<Arc<Checkpoints>>>,
}

pub(super) struct StatementResult {
    pub(super) rows: Vec<LocalRow>,
    pub(super) changed: u64,
}

/// Failure of a transaction, by its stage.
pub(crate) enum Failed {
    /// The transaction failed before the commit, so nothing was written.
    Before(StoreError),
    /// The commit failed. The transaction may have been written.
    Commit(StoreError),
}

impl SqliteWriter {
    /// Opens the file, and creates it if it does not exist.
    pub(super) async fn open(file: &Path) -> Result<SqliteWriter, StoreError> {
        let file = file.to_owned();
        let opened = spawn_blocking(move || open(&file)).await.map_err(StoreError::database)?;
        let connection = opened.map_err(StoreError::database)?;
        let connection = Arc::new(Mutex::new(Some(connection)));
        let begun = Arc::<AtomicU64>::default();
        tokio::spawn(release_memory_when_idle(Arc::downgrade(&connection), Arc::clone(&begun)));
        Ok(SqliteWriter { connection, checkpoints: Arc::default(), begun })
    }

    /// Hands checkpoints over to a separate task, so that commits do not wait for them.
    pub(super) async fn checkpoint_with(&self, checkpoints: Arc<Checkpoints>) -> Result<(), StoreError> {
        checkpoints.start(Arc::downgrade(&self.connection)).await?;
        let turn = self.turn().await?;
        let pages = i64::from(LOG_PAGES_AT_LAST);
        turn.connection()?.pragma_update(None, "wal_autocheckpoint", pages).map_err(StoreError::database)?;
        let _ = self.checkpoints.set(checkpoints);
        Ok(())
    }

    /// Waits for earlier transactions and begins one. SQLite has one writing transaction at a time.
    pub(super) async fn begin(&self) -> Result<LocalTransaction, StoreError> {
        let turn = Some(self.turn().await?);
        self.begun.fetch_add(1, Ordering::Relaxed);
        Ok(LocalTransaction { turn, begun: false, checkpoints: Arc::clone(&self.checkpoints) })
    }

    async fn turn(&self) -> Result<WriterTurn, StoreError> {
        let turn = timeout(TURN, Arc::clone(&self.connection).lock_owned()).await;
        Ok(WriterTurn(
            turn.map_err(|_| StoreError::database("timed out while waiting for the database writer"))?,
        ))
    }

    /// Returns whether no transaction is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.connection.try_lock().is_ok()
    }

    /// Closes the connection after the transaction in progress. Later calls are `Unavailable`.
    pub(super) async fn close(&self) {
        if let Some(checkpoints) = self.checkpoints.get() {
            checkpoints.stop().await;
        }
        let connection = self.connection.lock().await.take();
        let _ = spawn_blocking(move || drop(connection)).await;
    }
}

/// Releases cached pages after some time without writes. Ends with the writer.
async fn release_memory_when_idle(connection: Weak<Mutex<Option<Connection>>>, begun: Arc<AtomicU64>) {
    let (mut last, mut released) = (0, 0);
    loop {
        tokio::time::sleep(IDLE).await;
        let Some(connection) = connection.upgrade() else { return };
        let now = begun.load(Ordering::Relaxed);
        if now == last && now != released {
            let turn = WriterTurn(connection.lock_owned().await);
            let done = spawn_blocking(move || turn.connection().map(Connection::release_memory)).await;
            if let Ok(Ok(Err(problem))) = done {
                tracing::debug!(%problem, "could not release the database's memory");
            }
            released = now;
        }
        last = now;
    }
}

fn open(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
    // A little more than the default of 2 MiB: the operating system caches the file as well, and 64
    // MiB did not make writing a million artifacts faster. A large cache even costs time. While
    // SQLite balances an index, it temporarily gives a page the number of the page at 1 GiB. A
    // commit searches all cached pages if it has seen a page number beyond the database's end. With
    // 64 MiB, that took a twelfth of the CPU time of a publish.
    connection.pragma_update(None, "cache_size", -8192)?;
    keep_plans(&connection)?;
    Ok(connection)
}

impl LocalTransaction {
    pub(super) async fn run(&mut self, sql: Sql, values: Vec<Value>) -> Result<StatementResult, StoreError> {
        self.work(move |connection| run(connection, &sql, &values).map_err(StoreError::database)).await
    }

    pub(super) async fn script(&mut self, sql: &'static str) -> Result<(), StoreError> {
        self.work(move |connection| connection.execute_batch(sql).map_err(StoreError::database)).await
    }

    /// Runs statements one after the other and returns the result of each.
    pub(super) async fn run_each(
        &mut self,
        statements: Vec<MultiRow>,
    ) -> Result<Vec<StatementResult>, StoreError> {
        self.work(move |connection| run_each(connection, &statements).map_err(StoreError::database)).await
    }

    /// Runs statements one after the other, commits, and returns the result of each.
    pub(super) async fn run_each_and_commit(
        mut self,
        statements: Vec<MultiRow>,
    ) -> Result<Vec<StatementResult>, Failed> {
        let checkpoints = Arc::clone(&self.checkpoints);
        let done = self.work(move |connection| {
            let ran = run_each(connection, &statements).map_err(StoreError::database)?;
            Ok(commit(connection, &checkpoints).map(|()| ran).map_err(Failed::Commit))
        });
        done.await.map_err(Failed::Before)?
    }

    /// Commits. The transaction is durable when this returns.
    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        let checkpoints = Arc::clone(&self.checkpoints);
        self.work(move |connection| commit(connection, &checkpoints)).await
    }

    async fn work<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (turn, begun) = (self.turn.take().ok_or_else(ended)?, self.begun);
        let worked = spawn_blocking(move || {
            let done = turn.connection().and_then(|connection| {
                if !begun {
                    begin(connection).map_err(StoreError::database)?;
                } else if connection.is_autocommit() {
                    // A disk failure, for example, ended the transaction. Later statements must not
                    // be written outside of it.
                    return Err(ended());
                }
                work(connection)
            });
            (turn, done)
        });
        let (turn, done) = worked.await.map_err(StoreError::database)?;
        self.turn = Some(turn);
        self.begun = true;
        done
    }
}

/// Exclusive use of the connection during a transaction.
struct WriterTurn(OwnedMutexGuard<Option<Connection>>);

impl WriterTurn {
    fn connection(&self) -> Result<&Connection, StoreError> {
        self.0.as_ref().ok_or_else(|| StoreError::database("the store is closed"))
    }
}

impl Drop for WriterTurn {
    /// Rolls back what was not committed. SQLite may have ended the transaction by itself if the
    /// disk failed.
    fn drop(&mut self) {
        if let Some(connection) = self.0.as_ref()
            && !connection.is_autocommit()
            && let Err(problem) = connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%problem, "a transaction could not be rolled back");
        }
    }
}

fn run(connection: &Connection, sql: &str, values: &[Value]) -> rusqlite::Result<StatementResult> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = rows_of(&mut statement, values)?;
    Ok(StatementResult { rows, changed: connection.changes() })
}

fn run_each(connection: &Connection, statements: &[MultiRow]) -> rusqlite::Result<Vec<StatementResult>> {
    let mut all = Vec::with_capacity(statements.len());
    for statement in statements {
        let mut ran = StatementResult { rows: Vec::new(), changed: 0 };
        let mut tuples = statement.tuples().peekable();
        if tuples.peek().is_some() {
            let mut prepared = connection.prepare_cached(&statement.of_one_row())?;
            for values in tuples {
                ran.rows.extend(rows_of(&mut prepared, values)?);
                ran.changed += connection.changes();
            }
        }
        all.push(ran);
    }
    Ok(all)
}

fn begin(connection: &Connection) -> rusqlite::Result<usize> {
    connection.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()
}

fn commit(connection: &Connection, checkpoints: &OnceLock<Arc<Checkpoints>>) -> Result<(), StoreError> {
    let committed = connection.prepare_cached("COMMIT").and_then(|mut commit| commit.raw_execute());
    committed.map_err(StoreError::database)?;
    if let Some(checkpoints) = checkpoints.get() {
        checkpoints.committed();
    }
    Ok(())
}

fn ended() -> StoreError {
    StoreError::database("the transaction has ended")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::values;

    async fn writer(folder: &Path) -> SqliteWriter {
        let writer = SqliteWriter::open(&folder.join("test.db")).await.unwrap();
        let mut transaction = writer.begin().await.unwrap();
        transaction.run("CREATE TABLE t (a BIGINT PRIMARY KEY, b BIGINT)".into(), values![]).await.unwrap();
        transaction.commit().await.unwrap();
        writer
    }

    async fn count(writer: &SqliteWriter) -> usize {
        let mut transaction = writer.begin().await.unwrap();
        transaction.run("SELECT a FROM t".into(), values![]).await.unwrap().rows.len()
    }

    fn insert(rows: Vec<[Value; 2]>) -> MultiRow {
        MultiRow::new("INSERT INTO t (a, b) VALUES ", rows, " RETURNING a")
    }

    #[tokio::test]
    async fn an_uncommitted_transaction_is_rolled_back() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(folder.path()).await;
        let mut dropped = writer.begin().await.unwrap();
        dropped.run("INSERT INTO t VALUES ($1, $2)".into(), values![1, 2]).await.unwrap();
        drop(dropped);
        assert_eq!(count(&writer).await, 0);
        let twice = insert(vec![[3.into(), 4.into()], [3.into(), 5.into()]]);
        let failed = writer.begin().await.unwrap().run_each_and_commit(vec![twice]).await;
        assert!(matches!(failed, Err(Failed::Before(_))));
        assert_eq!(count(&writer).await, 0);
        let once = insert(vec![[3.into(), 4.into()], [4.into(), 5.into()]]);
        let ran = writer.begin().await.unwrap().run_each_and_commit(vec![once]).await.ok().unwrap();
        assert_eq!((ran[0].rows.len(), ran[0].changed), (2, 2));
        assert_eq!(count(&writer).await, 2);
        writer.close().await;
        assert!(writer.begin().await.unwrap().run("SELECT 1".into(), values![]).await.is_err());
    }

    #[tokio::test]
    async fn a_transaction_that_sqlite_ended_writes_nothing_more() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(folder.path()).await;
        let mut transaction = writer.begin().await.unwrap();
        transaction.run("INSERT INTO t VALUES (1, 1)".into(), values![]).await.unwrap();
        transaction.run("ROLLBACK".into(), values![]).await.unwrap();
        assert!(transaction.run("INSERT INTO t VALUES (2, 2)".into(), values![]).await.is_err());
        drop(transaction);
        assert_eq!(count(&writer).await, 0);
    }

    #[tokio::test]
    async fn values_stand_where_their_numbers_say() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(folder.path()).await;
        let mut transaction = writer.begin().await.unwrap();
        let sql = "SELECT $2 AS two, $1 AS one, $2 AS again, $3 AS none";
        let ran = transaction.run(sql.into(), values![1, "b", None::<i64>]).await.unwrap();
        let row = &ran.rows[0];
        assert_eq!((row.name(0), row.get::<String>(0).unwrap()), (Some("two"), "b".to_owned()));
        assert_eq!((row.get::<i64>(1).unwrap(), row.get::<String>(2).unwrap()), (1, "b".to_owned()));
        assert_eq!(row.get::<Option<i64>>(3).unwrap(), None);
    }
}
