//! Uploads that outlive a request.

use bytes::Bytes;

use crate::blobs::Blob;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// An upload as it stood when it was looked for.
#[derive(Clone, Debug)]
pub struct Upload {
    note: String,
    length: u64,
}

/// What became of the wish to add bytes to an upload.
pub enum Append {
    /// Go on.
    Ready(UploadAppender),
    /// The upload holds another number of bytes than the offset that was given: this many.
    Elsewhere(u64),
    /// Another request is adding bytes at this moment.
    Busy,
}

/// Takes the bytes of one request into an upload. Dropped without `finish`, they are forgotten.
pub struct UploadAppender {}

impl UploadAppender {
    /// Adds bytes. `TooLarge` past the limit.
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        let _ = bytes;
        unimplemented!()
    }

    /// Makes the bytes durable; the upload as it stands now. `Unavailable` when another request took the upload over meanwhile.
    pub async fn finish(self) -> Result<Upload, StoreError> {
        unimplemented!()
    }
}

impl Upload {
    /// What was said when it was begun.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.note
    }

    /// How many bytes it holds.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Begins to add bytes at `offset` (at the end if none), so that the upload holds `limit` bytes at most.
    pub async fn append(&self, offset: Option<u64>, limit: u64) -> Result<Append, StoreError> {
        let _ = (offset, limit);
        unimplemented!()
    }

    /// The bytes as a blob that is staged; the upload is gone. None when it is gone already or has changed.
    pub async fn finish(self) -> Result<Option<Blob>, StoreError> {
        unimplemented!()
    }

    /// The upload and its bytes are gone. That it was gone already is no fault.
    pub async fn abort(self) -> Result<(), StoreError> {
        unimplemented!()
    }
}

impl Store {
    /// Begins an upload in this repository; its name, 32 characters of lower-case hex. `note` is at most 4 KiB, else `Invalid`.
    pub async fn begin_upload(&self, repository: RepositoryId, note: &str) -> Result<String, StoreError> {
        let _ = (repository, note);
        unimplemented!()
    }

    /// The upload of this name that was begun in this repository.
    pub async fn upload(&self, repository: RepositoryId, name: &str) -> Result<Option<Upload>, StoreError> {
        let _ = (repository, name);
        unimplemented!()
    }
}
