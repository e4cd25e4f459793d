//! Uploads over several requests. An upload is begun, extended by one request after the other
//! through any server, and finished as a blob.
//!
//! The row stores the number of durable bytes and the state of the hashes there, so finishing reads
//! and copies nothing. In a folder the bytes are one file. In a bucket they are the parts of a
//! multipart upload; the row holds the rest that is too short for a part.

mod append;
mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use append::{Append, UploadAppender};

use crate::blobs::Blob;
use crate::blobs::budget::StagingReservation;
use crate::blobs::sink::Sink;
use crate::blobs::source::Source;
use crate::blobs::stage::{Lane, blob_of};
use crate::blobs::storage::{StoragePlace, blocking};
use crate::boxed;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Maximum length of a note in bytes.
const MAX_NOTE_BYTES: usize = 4096;

/// An upload, as it was when it was looked up.
#[derive(Clone)]
pub struct Upload {
    store: Store,
    repository: RepositoryId,
    name: String,
    note: String,
    length: u64,
}

impl Upload {
    /// Note that was given at the start.
    #[must_use]
    pub fn note(&self) -> &str {
        &self.note
    }

    /// Number of durable bytes at the look-up.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Starts to append bytes at `offset` (`None` for the end). The upload may grow to `limit`
    /// bytes. `Unavailable` if the database or the storage failed.
    #[boxed]
    pub async fn append(&self, offset: Option<u64>, limit: u64) -> Result<Append, StoreError> {
        append::begin(self, offset, limit).await
    }

    /// Converts the upload to a blob that is not stored yet, and removes the upload. Returns `None`
    /// if it is gone, if its length has changed since the look-up, or if a request is appending to
    /// it.
    #[boxed]
    pub async fn finish(self) -> Result<Option<Blob>, StoreError> {
        let claim = rows::new_claim();
        if !rows::claim(&self.store, &self.name, claim, Some(self.length)).await? {
            return Ok(None);
        }
        let Some(Lane { sink, sums, .. }) = append::open(&self.store, &self.name, claim).await? else {
            return Ok(None);
        };
        if !rows::delete_claimed(&self.store, &self.name, claim).await? {
            return Ok(None);
        }
        let budget = &self.store.inner.budget;
        budget.upload_ended(self.repository, self.length);
        let mut reservation = StagingReservation::new(budget, Some(self.repository));
        // The bytes exist already, so exceeding the limit here is not an error; the next upload is
        // refused instead.
        let held = reservation.grow(self.length).is_ok();
        let source = match sink {
            Sink::File(file) => {
                let StoragePlace::Folder(folder) = &self.store.inner.storage.place else { return Ok(None) };
                let (folder, length) = (Arc::clone(folder), self.length);
                let small = length <= self.store.inner.config.inline_max;
                blocking(move || {
                    folder.claim_upload(&file)?;
                    let length = usize::try_from(length).unwrap_or(usize::MAX);
                    Ok(if small {
                        Source::Bytes(file.read_at(0, length)?)
                    } else {
                        Source::File(Arc::new(file))
                    })
                })
                .await?
            }
            Sink::Object(object) => Sink::Object(object.own()).finish().await?,
        };
        source.hold(Some(reservation).filter(|_| held));
        Ok(Some(blob_of(source, sums, BTreeMap::new())))
    }

    /// Removes the upload and its bytes. A missing upload is not an error. A request that is
    /// appending to the upload fails.
    #[boxed]
    pub async fn abort(self) -> Result<(), StoreError> {
        if let Some(place) = rows::delete(&self.store, &self.name, None).await? {
            self.store.inner.budget.upload_ended(self.repository, self.length);
            self.store.drop_upload_bytes(&self.name, place).await?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Upload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upload")
            .field("name", &self.name)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Begins an upload in this repository. Returns its name, 32 characters of lower-case hex.
    /// `Invalid` if `note` is longer than 4 KiB.
    #[boxed]
    pub async fn begin_upload(&self, repository: RepositoryId, note: &str) -> Result<String, StoreError> {
        if note.len() > MAX_NOTE_BYTES {
            return Err(StoreError::Invalid(format!(
                "the note of an upload may have at most {MAX_NOTE_BYTES} bytes"
            )));
        }
        rows::insert(self, repository, note).await
    }

    /// The upload of this name in this repository.
    #[boxed]
    pub async fn upload(&self, repository: RepositoryId, name: &str) -> Result<Option<Upload>, StoreError> {
        let Some((note, length)) = rows::find(self, repository, name).await? else { return Ok(None) };
        Ok(Some(Upload { store: self.clone(), repository, name: name.to_owned(), note, length }))
    }

    /// Removes all uploads of a repository, even if requests are appending to them.
    pub(crate) async fn drop_uploads_of(&self, repository: RepositoryId) -> Result<(), StoreError> {
        for name in rows::of(self, repository).await? {
            if let Some(upload) = self.upload(repository, &name).await? {
                upload.abort().await?;
            }
        }
        Ok(())
    }

    /// Removes expired uploads; returns how many.
    pub(crate) async fn expire_uploads(&self) -> Result<u64, StoreError> {
        let ttl = i64::try_from(self.inner.config.upload_ttl.as_millis()).unwrap_or(i64::MAX);
        let mut expired = 0;
        for (name, updated_at) in rows::idle_since(self, ttl).await? {
            // A request may be appending although the row looks idle: the clock may be wrong, or
            // the client slow.
            if self.is_appended_to(&name).await? {
                continue;
            }
            if let Some(place) = rows::delete(self, &name, Some(updated_at)).await? {
                self.drop_upload_bytes(&name, place).await?;
                expired += 1;
            }
        }
        Ok(expired)
    }

    /// True if a lock on the file shows that a request is appending. Only folders have such locks.
    async fn is_appended_to(&self, name: &str) -> Result<bool, StoreError> {
        let StoragePlace::Folder(folder) = &self.inner.storage.place else { return Ok(false) };
        let (folder, name) = (Arc::clone(folder), name.to_owned());
        blocking(move || folder.is_appended_to(&name)).await
    }

    /// Removes the bytes of an upload whose row is gone.
    async fn drop_upload_bytes(&self, name: &str, place: Option<String>) -> Result<(), StoreError> {
        match (&self.inner.storage.place, place) {
            (StoragePlace::Folder(folder), _) => {
                let (folder, name) = (Arc::clone(folder), name.to_owned());
                blocking(move || folder.remove_upload(&name)).await
            }
            (StoragePlace::Bucket(_), Some(key)) => {
                self.inner.orphans.remove_later(key);
                Ok(())
            }
            (StoragePlace::Bucket(_), None) => Ok(()),
        }
    }

    /// True if an upload has this name.
    pub(crate) async fn is_upload(&self, name: &str) -> Result<bool, StoreError> {
        rows::exists(self, name).await
    }
}
