//! History of backup runs for the portal and the metrics. The backup location itself lists the
//! backups that can be restored.

use crate::backup::BlobHold;
use crate::boxed;
use crate::db::{Row, signed, values};
use crate::error::StoreError;
use crate::store::Store;

/// Number of runs that are retained.
const REMEMBERED: i64 = 100;
/// Maximum number of characters of an error.
const SENTENCE: usize = 1000;

/// A backup that was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupRun {
    /// Name of the backup at its location.
    pub id: String,
    /// Location of the backup, without credentials.
    pub place: String,
    /// Start time, in ms since 1970.
    pub began_at: i64,
    /// End time, in ms since 1970; `None` while it is running or if it was killed.
    pub ended_at: Option<i64>,
    /// Size of the backup; `None` unless it is complete.
    pub size: Option<BackupSize>,
    /// Reason why the backup failed.
    pub error: Option<String>,
    /// True while the backup is running.
    pub under_way: bool,
}

/// Amount of data in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupSize {
    /// Number of rows of all tables.
    pub rows: u64,
    /// Number of blobs that the rows name.
    pub blobs: u64,
    /// Total bytes of these blobs.
    pub blob_bytes: u64,
    /// Bytes of blobs that were not at the location before.
    pub copied_bytes: u64,
}

impl Store {
    /// Records the start of a backup, for which `hold` protects blobs. `Unavailable` if the
    /// database does not answer.
    #[boxed]
    pub async fn backup_begins(&self, hold: &BlobHold, id: &str, place: &str) -> Result<(), StoreError> {
        let begins = "INSERT INTO backups (id, place, hold, began_at) VALUES ($1, $2, $3, $4)";
        self.inner.db.execute(begins, values![id, place, hold.name(), self.now_ms()]).await?;
        let old = "DELETE FROM backups WHERE began_at < (SELECT began_at FROM backups ORDER BY began_at DESC LIMIT 1 OFFSET $1)";
        self.inner.db.execute(old, values![REMEMBERED - 1]).await.map(drop)
    }

    /// Records the end of a backup: its size, or the reason of the failure. `Unavailable` if the
    /// database does not answer.
    #[boxed]
    pub async fn backup_ends(&self, id: &str, outcome: Result<BackupSize, String>) -> Result<(), StoreError> {
        let (size, error) = match outcome {
            Ok(size) => (Some(size), None),
            Err(error) => (None, Some(error.chars().take(SENTENCE).collect::<String>())),
        };
        let number = |of: fn(BackupSize) -> u64| size.map(|size| signed(of(size)));
        let ends = "UPDATE backups SET ended_at = $2, row_count = $3, blobs = $4, blob_bytes = $5, copied_bytes = $6, error = $7 \
                    WHERE id = $1";
        let (rows, blobs) = (number(|size| size.rows), number(|size| size.blobs));
        let (bytes, copied) = (number(|size| size.blob_bytes), number(|size| size.copied_bytes));
        let values = values![id, self.now_ms(), rows, blobs, bytes, copied, error];
        self.inner.db.execute(ends, values).await.map(drop)
    }

    /// The most recent backup runs, the newest first, at most a hundred. `Unavailable` if the
    /// database does not answer.
    #[boxed]
    pub async fn backup_runs(&self) -> Result<Vec<BackupRun>, StoreError> {
        let runs = "SELECT b.id, b.place, b.began_at, b.ended_at, b.row_count, b.blobs, b.blob_bytes, b.copied_bytes, b.error, \
                    (SELECT CAST(m.value AS BIGINT) FROM meta m WHERE m.name = b.hold) AS held_until FROM backups b \
                    ORDER BY b.began_at DESC, b.id DESC LIMIT $1";
        let now = self.now_ms();
        let rows = self.inner.db.fetch(runs, values![REMEMBERED]).await?;
        rows.iter().map(|row| run(row, now)).collect()
    }

    /// Start time of the newest complete backup, in ms since 1970. This is the moment that it
    /// restores. `Unavailable` if the database does not answer.
    #[boxed]
    pub async fn last_backup(&self) -> Result<Option<i64>, StoreError> {
        let last = "SELECT began_at FROM backups WHERE blobs IS NOT NULL ORDER BY began_at DESC LIMIT 1";
        let row = self.inner.db.fetch_one(last, values![]).await?;
        row.map(|row| row.columns().int("began_at")).transpose()
    }
}

fn run(row: &Row, now: i64) -> Result<BackupRun, StoreError> {
    let mut columns = row.columns();
    let (id, place) = (columns.text("id")?, columns.text("place")?);
    let (began_at, ended_at) = (columns.int("began_at")?, columns.opt_int("ended_at")?);
    let mut number = |name: &str| Ok(columns.opt_int(name)?.and_then(|number| u64::try_from(number).ok()));
    let counts = [number("row_count")?, number("blobs")?, number("blob_bytes")?, number("copied_bytes")?];
    let size = match counts {
        [Some(rows), Some(blobs), Some(blob_bytes), Some(copied_bytes)] => {
            Some(BackupSize { rows, blobs, blob_bytes, copied_bytes })
        }
        _ => None,
    };
    let error = columns.opt_text("error")?;
    let held = columns.opt_int("held_until")?.is_some_and(|until| until > now);
    let under_way = held && ended_at.is_none();
    Ok(BackupRun { id, place, began_at, ended_at, size, error, under_way })
}
