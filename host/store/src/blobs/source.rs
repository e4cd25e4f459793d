//! Sources of a handle's bytes: memory, a file or an object.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use super::budget::StagingReservation;
use super::fs::BlobFile;
use super::objects::Objects;
use super::orphans::Orphans;
use super::storage::{Storage, StoragePlace, blocking};
use crate::error::StoreError;

/// Bytes that stay readable while this value lives. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Source {
    Bytes(Bytes),
    File(Arc<BlobFile>),
    Object(Arc<BlobObject>),
}

impl Source {
    /// Opens the bytes with this key. `Corrupt` if they are missing or have another length.
    pub(crate) async fn open(storage: &Storage, key: &str, size: u64) -> Result<Source, StoreError> {
        match &storage.place {
            StoragePlace::Folder(folder) => {
                let (folder, owned_key) = (Arc::clone(folder), key.to_owned());
                let file = blocking(move || folder.open_blob(&owned_key)).await?;
                file.map(|file| Source::File(Arc::new(file))).ok_or_else(|| missing(key))
            }
            StoragePlace::Bucket(bucket) => {
                Ok(Source::Object(Arc::new(BlobObject::stored(bucket.clone(), key.to_owned(), size))))
            }
        }
    }

    /// Reads a range, with fewer bytes at the end of the source.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        match self {
            Source::Bytes(bytes) => Ok(part(bytes, range)),
            Source::File(file) => {
                let file = Arc::clone(file);
                let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
                blocking(move || file.read_at(range.start, length)).await
            }
            Source::Object(object) => object.read(range).await,
        }
    }

    /// Sets or ends the reservation of staged bytes. Bytes in memory are not counted.
    pub(crate) fn hold(&self, reservation: Option<StagingReservation>) {
        match self {
            Source::Bytes(_) => (),
            Source::File(file) => file.hold(reservation),
            Source::Object(object) => {
                *object.reservation.lock().unwrap_or_else(PoisonError::into_inner) = reservation;
            }
        }
    }

    /// Returns the actual number of bytes; `None` if they are missing.
    pub(crate) async fn length(&self) -> Result<Option<u64>, StoreError> {
        match self {
            Source::Bytes(bytes) => Ok(Some(bytes.len() as u64)),
            Source::File(file) => {
                let file = Arc::clone(file);
                blocking(move || file.length()).await.map(Some)
            }
            Source::Object(object) => object.bucket.length(&object.key).await.map_err(StoreError::storage),
        }
    }
}

/// Returns the part of the bytes in this range.
pub(crate) fn part(bytes: &Bytes, range: Range<u64>) -> Bytes {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let (start, end) = (at(range.start), at(range.end));
    bytes.slice(start..end.max(start))
}

pub(crate) struct BlobObject {
    pub(crate) bucket: Objects,
    pub(crate) key: String,
    pub(crate) size: u64,
    /// True while no row names the object. Dropping the handle then removes the object.
    owned: AtomicBool,
    /// Orphan table, used to remove the object; `None` for a stored object.
    orphans: Option<Orphans>,
    /// Reservation while the bytes are staged.
    reservation: Mutex<Option<StagingReservation>>,
}

impl BlobObject {
    /// Creates the handle to an object that a row names.
    pub(crate) fn stored(bucket: Objects, key: String, size: u64) -> BlobObject {
        BlobObject {
            bucket,
            key,
            size,
            owned: AtomicBool::new(false),
            orphans: None,
            reservation: Mutex::default(),
        }
    }

    /// Creates the handle to a new object, which is removed on drop unless it is settled.
    pub(crate) fn staged(orphans: &Orphans, bucket: Objects, key: String, size: u64) -> BlobObject {
        let (owned, orphans) = (AtomicBool::new(true), Some(orphans.clone()));
        BlobObject { bucket, key, size, owned, orphans, reservation: Mutex::default() }
    }

    /// Sets whether dropping the handle removes the object. Pass false before a row may name the
    /// object, and true again if no row does.
    pub(crate) fn own(&self, owned: bool) {
        self.owned.store(owned, Ordering::Release);
    }

    async fn read(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let range = range.start..range.end.min(self.size);
        if range.is_empty() {
            return Ok(Bytes::new());
        }
        let mut stream = self.get(range).await?;
        let mut read = BytesMut::new();
        while let Some(bytes) = stream.try_next().await? {
            read.extend_from_slice(&bytes);
        }
        Ok(read.freeze())
    }

    /// Streams a range that is not empty. `Corrupt` if the object is missing.
    pub(crate) async fn get(
        &self,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, StoreError>>, StoreError> {
        match self.bucket.get(&self.key, range).await {
            Ok(bytes) => Ok(bytes.map_err(StoreError::storage).boxed()),
            Err(object_store::Error::NotFound { .. }) => Err(missing(&self.key)),
            Err(error) => Err(StoreError::storage(error)),
        }
    }
}

impl Drop for BlobObject {
    fn drop(&mut self) {
        if self.owned.load(Ordering::Acquire)
            && let Some(orphans) = &self.orphans
        {
            orphans.remove_later(std::mem::take(&mut self.key));
        }
    }
}

/// Returns the error for missing bytes.
fn missing(key: &str) -> StoreError {
    StoreError::Corrupt(format!("blob {key} is missing"))
}
