//! Blobs that a repository holds: its records reference them, or they are pinned for it.

use super::handle::Blob;
use super::row::{BLOB_COLUMNS, BlobRow};
use crate::boxed;
use crate::db::{is_retryable, values};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// A blob that a repository holds.
#[derive(Clone, Debug)]
pub struct HeldBlob {
    pub blob: Blob,
    /// True if a record of the repository references it.
    pub named: bool,
}

impl HeldBlob {
    /// Filters the blob for a publish that relies on its bytes. Returns `None` if they are missing
    /// or known to be damaged, so that the client sends them again. `Unavailable` if the storage
    /// does not answer.
    #[boxed]
    pub async fn usable(found: Result<Option<HeldBlob>, StoreError>) -> Result<Option<HeldBlob>, StoreError> {
        match found {
            Ok(Some(held)) => Ok(held.blob.is_there().await?.then_some(held)),
            Err(StoreError::Corrupt(_)) => Ok(None),
            other => other,
        }
    }
}

/// Row of a blob, the end of its pin, if any, and whether a record references it.
struct HeldRow {
    row: BlobRow,
    until: Option<i64>,
    named: bool,
}

impl Store {
    /// Returns the blob with this SHA-256 if this repository holds it: one of its records
    /// references it, or it is pinned. A pin is extended. `Corrupt` if its bytes are missing.
    #[boxed]
    pub async fn blob(&self, repository: RepositoryId, sha256: Sha256) -> Result<Option<Blob>, StoreError> {
        Ok(self.look_for(repository, sha256, false).await?.map(|held| held.blob))
    }

    /// Same as [`blob`](Store::blob), for a publish that leaves out bytes that the repository
    /// already holds. A blob held only by a record is pinned too, so that it outlives the record's
    /// removal until the publish references it.
    #[boxed]
    pub async fn blob_for_publish(
        &self,
        repository: RepositoryId,
        sha256: Sha256,
    ) -> Result<Option<Blob>, StoreError> {
        Ok(self.look_for(repository, sha256, true).await?.map(|held| held.blob))
    }

    async fn look_for(
        &self,
        repository: RepositoryId,
        sha256: Sha256,
        for_publish: bool,
    ) -> Result<Option<HeldBlob>, StoreError> {
        let Some(HeldRow { row, until, named }) = self.held_row(repository, sha256).await? else {
            return Ok(None);
        };
        // Extend a pin at most once in a quarter of its duration, so that most reads write nothing.
        let due = self.pin_end(self.now_ms()) - self.pin_ms() / 4;
        if until.map_or(for_publish, |until| until < due) && !self.pin(repository, row.id).await? {
            return Ok(None);
        }
        let key = row.key().to_owned();
        let error = match self.open_blob(row, repository).await {
            Ok(blob) => return Ok(Some(HeldBlob { blob, named })),
            Err(error) => error,
        };
        // The blob may have been removed or replaced meanwhile.
        match self.held_row(repository, sha256).await? {
            Some(HeldRow { row, named, .. }) if row.key() != key => {
                let blob = self.open_blob(row, repository).await?;
                Ok(Some(HeldBlob { blob, named }))
            }
            Some(_) => Err(error),
            None => Ok(None),
        }
    }

    /// Same as [`blob`](Store::blob) for a reader that may cache the answer. If `named` is true, a
    /// record references the blob, and the repository holds it until a commit changes that record.
    /// Otherwise it is held only by a pin, which expires.
    #[boxed]
    pub async fn held_blob(
        &self,
        repository: RepositoryId,
        sha256: Sha256,
    ) -> Result<Option<HeldBlob>, StoreError> {
        self.look_for(repository, sha256, false).await
    }

    /// Returns the row and how the repository holds it.
    async fn held_row(
        &self,
        repository: RepositoryId,
        sha256: Sha256,
    ) -> Result<Option<HeldRow>, StoreError> {
        let sql = format!(
            "SELECT {BLOB_COLUMNS}, l.until, CAST(CASE WHEN EXISTS \
             (SELECT 1 FROM record_blobs n WHERE n.blob = b.id AND n.repository = $1) THEN 1 ELSE 0 END AS BIGINT) AS named \
             FROM blobs b LEFT JOIN leases l ON l.blob = b.id AND l.repository = $1 \
             WHERE b.sha256 = $2 AND (l.until > $3 \
             OR EXISTS (SELECT 1 FROM record_blobs r WHERE r.blob = b.id AND r.repository = $1))"
        );
        let now = self.now_ms();
        let Some(row) = self.inner.db.find(sql, values![repository.0, &sha256.0, now]).await? else {
            return Ok(None);
        };
        let mut columns = row.columns();
        let (until, named) = (columns.opt_int("until")?, columns.bool("named")?);
        Ok(Some(HeldRow { row: self.read_row(&row).await?, until, named }))
    }

    /// Pins a blob or extends its pin. Returns false if the blob was collected meanwhile.
    async fn pin(&self, repository: RepositoryId, blob: i64) -> Result<bool, StoreError> {
        let sql = "INSERT INTO leases (blob, repository, until) SELECT id, $2, $3 FROM blobs WHERE id = $1 \
                   ON CONFLICT (blob, repository) DO UPDATE SET until = excluded.until";
        loop {
            let values = values![blob, repository.0, self.pin_end(self.now_ms())];
            match self.execute_for(repository, sql, values).await {
                // PostgreSQL still saw the blob, but a collection removed it before the pin was
                // written. Look again.
                Err(error) if is_retryable(&error) => {}
                pinned => return Ok(pinned? == 1),
            }
        }
    }

    /// Returns the end of a pin taken at `now`.
    pub(crate) fn pin_end(&self, now: i64) -> i64 {
        now.saturating_add(self.pin_ms())
    }

    fn pin_ms(&self) -> i64 {
        i64::try_from(self.inner.config.gc_lease.as_millis()).unwrap_or(i64::MAX / 4)
    }

    /// Returns the grace period in milliseconds.
    pub(crate) fn grace_ms(&self) -> i64 {
        i64::try_from(self.inner.config.gc_grace.as_millis()).unwrap_or(i64::MAX / 4)
    }
}
