//! The storage of blobs: a folder or a bucket, chosen once at the start.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::spawn_blocking;
use tokio_util::task::TaskTracker;

use super::fs::{BlobFile, Folder, new_key};
use super::objects::{Multipart, Objects, PART, PARTS};
use super::source::{BlobObject, Source};
use crate::config::{BlobsConfig, StoreConfig};
use crate::error::StoreError;
use crate::store::Store;

/// Where larger blobs lie. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Storage {
    pub(crate) place: StoragePlace,
    /// What goes on though its handle may be gone already: writing, and removing what nothing names.
    pub(crate) tasks: TaskTracker,
}

#[derive(Clone)]
pub(crate) enum StoragePlace {
    Folder(Arc<Folder>),
    Bucket(Objects),
}

impl Storage {
    /// `Unavailable` when it cannot be reached, `Invalid` when its address makes no sense.
    pub(crate) async fn open(config: &StoreConfig) -> Result<Storage, StoreError> {
        let place = match &config.blobs {
            BlobsConfig::Fs(root) => {
                let root = root.clone();
                StoragePlace::Folder(Arc::new(blocking(move || Folder::open(&root)).await?))
            }
            BlobsConfig::Memory => StoragePlace::Bucket(Objects::in_memory()),
            BlobsConfig::S3(address) => StoragePlace::Bucket(Objects::s3(address, config.blobs_idle)?),
        };
        Ok(Storage { place, tasks: TaskTracker::new() })
    }

    /// The folder, where it is one.
    pub(crate) fn folder(&self) -> Option<std::path::PathBuf> {
        match &self.place {
            StoragePlace::Folder(folder) => Some(folder.root().to_owned()),
            StoragePlace::Bucket(_) => None,
        }
    }

    /// Whether a blob can be written, read and removed.
    pub(crate) async fn canary(&self) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.canary()).await
            }
            StoragePlace::Bucket(bucket) => bucket.canary().await.map_err(StoreError::storage),
        }
    }

    /// Whether this program may write, read and remove blobs. `Invalid` where it may not, `Unavailable` where that cannot be told.
    pub(crate) async fn admits(&self) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(_) => self.canary().await,
            StoragePlace::Bucket(bucket) => bucket.admits().await,
        }
    }

    /// Whether it answers, without writing anything.
    pub(crate) async fn knock(&self) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let folder = Arc::clone(folder);
                blocking(move || folder.knock()).await
            }
            StoragePlace::Bucket(bucket) => bucket.knock().await.map_err(StoreError::storage),
        }
    }

    /// Where it is, in words for people: without what is secret.
    pub(crate) fn described(&self, config: &StoreConfig) -> String {
        match (&self.place, &config.blobs) {
            (StoragePlace::Folder(folder), _) => {
                let root = folder.root();
                let whole = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
                format!("the folder {}", whole.display())
            }
            (StoragePlace::Bucket(_), BlobsConfig::S3(address)) => {
                format!("the bucket {}", public_part(address))
            }
            (StoragePlace::Bucket(_), _) => "memory".to_owned(),
        }
    }

    /// Whether there are bytes with this key.
    pub(crate) async fn holds(&self, key: &str) -> Result<bool, StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let (folder, key) = (Arc::clone(folder), key.to_owned());
                blocking(move || folder.open_blob(&key).map(|found| found.is_some())).await
            }
            StoragePlace::Bucket(bucket) => {
                bucket.length(key).await.map(|found| found.is_some()).map_err(StoreError::storage)
            }
        }
    }

    /// The bytes with this key. `Corrupt` when they are not there or not so many.
    pub(crate) async fn open_blob(&self, key: &str, size: u64) -> Result<Source, StoreError> {
        match &self.place {
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

    /// Removes the bytes with this key, and what an unfinished multipart upload of them left. That there are none is no fault.
    pub(crate) async fn remove(&self, key: &str, multipart: Option<String>) -> Result<(), StoreError> {
        match &self.place {
            StoragePlace::Folder(folder) => {
                let (folder, key) = (Arc::clone(folder), key.to_owned());
                blocking(move || folder.remove(&key)).await
            }
            StoragePlace::Bucket(bucket) => {
                if let Some(id) = multipart {
                    let multipart = Multipart { key: key.to_owned(), id };
                    bucket.abort(&multipart).await.map_err(StoreError::storage)?;
                }
                bucket.remove(key).await.map_err(StoreError::storage)
            }
        }
    }

    /// Waits until all that handles left behind is done.
    pub(crate) async fn settle_down(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }
}

/// Bucket, path and endpoint of an address, without its credentials.
fn public_part(address: &str) -> String {
    let place = address.split('?').next().unwrap_or_default();
    let url = url::Url::parse(address).ok();
    let endpoint =
        url.as_ref().and_then(|url| url.query_pairs().find(|(name, _)| name.ends_with("endpoint")));
    let host = endpoint.and_then(|(_, value)| url::Url::parse(&value).ok()?.host_str().map(str::to_owned));
    host.map_or_else(|| place.to_owned(), |host| format!("{place} at {host}"))
}

/// Where the bytes of one new blob go.
pub(crate) enum Sink {
    File(BlobFile),
    Object(ObjectSink),
}

impl Sink {
    pub(crate) async fn begin(store: &Store) -> Result<Sink, StoreError> {
        match &store.inner.storage.place {
            StoragePlace::Folder(folder) => {
                let folder = Arc::clone(folder);
                Ok(Sink::File(blocking(move || folder.begin()).await?))
            }
            StoragePlace::Bucket(bucket) => Ok(Sink::Object(ObjectSink::new(store, bucket))),
        }
    }

    /// All that was written, to be read.
    pub(crate) async fn finish(self) -> Result<Source, StoreError> {
        match self {
            Sink::File(file) => Ok(Source::File(Arc::new(file))),
            Sink::Object(object) => object.finish().await,
        }
    }
}

/// What an object being written consists of so far.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) multipart: Option<Multipart>,
    /// What stands for each part.
    pub(crate) tags: Vec<String>,
    /// How many of them there were when it was gone on with.
    pub(crate) known: usize,
    /// What does not make a part yet.
    pub(crate) tail: Bytes,
}

