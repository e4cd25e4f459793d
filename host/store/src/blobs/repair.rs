//! Repair: missing or damaged bytes are replaced when a client sends the same bytes again.
//!
//! Bytes are never changed in place. The new bytes are made durable under a new key. Then one
//! transaction points the row to that key. A server killed in between leaves the row with either
//! the old or the new bytes.

use std::time::{Duration, Instant};

use futures::StreamExt;

use super::handle::Blob;
use super::row::{BLOB_COLUMNS, BlobLocation, BlobRow, Condition, Examined, read_row};
use super::source::Source;
use crate::boxed;
use crate::db::{Database, Row, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Bytes up to which a stored blob is read again when a client sends the same bytes. A larger blob
/// counts as sound if its length is right and no read found damage. Reading it would take as long
/// as the client's upload, and replacing it unread would let repeated uploads fill the storage.
const READ_AGAIN: u64 = 64 << 20;
/// Time for which bytes found damaged are not read again to see whether they still are.
const STILL_DAMAGED: Duration = Duration::from_secs(30);
/// Maximum number of damaged blobs to remember.
const MOST_DAMAGED: usize = 10_000;

impl Store {
    /// Checks, for each new row, the stored bytes of an existing blob with the same SHA-256.
    /// `Unavailable` if their condition cannot be determined.
    pub(crate) async fn examine_stored(&self, rows: &mut [BlobRow]) -> Result<(), StoreError> {
        for row in rows.iter_mut().filter(|row| row.fresh) {
            let sent = (row.size, Some(row.check));
            row.examined = self.examine_row(&row.sha256.0, sent).await?;
            if row.examined.as_ref().is_some_and(|examined| examined.condition == Condition::Damaged) {
                metrics::counter!("packhouse_blobs_repaired_total").increment(1);
                tracing::warn!(sha256 = %row.sha256, "a new upload replaces missing or damaged bytes");
            }
        }
        Ok(())
    }

    /// Replaces missing or damaged stored bytes by the same bytes that a client sent to a
    /// repository. Discards sent bytes whose stored copy is sound or does not exist. `Unavailable`
    /// if the database or the storage failed.
    #[boxed]
    pub async fn repair(&self, repository: RepositoryId, sent: &[Blob]) -> Result<(), StoreError> {
        let mut damaged = Vec::new();
        for blob in sent {
            let sha256 = blob.sha256().await?;
            let examined = self.examine_row(&sha256.0, (blob.size(), None)).await?;
            if examined.is_some_and(|examined| examined.condition != Condition::Sound) {
                damaged.push(blob.clone());
            }
        }
        self.keep(repository, &damaged).await
    }

    /// Returns the row with this SHA-256, if it exists, and the condition of its bytes. The stored
    /// bytes are compared with the size and, if known, the check value of the sent bytes.
    async fn examine_row(
        &self,
        sha256: &[u8; 32],
        (size, check): (u64, Option<i64>),
    ) -> Result<Option<Examined>, StoreError> {
        let sql = format!("SELECT {BLOB_COLUMNS} FROM blobs b WHERE b.sha256 = $1");
        let Some(row) = self.inner.db.fetch_one(sql, values![sha256]).await? else { return Ok(None) };
        let mut columns = row.columns();
        let (id, place) = (columns.int("id")?, columns.opt_text("place")?);
        let condition = match read_row(&row) {
            Ok(row) if row.damaged || row.size != size => Condition::Damaged,
            Ok(row) if check.is_some_and(|check| check != row.check) => Condition::Damaged,
            Ok(row) => self.condition(row).await?,
            Err(StoreError::Corrupt(_)) => Condition::Damaged,
            Err(error) => return Err(error),
        };
        Ok(Some(Examined { id, place, condition }))
    }

    async fn condition(&self, row: BlobRow) -> Result<Condition, StoreError> {
        if row.size <= READ_AGAIN {
            return match self.read_through(row).await {
                Ok(()) => Ok(Condition::Sound),
                Err(StoreError::Corrupt(_)) => Ok(Condition::Damaged),
                Err(error) => Err(error),
            };
        }
        let size = row.size;
        match self.open_row(&row).await {
            Ok(source) if source.length().await? == Some(size) => Ok(Condition::Sound),
            Ok(_) | Err(StoreError::Corrupt(_)) => Ok(Condition::Damaged),
            Err(error) => Err(error),
        }
    }

    /// Opens the bytes of a row that `origin` holds. `Corrupt` if they are missing, or were found
    /// damaged and still are.
    pub(crate) async fn open_blob(&self, row: BlobRow, origin: RepositoryId) -> Result<Blob, StoreError> {
        if row.damaged {
            self.look_again(&row).await?;
        }
        let source = self.open_row(&row).await?;
        Ok(Blob::stored(&self.inner.db, source, row, Some(origin)))
    }

    /// Same as [`read_row`], and records damage of bytes in the row.
    pub(crate) async fn read_row(&self, row: &Row) -> Result<BlobRow, StoreError> {
        let read = read_row(row);
        if let Err(StoreError::Corrupt(_)) = &read {
            record_damage(&self.inner.db, row.columns().int("id")?, "").await;
        }
        read
    }

    async fn open_row(&self, row: &BlobRow) -> Result<Source, StoreError> {
        let key = match &row.place {
            BlobLocation::Inline(bytes) => return Ok(Source::Bytes(bytes.clone())),
            BlobLocation::Stored(key) => key,
        };
        let opened = Source::open(&self.inner.storage, key, row.size).await;
        if let Err(StoreError::Corrupt(_)) = &opened {
            record_damage(&self.inner.db, row.id, key).await;
        }
        opened
    }

    /// Reads all bytes of a row and compares them with its check value. `Corrupt` if they are
    /// missing or damaged, which is recorded.
    async fn read_through(&self, row: BlobRow) -> Result<(), StoreError> {
        let source = self.open_row(&row).await?;
        let is_file = matches!(source, Source::File(_));
        let blob = Blob::stored(&self.inner.db, source, row, None);
        let mut chunks = blob.stream(0..blob.size());
        while let Some(chunk) = chunks.next().await {
            match chunk {
                Ok(_) => {}
                // An existing file that cannot be read counts as damaged.
                Err(error) if is_file && error.is_unavailable() && !error.is_out_of_descriptors() => {
                    return Err(blob.0.corrupt("cannot be read").await);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Checks whether bytes found damaged still are, because an operator may have restored them.
    /// `Corrupt` if they still are.
    async fn look_again(&self, row: &BlobRow) -> Result<(), StoreError> {
        let known = self.damaged_lately().get(&row.id).copied();
        if known.is_some_and(|at| at.elapsed() < STILL_DAMAGED) {
            metrics::counter!("packhouse_blobs_corrupt_total").increment(1);
            return Err(StoreError::Corrupt(format!("blob {} ({})", row.id, row.sha256)));
        }
        match self.read_through(row.clone()).await {
            Err(StoreError::Corrupt(what)) => {
                let mut known = self.damaged_lately();
                if known.len() >= MOST_DAMAGED {
                    known.clear();
                }
                known.insert(row.id, Instant::now());
                Err(StoreError::Corrupt(what))
            }
            Ok(()) => {
                self.damaged_lately().remove(&row.id);
                self.forget_damage(row).await
            }
            other => other,
        }
    }

    /// Records that the bytes of a row are sound again.
    pub(crate) async fn forget_damage(&self, row: &BlobRow) -> Result<(), StoreError> {
        let sql = "UPDATE blobs SET damaged_at = NULL WHERE id = $1 AND COALESCE(place, '') = $2";
        self.inner.db.execute(sql, values![row.id, row.key()]).await.map(drop)
    }
}

impl BlobRow {
    /// Returns the storage key; empty if the bytes are in the row.
    pub(crate) fn key(&self) -> &str {
        match &self.place {
            BlobLocation::Inline(_) => "",
            BlobLocation::Stored(key) => key,
        }
    }
}

/// Records in a row that the bytes with this key (empty: those in the row) are missing or damaged.
/// Also counts and logs the damage. Ignores damage of bytes that were replaced meanwhile. A failure
/// of the database is only logged: the next read finds the damage again.
pub(crate) async fn record_damage(database: &Database, id: i64, key: &str) {
    let sql =
        "UPDATE blobs SET damaged_at = COALESCE(damaged_at, $2) WHERE id = $1 AND COALESCE(place, '') = $3";
    match database.execute(sql, values![id, database.now_ms(), key]).await {
        Ok(0) => tracing::debug!(blob = id, "a read used bytes that were replaced in the meantime"),
        Ok(_) => {
            metrics::counter!("packhouse_blobs_corrupt_total").increment(1);
            tracing::error!(blob = id, key, "the bytes of a stored blob are missing or damaged");
        }
        Err(error) => tracing::warn!(%error, blob = id, "could not record the damage of a blob"),
    }
}

impl Blob {
    /// Returns whether a read through any handle to this blob found its bytes missing or damaged.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.0.is_damaged()
    }

    /// Returns whether all bytes exist, and records it if some are missing. `Unavailable` if the
    /// storage does not answer.
    #[boxed]
    pub async fn is_there(&self) -> Result<bool, StoreError> {
        let length = self.0.source.length().await?;
        let there = length.is_some_and(|length| length >= self.0.start + self.0.size) && !self.is_damaged();
        if !there {
            self.0.record_damage().await;
        }
        Ok(there)
    }
}
