//! Settling: a blob's bytes are made durable before anything may name them.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;

use super::bytes::Settled;
use super::check::Check;
use super::fs::new_key;
use super::handle::Blob;
use super::objects::{Objects, PART};
use super::row::{BlobRow, Place};
use super::source::{Source, part};
use super::storage::{StoragePlace, blocking};
use crate::digest::Algorithm;
use crate::error::StoreError;
use crate::ids::new_id;
use crate::store::Store;
use crate::writer::KeptRow;

impl Blob {
    /// Makes the bytes durable and tells the row that may name them. From then on they stay though no handle is left, until
    /// `settled` says otherwise: after a failure of the database it is not known whether a row names them, and a sweep finds
    /// out. `Unavailable` when it failed: nothing is kept.
    pub(crate) async fn settle(&self, store: &Store) -> Result<BlobRow, StoreError> {
        let mut settled = self.0.settled.lock().await;
        if let Some(row) = &settled.row {
            if let (true, Source::Object(object)) = (row.fresh, &self.0.source) {
                store.inner.orphans.renew(&object.key).await?;
            }
            return Ok(row.clone());
        }
        let row = match (&self.0.source, &store.inner.storage.place) {
            (Source::Bytes(bytes), _) if self.size() <= store.inner.config.inline_max => {
                let bytes = part(bytes, self.0.range());
                self.row(Check::of(&bytes), Place::Inline(bytes)).await?
            }
            (Source::Bytes(bytes), StoragePlace::Bucket(bucket)) if self.size() < PART as u64 => {
                self.put(store, bucket, part(bytes, self.0.range())).await?
            }
            (Source::File(file), StoragePlace::Folder(folder)) if let Some(check) = self.received() => {
                let (folder, file) = (Arc::clone(folder), Arc::clone(file));
                let now = store.now();
                let key = blocking(move || folder.settle(&file, now)).await?;
                self.row(check, Place::Stored(key)).await?
            }
            (Source::Object(object), StoragePlace::Bucket(_)) if let Some(check) = self.received() => {
                store.inner.orphans.renew(&object.key).await?;
                object.own(false);
                self.row(check, Place::Stored(object.key.clone())).await?
            }
            _ => self.settle_copy(store, &mut settled).await?,
        };
        // From here on it counts as stored.
        self.0.source.hold(None);
        settled.row = Some(row.clone());
        Ok(row)
    }

    /// After a commit: which row names the bytes. That row may have others of the same digest,
    /// which were there first.
    pub(crate) fn settled(&self, store: &Store, kept: KeptRow) {
        let Ok(mut settled) = self.0.settled.try_lock() else { return };
        let Settled { row: Some(row), copy } = &mut *settled else { return };
        let Place::Stored(key) = &row.place else { return };
        if kept.is_own || !row.fresh {
            (row.id, row.fresh) = (kept.id, false);
            return;
        }
        match (&self.0.source, copy) {
            (_, Some(copy)) => Blob(Arc::clone(copy)).settled(store, kept),
            (Source::File(file), None) => file.disown(),
            (Source::Object(object), None) => object.own(true),
            (Source::Bytes(_), None) => store.inner.orphans.remove_later(key.clone()),
        }
        *settled = Settled::default();
    }

    /// The check value of a blob that was received; none for bytes in memory and for a part of another blob.
    fn received(&self) -> Option<u64> {
        self.0.facts().check
    }

    async fn row(&self, check: u64, place: Place) -> Result<BlobRow, StoreError> {
        let (id, sha256, size, digests) =
            (new_id(), self.sha256().await?, self.size(), self.0.other_digests());
        let (check, fresh) = (check.cast_signed(), true);
        Ok(BlobRow { id, sha256, size, check, place, fresh, digests, damaged: false, examined: None })
    }

    /// Puts bytes in memory as one object.
    async fn put(&self, store: &Store, bucket: &Objects, bytes: Bytes) -> Result<BlobRow, StoreError> {
        let (key, check) = (new_key(), Check::of(&bytes));
        store.inner.orphans.add(&key, None).await?;
        bucket.put(&key, bytes).await.map_err(StoreError::storage)?;
        self.row(check, Place::Stored(key)).await
    }

    /// Settles a new blob of the same bytes in this one's stead: of what is a part of another, or large and only in memory.
    async fn settle_copy(&self, store: &Store, settled: &mut Settled) -> Result<BlobRow, StoreError> {
        let known: Vec<Algorithm> = self.0.facts().digests.keys().copied().collect();
        let mut stager = store.stage(&known, self.size());
        let mut bytes = self.stream(0..self.size());
        while let Some(chunk) = bytes.next().await {
            stager.write(chunk?).await?;
        }
        let copy = stager.finish().await?;
        let row = Box::pin(copy.settle(store)).await?;
        if let Some(sha256) = copy.known(Algorithm::Sha256) {
            self.0.facts().digests.insert(Algorithm::Sha256, sha256.bytes);
        }
        settled.copy = Some(copy.0);
        Ok(row)
    }
}
