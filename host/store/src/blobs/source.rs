//! Where a handle's bytes are read from, whatever they are.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};

use super::budget::Lease;
use super::fs::BlobFile;
use super::objects::Objects;
use super::orphans::Orphans;
use super::storage::{Storage, StoragePlace, blocking};
use crate::error::StoreError;

/// Bytes that stay readable while this lives. Cheap to clone.
#[derive(Clone)]
pub(crate) enum Source {
    Bytes(Bytes),
    File(Arc<BlobFile>),
    Object(Arc<BlobObject>),
}

impl Source {
    /// The bytes with this key. `Corrupt` when they are not there or not so many.
    pub(crate) async fn open(storage: &Storage, key: &str, size: u64) -> Result<Source, StoreError> {
        match &storage.place {
            StoragePlace::Folder(folder) => {
                let (folder, wanted) = (Arc::clone(folder), key.to_owned());
                let file = blocking(move || folder.open_blob(&wanted)).await?;
                file.map(|file| Source::File(Arc::new(file))).ok_or_else(|| missing(key))
            }
            StoragePlace::Bucket(bucket) => {
                Ok(Source::Object(Arc::new(BlobObject::stored(bucket.clone(), key.to_owned(), size))))
            }
        }
    }

    /// The bytes of a range, fewer at the end of the source.
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

    /// Counts as staged by this lease, or no longer. Bytes in memory do not count.
    pub(crate) fn hold(&self, lease: Option<Lease>) {
        match self {
            Source::Bytes(_) => (),
            Source::File(file) => file.hold(lease),
            Source::Object(object) => {
                *object.lease.lock().unwrap_or_else(PoisonError::into_inner) = lease;
            }
        }
    }

    /// How many bytes there really are; none when they are not there.
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

/// The part of bytes that a range covers.
pub(crate) fn part(bytes: &Bytes, range: Range<u64>) -> Bytes {
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let (start, end) = (at(range.start), at(range.end));
    bytes.slice(start..end.max(start))
}

/// An object in a bucket.
pub(crate) struct BlobObject {
    pub(crate) bucket: Objects,
    pub(crate) key: String,
    pub(crate) size: u64,
    /// Set while nothing names it: it goes when this is dropped.
    owned: AtomicBool,
    /// To remove it by; none for what is stored.
    orphans: Option<Orphans>,
    /// While it is staged.
    lease: Mutex<Option<Lease>>,
}

impl BlobObject {
    /// An object that a row names.
    pub(crate) fn stored(bucket: Objects, key: String, size: u64) -> BlobObject {
        BlobObject {
            bucket,
            key,
            size,
            owned: AtomicBool::new(false),
            orphans: None,
            lease: Mutex::default(),
        }
    }

    /// A new object, which goes when it is dropped unsettled.
    pub(crate) fn staged(orphans: &Orphans, bucket: Objects, key: String, size: u64) -> BlobObject {
        let (owned, orphans) = (AtomicBool::new(true), Some(orphans.clone()));
        BlobObject { bucket, key, size, owned, orphans, lease: Mutex::default() }
    }

    /// A row may name it from now on, or nothing does after all.
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

    /// The bytes of a range that is not empty, as they come. `Corrupt` when the object is not there.
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

/// The error of bytes that are not where they should be.
fn missing(key: &str) -> StoreError {
    StoreError::Corrupt(format!("blob {key} is missing"))
}
