//! Checkpoints: copying SQLite's write-ahead log (WAL) into the database while commits go on.
//!
//! By default, SQLite checkpoints within a commit that finds the log long, so that every publish
//! waits for tens of milliseconds. Here, a task with its own connection copies and flushes most of
//! the log while commits go on. Then it copies the small rest while no commit runs, because the log
//! restarts from its beginning only if all of it is copied.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use rusqlite::Connection;
use tokio::sync::{Mutex, Notify};
use tokio::task::spawn_blocking;

use super::generation::{WalIndex, WalState};
use super::open_files::opened;
use crate::error::StoreError;
use crate::sqlite::BUSY_TIMEOUT;

/// Number of uncopied log pages that starts a checkpoint. Waiting for many pages saves work: a page
/// that many commits change is copied only once. About as many pages arrive during the copying.
/// Both numbers together stay well below the number at which a commit would checkpoint by itself.
const MANY: u32 = 16_000;
/// Maximum number of pages to copy while commits wait.
const FEW: u32 = 300;
/// Maximum rounds of concurrent copying. The bound matters if commits write as fast as the task
/// copies.
const ROUNDS: u32 = 4;

/// Background checkpoint task and its wake-up signal.
pub(super) struct Checkpoints {
    file: PathBuf,
    /// The database file, opened again to flush it.
    database: Arc<File>,
    header: WalIndex,
    due: Arc<Notify>,
    /// `None` before the start and after the end.
    connection: Mutex<Option<Connection>>,
}

/// Connection of the writer, which is locked to copy the rest.
type WriterConnection = Mutex<Option<Connection>>;

impl Checkpoints {
    /// Creates the task's state for this database and its WAL index. Returns `None` if the file
    /// does not exist.
    pub(super) fn new(file: &Path, header: WalIndex) -> Result<Option<Arc<Checkpoints>>, StoreError> {
        let Some(database) = opened(file).map_err(StoreError::database)? else { return Ok(None) };
        let file = file.to_owned();
        let (due, connection) = (Arc::default(), Mutex::default());
        Ok(Some(Arc::new(Checkpoints { file, database, header, due, connection })))
    }

    /// Starts the task. It ends with the writer.
    pub(super) async fn start(self: &Arc<Self>, writer: Weak<WriterConnection>) -> Result<(), StoreError> {
        let file = self.file.clone();
        let opened = spawn_blocking(move || open(&file)).await.map_err(StoreError::database)?;
        *self.connection.lock().await = Some(opened.map_err(StoreError::database)?);
        let (this, due) = (Arc::downgrade(self), Arc::clone(&self.due));
        tokio::spawn(async move {
            loop {
                due.notified().await;
                let (Some(this), Some(writer)) = (this.upgrade(), writer.upgrade()) else { return };
                if this.left() < MANY {
                    continue;
                }
                if let Err(problem) = this.copy(&writer).await {
                    tracing::warn!(%problem, "database checkpoint failed; a later commit retries it");
                }
            }
        });
        Ok(())
    }

    /// Stops copying after the checkpoint in progress.
    pub(super) async fn stop(&self) {
        let connection = self.connection.lock().await.take();
        let _ = spawn_blocking(move || drop(connection)).await;
    }

    /// Wakes the task after a commit if there are many pages to copy.
    pub(super) fn committed(&self) {
        if self.left() >= MANY {
            self.due.notify_one();
        }
    }

    /// Returns the number of pages that are only in the log.
    fn left(&self) -> u32 {
        self.header.log().map_or(0, WalState::left)
    }

    /// Copies and flushes while commits go on until little is left, then copies the rest while no
    /// commit runs. SQLite itself flushes the database only in that last step.
    async fn copy(self: &Arc<Self>, writer: &WriterConnection) -> Result<(), StoreError> {
        for _ in 0..ROUNDS {
            if !self.on_a_thread(Self::checkpoint).await? {
                return Ok(());
            }
            self.on_a_thread(|this| this.database.sync_data().map_err(StoreError::database)).await?;
            if self.left() <= FEW {
                break;
            }
        }
        let _turn = writer.lock().await;
        self.on_a_thread(Self::checkpoint).await.map(drop)
    }

    /// Copies as many pages as it can, and returns whether the whole log is copied. It neither
    /// overwrites pages that a reader still needs nor waits for readers.
    fn checkpoint(&self) -> Result<bool, StoreError> {
        let connection = self.connection.blocking_lock();
        let Some(connection) = connection.as_ref() else { return Ok(false) };
        let copied = |row: &rusqlite::Row<'_>| Ok(row.get::<_, i64>(1)? == row.get::<_, i64>(2)?);
        connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], copied).map_err(StoreError::database)
    }

    async fn on_a_thread<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let this = Arc::clone(self);
        spawn_blocking(move || work(&this)).await.map_err(StoreError::database)?
    }
}

impl Drop for Checkpoints {
    /// Wakes the task, which then ends.
    fn drop(&mut self) {
        self.due.notify_one();
    }
}

fn open(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // This connection reads only the log, so it needs little cache.
    connection.pragma_update(None, "cache_size", -64)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_whole_log_is_copied_unless_a_reader_needs_old_pages() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("test.db");
        let connection = Connection::open(&file).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        connection.execute_batch("CREATE TABLE t (a BLOB); INSERT INTO t VALUES (1)").unwrap();
        let reader = Connection::open(&file).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        connection.execute_batch("INSERT INTO t VALUES (zeroblob(4096 * 500))").unwrap();
        let header = WalIndex::open(&file).unwrap().unwrap();
        let checkpoints = Checkpoints::new(&file, header).unwrap().unwrap();
        *checkpoints.connection.lock().await = Some(open(&file).unwrap());
        let writer = Mutex::new(Some(connection));
        checkpoints.copy(&writer).await.unwrap();
        assert!(checkpoints.left() > 500, "a reader's snapshot was replaced");
        reader.execute_batch("COMMIT").unwrap();
        checkpoints.copy(&writer).await.unwrap();
        assert_eq!(checkpoints.left(), 0);
        checkpoints.stop().await;
    }
}