/// An object being written: nothing yet while it is less than a part, then a multipart upload.
pub(crate) struct ObjectSink {
    store: Store,
    bucket: Objects,
    multipart: Option<Multipart>,
    tags: Vec<String>,
    /// What does not make a part yet.
    held: Vec<Bytes>,
    length: u64,
    /// How many parts there were when it was gone on with.
    known: usize,
    /// It belongs to an upload, and stays when this is dropped.
    lent: bool,
}

impl ObjectSink {
    fn new(store: &Store, bucket: &Objects) -> ObjectSink {
        let (store, bucket) = (store.clone(), bucket.clone());
        let (multipart, tags, held) = (None, Vec::new(), Vec::new());
        ObjectSink { store, bucket, multipart, tags, held, length: 0, known: 0, lent: false }
    }

    /// Goes on with an upload that has these parts and this tail.
    pub(crate) fn resume(
        store: &Store,
        bucket: &Objects,
        multipart: Option<Multipart>,
        tags: Vec<String>,
        tail: Bytes,
        length: u64,
    ) -> ObjectSink {
        let mut sink = ObjectSink::new(store, bucket);
        (sink.known, sink.lent) = (tags.len(), multipart.is_some());
        (sink.multipart, sink.tags, sink.held, sink.length) = (multipart, tags, vec![tail], length);
        sink
    }

    /// Takes it from the upload that it was lent by: it goes when this is dropped.
    pub(crate) fn own(mut self) -> ObjectSink {
        self.lent = false;
        self
    }

    /// Leaves it to the upload that it was made for; whether it was the upload's already.
    pub(crate) fn lend(&mut self) -> bool {
        std::mem::replace(&mut self.lent, true)
    }

