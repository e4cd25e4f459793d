//! What a repository holds: blobs that its records name, and blobs leased to it.

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
    /// Its bytes.
    pub blob: Blob,
    /// Whether a record of the repository names it.
    pub named: bool,
}

impl HeldBlob {
    /// For a publish that relies on the bytes: none in the place of a blob whose bytes are missing
    /// or known to be damaged, so that the client sends them again. `Unavailable` when storage does
    /// not answer.
    #[boxed]
    pub async fn usable(found: Result<Option<HeldBlob>, StoreError>) -> Result<Option<HeldBlob>, StoreError> {
        match found {
            Ok(Some(held)) => Ok(held.blob.is_there().await?.then_some(held)),
            Err(StoreError::Corrupt(_)) => Ok(None),
            other => other,
        }
    }
}

/// A blob's row, until when it is leased, if it is, and whether a record names it.
struct Held {
    row: BlobRow,
    until: Option<i64>,
    named: bool,
}

impl Store {
    /// The blob with this SHA-256 if this repository holds it: a record of its own names it, or it is leased to it, which begins
    /// anew. `Corrupt` when its bytes are not there.
    #[boxed]
    pub async fn blob(&self, repository: RepositoryId, sha256: Sha256) -> Result<Option<Blob>, StoreError> {
        Ok(self.look_for(repository, sha256, false).await?.map(|held| held.blob))
    }

    /// The same for a publish that leaves the bytes out where they are here already: what only a
    /// record holds is leased too, so that it outlives the record's removal until the publish names
    /// it. Errors as [`blob`](Store::blob) has.
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
        let Some(Held { row, until, named }) = self.held_row(repository, sha256).await? else {
            return Ok(None);
        };
        // Written at most once in a quarter of its time: reads stay reads.
        let due = self.lease_end(self.now_ms()) - self.lease_ms() / 4;
        if until.map_or(for_publish, |until| until < due) && !self.lease(repository, row.id).await? {
            return Ok(None);
        }
        let key = row.key().to_owned();
        let error = match self.open_blob(row, repository).await {
            Ok(blob) => return Ok(Some(HeldBlob { blob, named })),
            Err(error) => error,
        };
        // It may have been removed just now, or replaced.
        match self.held_row(repository, sha256).await? {
            Some(Held { row, named, .. }) if row.key() != key => {
                let blob = self.open_blob(row, repository).await?;
                Ok(Some(HeldBlob { blob, named }))
            }
            Some(_) => Err(error),
            None => Ok(None),
        }
    }

    /// The same for a reader, whose answer may be kept: `named` says that a record names the blob, so that the repository holds it until
    /// a commit touches that record. Else it is held by a lease alone, which ends at some time.
    #[boxed]
    pub async fn held_blob(
        &self,
        repository: RepositoryId,
        sha256: Sha256,
    ) -> Result<Option<HeldBlob>, StoreError> {
        self.look_for(repository, sha256, false).await
    }

    /// The row, and how it is held.
    async fn held_row(&self, repository: RepositoryId, sha256: Sha256) -> Result<Option<Held>, StoreError> {
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
        Ok(Some(Held { row: self.read_row(&row).await?, until, named }))
    }

    /// Leases a blob, or does so for longer; false when it was collected just now.
    async fn lease(&self, repository: RepositoryId, blob: i64) -> Result<bool, StoreError> {
        let sql = "INSERT INTO leases (blob, repository, until) SELECT id, $2, $3 FROM blobs WHERE id = $1 \
                   ON CONFLICT (blob, repository) DO UPDATE SET until = excluded.until";
        loop {
            let values = values![blob, repository.0, self.lease_end(self.now_ms())];
            match self.execute_for(repository, sql, values).await {
                // PostgreSQL had seen the blob, and a collection was faster: look again.
                Err(error) if is_retryable(&error) => {}
                leased => return Ok(leased? == 1),
            }
        }
    }

    /// Until when a lease taken at `now` holds.
    pub(crate) fn lease_end(&self, now: i64) -> i64 {
        now.saturating_add(self.lease_ms())
    }

    fn lease_ms(&self) -> i64 {
        i64::try_from(self.inner.config.gc_lease.as_millis()).unwrap_or(i64::MAX / 4)
    }

    /// The time of grace in milliseconds.
    pub(crate) fn grace_ms(&self) -> i64 {
        i64::try_from(self.inner.config.gc_grace.as_millis()).unwrap_or(i64::MAX / 4)
    }
}
