//! Destination of the bytes of a new blob: a file, or an object that is uploaded in parts.

use std::sync::Arc;

use bytes::Bytes;

use super::fs::{BlobFile, new_key};
use super::objects::{Multipart, Objects, PART, PARTS};
use super::orphans::Orphans;
use super::source::{BlobObject, Source};
use super::storage::{Storage, StoragePlace, blocking};
use crate::error::StoreError;

/// Destination of the bytes of one new blob.
pub(crate) enum Sink {
    File(BlobFile),
    Object(ObjectSink),
}

impl Sink {
    pub(crate) async fn begin(storage: &Storage, orphans: &Orphans) -> Result<Sink, StoreError> {
        match &storage.place {
            StoragePlace::Folder(folder) => {
                let folder = Arc::clone(folder);
                Ok(Sink::File(blocking(move || folder.begin()).await?))
            }
            StoragePlace::Bucket(bucket) => Ok(Sink::Object(ObjectSink::new(orphans, bucket))),
        }
    }

    /// Ends the writing and returns the bytes as a source.
    pub(crate) async fn finish(self) -> Result<Source, StoreError> {
        match self {
            Sink::File(file) => Ok(Source::File(Arc::new(file))),
            Sink::Object(object) => object.finish().await,
        }
    }
}

/// Parts and remaining bytes of an object being written.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) multipart: Option<Multipart>,
    /// Tag of each uploaded part.
    pub(crate) tags: Vec<String>,
    /// Number of parts when the upload was resumed.
    pub(crate) known: usize,
    /// Bytes that do not fill a part yet.
    pub(crate) tail: Bytes,
}

/// Object being written: bytes in memory until they fill a part, then a multipart upload.
pub(crate) struct ObjectSink {
    orphans: Orphans,
    bucket: Objects,
    multipart: Option<Multipart>,
    tags: Vec<String>,
    /// Bytes that do not fill a part yet.
    held: Vec<Bytes>,
    length: u64,
    /// Number of parts when the upload was resumed.
    known: usize,
    /// True if the object belongs to a resumable upload and must stay when this sink is dropped.
    lent: bool,
}

impl ObjectSink {
    fn new(orphans: &Orphans, bucket: &Objects) -> ObjectSink {
        let (orphans, bucket) = (orphans.clone(), bucket.clone());
        let (multipart, tags, held) = (None, Vec::new(), Vec::new());
        ObjectSink { orphans, bucket, multipart, tags, held, length: 0, known: 0, lent: false }
    }

    /// Resumes an upload with these parts and this tail.
    pub(crate) fn resume(
        orphans: &Orphans,
        bucket: &Objects,
        multipart: Option<Multipart>,
        tags: Vec<String>,
        tail: Bytes,
        length: u64,
    ) -> ObjectSink {
        let mut sink = ObjectSink::new(orphans, bucket);
        (sink.known, sink.lent) = (tags.len(), multipart.is_some());
        (sink.multipart, sink.tags, sink.held, sink.length) = (multipart, tags, vec![tail], length);
        sink
    }

    /// Takes over the object from its resumable upload. Dropping the sink then removes the object.
    pub(crate) fn own(mut self) -> ObjectSink {
        self.lent = false;
        self
    }

    /// Leaves the object to its resumable upload. Returns whether it belonged to the upload
    /// already.
    pub(crate) fn lend(&mut self) -> bool {
        std::mem::replace(&mut self.lent, true)
    }

    /// Returns the parts and remaining bytes so far.
    pub(crate) fn parts(&self) -> Parts {
        let (multipart, tags) = (self.multipart.clone(), self.tags.clone());
        Parts { multipart, tags, known: self.known, tail: join(&self.held) }
    }

    /// Appends pieces, and uploads each part that becomes full.
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
                let begun = begin_object(&self.orphans, &self.bucket).await?;
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
        let Some(multipart) = &self.multipart else { return Err(StoreError::storage("an upload was lost")) };
        self.bucket.complete(multipart, &self.tags).await.map_err(StoreError::storage)?;
        let key = self.multipart.take().map(|multipart| multipart.key).unwrap_or_default();
        Ok(Source::Object(Arc::new(BlobObject::staged(&self.orphans, self.bucket.clone(), key, self.length))))
    }
}

impl Drop for ObjectSink {
    fn drop(&mut self) {
        if let Some(multipart) = self.multipart.take().filter(|_| !self.lent) {
            self.orphans.remove_later(multipart.key);
        }
    }
}

/// Begins an object under a new key, which is recorded as an orphan before any byte is sent.
async fn begin_object(orphans: &Orphans, bucket: &Objects) -> Result<Multipart, StoreError> {
    let key = new_key();
    let multipart = bucket.begin(&key).await.map_err(StoreError::storage)?;
    match orphans.add(&key, Some(&multipart.id)).await {
        Ok(()) => Ok(multipart),
        Err(error) => {
            // The multipart upload is recorded nowhere, so only this code can abort it.
            let _ = bucket.abort(&multipart).await;
            Err(error)
        }
    }
}

/// Takes exactly one part from the held pieces, if they are enough.
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

/// Joins the pieces, without copying if there is only one.
pub(crate) fn join(pieces: &[Bytes]) -> Bytes {
    match pieces {
        [] => Bytes::new(),
        [one] => one.clone(),
        many => many.concat().into(),
    }
}
