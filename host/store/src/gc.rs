//! Collection of garbage.

use crate::error::StoreError;
use crate::store::Store;

/// What a collection removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Blobs that no record named and no lease held.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Uploads that had expired.
    pub uploads: u64,
    /// Stored objects and files that nothing knew of: leftovers of crashes.
    pub leftovers: u64,
}

impl Store {
    /// Removes blobs that nothing holds, uploads that expired, and leftovers. `Unavailable` when database or storage failed; what
    /// was begun then goes on at the next call.
    pub async fn collect_garbage(&self) -> Result<Collected, StoreError> {
        unimplemented!()
    }
}
