//! A blob as the database knows it.

use bytes::Bytes;

use crate::digest::{Digest, Sha256};

/// A row of the table `blobs`: what a settled blob hands to the writer, and what is read back.
#[derive(Clone, Debug)]
pub(crate) struct BlobRow {
    /// From [`crate::ids::new_id`].
    pub(crate) id: i64,
    /// Unique among blobs.
    pub(crate) sha256: Sha256,
    /// How many bytes.
    pub(crate) size: u64,
    /// xxh3 of the bytes: cheap to check at each whole reading.
    pub(crate) check: i64,
    /// Where the bytes are.
    pub(crate) place: Place,
    /// The bytes are newly durable at this place: insert it unless there is a row of the same SHA-256. Otherwise it was read from the
    /// database and must still be there; inserting it would name bytes that are gone.
    pub(crate) fresh: bool,
    /// Digests besides SHA-256 that are known.
    pub(crate) digests: Vec<Digest>,
}

/// Where a blob's bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In the row itself.
    Inline(Bytes),
    /// In the storage of blobs, under this key.
    Stored(String),
}
