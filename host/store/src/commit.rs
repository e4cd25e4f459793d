//! Committing: what a commit names is made durable, and handed to the writer.

use std::sync::Arc;

use crate::blobs::Blob;
use crate::blobs::row::BlobRow;
use crate::boxed;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::{Commit, Outcome};
use crate::store::Store;
use crate::writer::{Done, checked};

/// How often stored bytes are examined for one commit, where other servers replace them meanwhile.
const EXAMINATIONS: u32 = 8;

impl Store {
    /// Applies a commit, all of it or nothing, durably. `Invalid` when it is beyond the limits or the repository is not there,
    /// `QuotaExceeded` when it publishes and would pass a quota, `Unavailable` when it is not known whether it is applied.
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
        done.outcome.ok_or_else(|| StoreError::Corrupt("a commit without an outcome".to_owned()))
    }

    /// Makes blobs durable and holds them in this repository for the time of grace. From a blob that another repository holds
    /// nothing is copied. `Invalid` when the repository is not there, or a blob no longer is.
    #[boxed]
    pub async fn keep(&self, repository: RepositoryId, blobs: &[Blob]) -> Result<(), StoreError> {
        if blobs.is_empty() {
            return Ok(());
        }
        self.write(repository, None, blobs).await.map(drop)
    }

    /// Hands a commit to the writer with the blobs that it keeps. Where the same bytes are stored
    /// already, they are examined before, and replaced by those that came if they are missing or
    /// damaged: so what is acknowledged can be read.
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
                for (blob, kept) in blobs.iter().zip(&done.rows) {
                    blob.settled(self, *kept);
                }
                return Ok(done);
            }
            rows = self.settle(blobs).await?;
            self.examine_stored(&mut rows).await?;
        }
        Err(StoreError::storage("other servers replace the same bytes again and again"))
    }

    async fn settle(&self, blobs: &[Blob]) -> Result<Vec<BlobRow>, StoreError> {
        let mut rows = Vec::with_capacity(blobs.len());
        for blob in blobs {
            rows.push(blob.settle(self).await?);
        }
        Ok(rows)
    }
}
