//! Settling makes a blob's bytes durable before any row may name them.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;

use super::bytes::Settled;
use super::check::Check;
use super::fs::new_key;
use super::handle::Blob;
use super::objects::{Objects, PART};
use super::row::{BlobLocation, BlobRow};
use super::source::{Source, part};
use super::storage::{StoragePlace, blocking};
use crate::digest::Algorithm;
use crate::error::StoreError;
use crate::ids::new_id;
use crate::store::Store;
use crate::writer::SettledRow;

impl Blob {
    /// Makes the bytes durable and returns the row that may name them. From then on, the bytes stay
    /// even without a handle, until `settled` is called. After a failure of the database, a row may
    /// or may not name the bytes, and a sweep checks that later. `Unavailable` if settling failed;
    /// then nothing is stored.
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
                self.row(Check::of(&bytes), BlobLocation::Inline(bytes)).await?
            }
            (Source::Bytes(bytes), StoragePlace::Bucket(bucket)) if self.size() < PART as u64 => {
                self.put(store, bucket, part(bytes, self.0.range())).await?
            }
            (Source::File(file), StoragePlace::Folder(folder)) if let Some(check) = self.received() => {
                let (folder, file) = (Arc::clone(folder), Arc::clone(file));
                let now = store.now();
                let key = blocking(move || folder.settle(&file, now)).await?;
                self.row(check, BlobLocation::Stored(key)).await?
            }
            (Source::Object(object), StoragePlace::Bucket(_)) if let Some(check) = self.received() => {
                store.inner.orphans.renew(&object.key).await?;
                object.own(false);
                self.row(check, BlobLocation::Stored(object.key.clone())).await?
            }
            _ => self.settle_copy(store, &mut settled).await?,
        };
        // From here on, the blob counts as stored, not as staged.
        self.0.source.hold(None);
        settled.row = Some(row.clone());
        Ok(row)
    }

    /// Processes the result of a commit: the row of this digest. If that row keeps its earlier copy
    /// of the bytes, discards the copy of this blob.
    pub(crate) fn settled(&self, store: &Store, stored: SettledRow) {
        let Ok(mut settled) = self.0.settled.try_lock() else { return };
        let Settled { row: Some(row), copy } = &mut *settled else { return };
        let BlobLocation::Stored(key) = &row.place else { return };
        if stored.is_own || !row.fresh {
            (row.id, row.fresh) = (stored.id, false);
            return;
        }
        match (&self.0.source, copy) {
            (_, Some(copy)) => Blob(Arc::clone(copy)).settled(store, stored),
            (Source::File(file), None) => file.disown(),
            (Source::Object(object), None) => object.own(true),
            (Source::Bytes(_), None) => store.inner.orphans.remove_later(key.clone()),
        }
        *settled = Settled::default();
    }

    /// Returns the check value of a received blob; `None` for bytes in memory and for a part of
    /// another blob.
    fn received(&self) -> Option<u64> {
        self.0.facts().check
    }

    async fn row(&self, check: u64, place: BlobLocation) -> Result<BlobRow, StoreError> {
        let (id, sha256, size, digests) =
            (new_id(), self.sha256().await?, self.size(), self.0.other_digests());
        let (check, fresh) = (check.cast_signed(), true);
        Ok(BlobRow { id, sha256, size, check, place, fresh, digests, damaged: false, examined: None })
    }

    /// Stores bytes in memory as one object.
    async fn put(&self, store: &Store, bucket: &Objects, bytes: Bytes) -> Result<BlobRow, StoreError> {
        let (key, check) = (new_key(), Check::of(&bytes));
        store.inner.orphans.add(&key, None).await?;
        bucket.put(&key, bytes).await.map_err(StoreError::storage)?;
        self.row(check, BlobLocation::Stored(key)).await
    }

    /// Settles a copy of the bytes, for a part of another blob or for many bytes that are only in
    /// memory.
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
