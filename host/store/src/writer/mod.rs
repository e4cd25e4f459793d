//! Commits: handed to one task, which makes many of them durable at once.

use crate::blobs::Blob;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::{Commit, Outcome};
use crate::store::Store;

impl Store {
    /// Applies a commit, all of it or nothing, durably. `Invalid` when it is beyond the limits.
    pub async fn commit(&self, repository: RepositoryId, commit: Commit) -> Result<Outcome, StoreError> {
        let _ = (repository, commit);
        unimplemented!()
    }

    /// Makes blobs durable and holds them in this repository for the time of grace. From a blob that another repository holds
    /// nothing is copied.
    pub async fn keep(&self, repository: RepositoryId, blobs: &[Blob]) -> Result<(), StoreError> {
        let _ = (repository, blobs);
        unimplemented!()
    }
}
