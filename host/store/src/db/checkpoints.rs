//! Checkpoints: SQLite's log copied into the database, beside the commits.
//!
//! SQLite would do it within a commit that finds the log long, and every publish would wait for tens of milliseconds. A task with
//! a connection of its own copies and flushes most of it while commits go on, and then the little that came meanwhile while none
//! does: only so the log begins anew and does not grow.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use rusqlite::Connection;
use tokio::sync::{Mutex, Notify};
use tokio::task::spawn_blocking;

use super::generation::{Header, Log};
use super::open_files::opened;
use crate::error::StoreError;
use crate::sqlite::BUSY_TIMEOUT;

/// Pages in the log that are not in the database yet, from which on they are copied: a page that many commits change is then
/// copied once. About as many come in beside the copying, and all of it stays well below where a commit would copy them itself.
const MANY: u32 = 16_000;
/// So few are copied while commits wait.
const FEW: u32 = 300;
/// How often at most the task copies beside commits that write as fast as it copies.
const ROUNDS: u32 = 4;

/// The task that copies, and what wakes it.
pub(super) struct Checkpoints {
    file: PathBuf,
    /// The same, to flush it.
    database: Arc<File>,
    header: Header,
    due: Arc<Notify>,
    /// None before the start and after the end.
    connection: Mutex<Option<Connection>>,
}

/// The connection that writes, whose turn is taken for what is left.
type Writer = Mutex<Option<Connection>>;

impl Checkpoints {
    /// Of this database, whose WAL index this is; none when there is no such file.
    pub(super) fn new(file: &Path, header: Header) -> Result<Option<Arc<Checkpoints>>, StoreError> {
        let Some(database) = opened(file).map_err(StoreError::database)? else { return Ok(None) };
        let file = file.to_owned();
        let (due, connection) = (Arc::default(), Mutex::default());
        Ok(Some(Arc::new(Checkpoints { file, database, header, due, connection })))
    }

    /// Starts the task, which ends with the writer.
    pub(super) async fn start(self: &Arc<Self>, writer: Weak<Writer>) -> Result<(), StoreError> {
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
                    tracing::warn!(%problem, "the log of the database could not be copied into it; a commit does it");
                }
            }
        });
        Ok(())
    }

    /// Copies nothing any more, after what is being copied.
    pub(super) async fn stop(&self) {
        let connection = self.connection.lock().await.take();
        let _ = spawn_blocking(move || drop(connection)).await;
    }

    /// Something was committed: the task is woken when there is much to copy.
    pub(super) fn committed(&self) {
        if self.left() >= MANY {
            self.due.notify_one();
        }
    }

    /// Pages that are in the log alone.
    fn left(&self) -> u32 {
        self.header.log().map_or(0, Log::left)
    }

    /// Copies and flushes beside the commits until little is left, and the rest while there are none: SQLite flushes the database
    /// only then.
    async fn copy(self: &Arc<Self>, writer: &Writer) -> Result<(), StoreError> {
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

    /// Whether all that the log held is copied: what a reader may still need of the database is not replaced, nor waited for.
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
    /// Ends the task.
    fn drop(&mut self) {
        self.due.notify_one();
    }
}

fn open(file: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    // It reads nothing but the log.
    connection.pragma_update(None, "cache_size", -64)?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_of_the_log_is_copied_unless_a_reader_needs_what_was_before() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("test.db");
        let connection = Connection::open(&file).unwrap();
        connection.pragma_update(None, "journal_mode", "WAL").unwrap();
        connection.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
        connection.execute_batch("CREATE TABLE t (a BLOB); INSERT INTO t VALUES (1)").unwrap();
        let reader = Connection::open(&file).unwrap();
        reader.execute_batch("BEGIN; SELECT * FROM t").unwrap();
        connection.execute_batch("INSERT INTO t VALUES (zeroblob(4096 * 500))").unwrap();
        let header = Header::open(&file).unwrap().unwrap();
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