    /// What it consists of so far.
    pub(crate) fn parts(&self) -> Parts {
        let (multipart, tags) = (self.multipart.clone(), self.tags.clone());
        Parts { multipart, tags, known: self.known, tail: join(&self.held) }
    }

    /// Adds pieces at the end, and sends each part that becomes full.
    pub(crate) async fn append(&mut self, pieces: &[Bytes]) -> Result<(), StoreError> {
        self.length += pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        self.held.extend_from_slice(pieces);
        while let Some(part) = take_part(&mut self.held) {
            self.send(part).await?;
        }
        Ok(())
    }

    async fn send(&mut self, part: Vec<Bytes>) -> Result<(), StoreError> {
        if self.tags.len() >= PARTS {
            return Err(StoreError::TooLarge { limit: (PART * PARTS) as u64, observed: self.length });
        }
        let multipart = match &self.multipart {
            Some(multipart) => multipart,
            None => {
                let begun = begin_object(&self.store, &self.bucket).await?;
                self.multipart.insert(begun)
            }
        };
        let tag =
            self.bucket.put_part(multipart, self.tags.len(), part).await.map_err(StoreError::storage)?;
        self.tags.push(tag);
        Ok(())
    }

    async fn finish(mut self) -> Result<Source, StoreError> {
        if self.multipart.is_none() {
            return Ok(Source::Bytes(join(&self.held)));
        }
        let last = std::mem::take(&mut self.held);
        if last.iter().any(|piece| !piece.is_empty()) {
            self.send(last).await?;
        }
        let Some(multipart) = &self.multipart else { return Err(StoreError::storage("an upload is lost")) };
        self.bucket.complete(multipart, &self.tags).await.map_err(StoreError::storage)?;
        let key = self.multipart.take().map(|multipart| multipart.key).unwrap_or_default();
        Ok(Source::Object(Arc::new(BlobObject::staged(&self.store, self.bucket.clone(), key, self.length))))
    }
}

impl Drop for ObjectSink {
    fn drop(&mut self) {
        if let Some(multipart) = self.multipart.take().filter(|_| !self.lent) {
            self.store.forget_stray(multipart.key);
        }
    }
}

/// Begins an object under a new key, which is known as a stray before any byte is sent.
async fn begin_object(store: &Store, bucket: &Objects) -> Result<Multipart, StoreError> {
    let key = new_key();
    let multipart = bucket.begin(&key).await.map_err(StoreError::storage)?;
    match store.add_stray(&key, Some(&multipart.id)).await {
        Ok(()) => Ok(multipart),
        Err(error) => {
            // Nothing knows of it, so this is the only chance.
            let _ = bucket.abort(&multipart).await;
            Err(error)
        }
    }
}

/// Takes exactly a part from what is held, when there is as much.
fn take_part(held: &mut Vec<Bytes>) -> Option<Vec<Bytes>> {
    if held.iter().map(Bytes::len).sum::<usize>() < PART {
        return None;
    }
    let (mut part, mut missing, mut rest) = (Vec::new(), PART, Vec::new());
    for mut piece in held.drain(..) {
        let taken = piece.split_to(missing.min(piece.len()));
        missing -= taken.len();
        part.push(taken);
        if !piece.is_empty() {
            rest.push(piece);
        }
    }
    *held = rest;
    Some(part)
}

/// One piece of many, without a copy when there is only one.
pub(crate) fn join(pieces: &[Bytes]) -> Bytes {
    match pieces {
        [] => Bytes::new(),
        [one] => one.clone(),
        many => many.concat().into(),
    }
}

/// Runs file work where it keeps nobody waiting.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    spawn_blocking(work).await.map_err(StoreError::storage)?.map_err(StoreError::storage)
}

/// A blob's bytes are not where they should be.
pub(crate) fn missing(key: &str) -> StoreError {
    metrics::counter!("packhouse_blobs_corrupt_total").increment(1);
    tracing::error!(blob = key, "a stored blob is missing");
    StoreError::Corrupt(format!("blob {key} is missing"))
}
