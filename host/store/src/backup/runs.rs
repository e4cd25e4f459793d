//! What became of the backups that were taken, for the portal and the metrics: the place of backups itself says what can be restored.

use crate::backup::BlobHold;
use crate::boxed;
use crate::db::{Row, signed, values};
use crate::error::StoreError;
use crate::store::Store;

/// So many are remembered.
const REMEMBERED: i64 = 100;
/// Characters of what went wrong.
const SENTENCE: usize = 1000;

/// A backup that was begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupRun {
    /// Its name at its place.
    pub id: String,
    /// Where it went, without credentials.
    pub place: String,
    /// In ms since 1970.
    pub began_at: i64,
    /// In ms since 1970; none while it is being taken, and of one that was killed.
    pub ended_at: Option<i64>,
    /// What is in it; none unless it is whole.
    pub size: Option<BackupSize>,
    /// Why there is none.
    pub error: Option<String>,
    /// Whether it is being taken.
    pub under_way: bool,
}

/// How much a backup holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupSize {
    /// Rows of all tables.
    pub rows: u64,
    /// Blobs that they name.
    pub blobs: u64,
    /// Bytes of those.
    pub blob_bytes: u64,
    /// Bytes of these that were not at the place before.
    pub copied_bytes: u64,
}

impl Store {
    /// Notes that a backup is begun, which `hold` keeps blobs for. `Unavailable` when the database does not answer.
    #[boxed]
    pub async fn backup_begins(&self, hold: &BlobHold, id: &str, place: &str) -> Result<(), StoreError> {
        let begins = "INSERT INTO backups (id, place, hold, began_at) VALUES ($1, $2, $3, $4)";
        self.inner.db.execute(begins, values![id, place, hold.name(), self.now_ms()]).await?;
        let old = "DELETE FROM backups WHERE began_at < (SELECT began_at FROM backups ORDER BY began_at DESC LIMIT 1 OFFSET $1)";
        self.inner.db.execute(old, values![REMEMBERED - 1]).await.map(drop)
    }

    /// Notes how it ended: what is in it, or why there is none. `Unavailable` when the database does not answer.
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

    /// The backups that were begun last, the newest first, at most a hundred. `Unavailable` when the database does not answer.
    #[boxed]
    pub async fn backup_runs(&self) -> Result<Vec<BackupRun>, StoreError> {
        let runs = "SELECT b.id, b.place, b.began_at, b.ended_at, b.row_count, b.blobs, b.blob_bytes, b.copied_bytes, b.error, \
                    (SELECT CAST(m.value AS BIGINT) FROM meta m WHERE m.name = b.hold) AS held_until FROM backups b \
                    ORDER BY b.began_at DESC, b.id DESC LIMIT $1";
        let now = self.now_ms();
        let rows = self.inner.db.fetch(runs, values![REMEMBERED]).await?;
        rows.iter().map(|row| run(row, now)).collect()
    }

    /// When the newest whole backup was begun, which is the moment that it restores, in ms since 1970; none when there is none.
    /// `Unavailable` when the database does not answer.
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
