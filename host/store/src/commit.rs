//! Committing: what a commit names is made durable, and handed to the writer.

use crate::blobs::Blob;
use crate::blobs::row::BlobRow;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::{Commit, Outcome};
use crate::store::Store;
use crate::writer::{Done, checked};

impl Store {
    /// Applies a commit, all of it or nothing, durably. `Invalid` when it is beyond the limits or the repository is not there,
    /// `QuotaExceeded` when it publishes and would pass a quota, `Unavailable` when it is not known whether it is applied.
    pub async fn commit(&self, repository: RepositoryId, commit: Commit) -> Result<Outcome, StoreError> {
        let mut commit = checked(commit)?;
        let keeps = std::mem::take(&mut commit.keeps);
        let rows = self.settle(&keeps).await?;
        let done = self.inner.writer.submit(repository, Some(commit), rows).await?;
        settled(self, &keeps, &done);
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
    pub async fn keep(&self, repository: RepositoryId, blobs: &[Blob]) -> Result<(), StoreError> {
        if blobs.is_empty() {
            return Ok(());
        }
        let rows = self.settle(blobs).await?;
        let done = self.inner.writer.submit(repository, None, rows).await?;
        settled(self, blobs, &done);
        Ok(())
    }

    async fn settle(&self, blobs: &[Blob]) -> Result<Vec<BlobRow>, StoreError> {
        let mut rows = Vec::with_capacity(blobs.len());
        for blob in blobs {
            rows.push(blob.settle(self).await?);
        }
        Ok(rows)
    }
}

fn settled(store: &Store, blobs: &[Blob], done: &Done) {
    for (blob, row) in blobs.iter().zip(&done.rows) {
        blob.settled(store, *row);
    }
}
