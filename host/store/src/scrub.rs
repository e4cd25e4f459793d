//! Scrub: every stored blob read again and its SHA-256 compared.

use crate::digest::Sha256;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// What a scrub found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScrubReport {
    /// Blobs read.
    pub blobs: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Blobs that are not what was stored, or not there.
    pub damaged: Vec<Damaged>,
}

/// A blob that cannot be served any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The digest it should have.
    pub sha256: Sha256,
    /// Its bytes are not there at all.
    pub missing: bool,
    /// The records that name it.
    pub records: Vec<(RepositoryId, String)>,
}

impl Store {
    /// Reads every blob, at most `bytes_per_second`, and names those that are damaged or missing. `Unavailable` when database
    /// or storage failed.
    pub async fn scrub(&self, bytes_per_second: Option<u64>) -> Result<ScrubReport, StoreError> {
        let _ = bytes_per_second;
        unimplemented!()
    }
}
