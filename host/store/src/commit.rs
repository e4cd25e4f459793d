//! Commits: makes their blobs durable and hands them to the writer.

use std::sync::Arc;

use crate::blobs::Blob;
use crate::blobs::row::BlobRow;
use crate::boxed;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::{Commit, Outcome};
use crate::store::Store;
use crate::writer::{Done, checked};

/// Maximum number of times that a commit examines stored bytes, because other servers may replace
/// them meanwhile.
const EXAMINATIONS: u32 = 8;

impl Store {
    /// Applies a commit atomically and durably. `Invalid` if it exceeds the limits or the
    /// repository does not exist. `QuotaExceeded` if it publishes and would exceed a quota.
    /// `Unavailable` if its result is unknown.
    #[boxed]
    pub async fn commit(&self, repository: RepositoryId, commit: Commit) -> Result<Outcome, StoreError> {
        let mut commit = checked(commit)?;
        let keeps = std::mem::take(&mut commit.keeps);
        let done = self.write(repository, Some(commit), &keeps).await?;
        if let Some(Outcome::Applied(revision)) = done.outcome {
            self.inner.acknowledged.raise(repository, revision);
        }
        if let Some(quota) = done.refused {
            return Err(StoreError::QuotaExceeded { quota });
        }
        done.outcome
            .ok_or_else(|| StoreError::Corrupt("the writer returned no outcome for a commit".to_owned()))
    }

    /// Makes blobs durable and holds them in this repository for the grace period. Bytes of a blob
    /// that another repository holds are not copied. `Invalid` if the repository does not exist, or
    /// if a blob is gone.
    #[boxed]
    pub async fn keep(&self, repository: RepositoryId, blobs: &[Blob]) -> Result<(), StoreError> {
        if blobs.is_empty() {
            return Ok(());
        }
        self.write(repository, None, blobs).await.map(drop)
    }

    /// Hands a commit and its blobs to the writer. If the same bytes are stored already, first
    /// examines them, and replaces missing or damaged ones by the new bytes. So acknowledged
    /// content is always readable.
    async fn write(
        &self,
        repository: RepositoryId,
        commit: Option<Commit>,
        blobs: &[Blob],
    ) -> Result<Done, StoreError> {
        let commit = commit.map(Arc::new);
        let mut rows = self.settle(blobs).await?;
        for _ in 0..EXAMINATIONS {
            let done = self.inner.writer.submit(repository, commit.clone(), rows).await?;
            if !done.unexamined {
                for (blob, row) in blobs.iter().zip(&done.rows) {
                    blob.settled(self, *row);
                }
                return Ok(done);
            }
            rows = self.settle(blobs).await?;
            self.examine_stored(&mut rows).await?;
        }
        Err(StoreError::storage("other servers keep replacing the same bytes"))
    }

    async fn settle(&self, blobs: &[Blob]) -> Result<Vec<BlobRow>, StoreError> {
        let mut rows = Vec::with_capacity(blobs.len());
        for blob in blobs {
            rows.push(blob.settle(self).await?);
        }
        Ok(rows)
    }
}
