//! Bytes of the blobs in a snapshot.

use std::collections::HashMap;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use crate::blobs::row::{BLOB_COLUMNS, BlobLocation, BlobRow, read_row};
use crate::blobs::source::Source;
use crate::boxed;
use crate::db::{Value, placeholders};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::store::Store;

/// Bytes read at a time.
const CHUNK: u64 = 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotBlob {
    /// Id of the row in `blobs`.
    pub id: i64,
    pub sha256: Sha256,
    /// Size of the content in bytes.
    pub size: u64,
}

impl Store {
    /// Streams the bytes of each of these blobs (some hundred at most) without verifying their
    /// digests. `Corrupt` names a missing blob; `Unavailable` if the database failed.
    #[boxed]
    pub async fn blob_bytes(
        &self,
        blobs: &[SnapshotBlob],
    ) -> Result<Vec<(SnapshotBlob, BoxStream<'static, Result<Bytes, StoreError>>)>, StoreError> {
        if blobs.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Value> = blobs.iter().map(|blob| Value::from(blob.id)).collect();
        let among = placeholders(1, ids.len());
        let sql = format!("SELECT {BLOB_COLUMNS} FROM blobs b WHERE b.id IN {among}");
        let mut found = HashMap::new();
        for row in &self.inner.db.fetch(sql, ids).await? {
            let row = read_row(row)?;
            found.insert(row.id, row);
        }
        let mut readers = Vec::with_capacity(blobs.len());
        for blob in blobs {
            let gone = || StoreError::Corrupt(format!("blob {} is no longer in the database", blob.sha256));
            let row = found.remove(&blob.id).ok_or_else(gone)?;
            readers.push((*blob, self.bytes_of(row)));
        }
        Ok(readers)
    }

    /// Opens the blob when the stream is first polled.
    fn bytes_of(&self, row: BlobRow) -> BoxStream<'static, Result<Bytes, StoreError>> {
        let storage = self.inner.storage.clone();
        let open = async move {
            let size = row.size;
            let source = match row.place {
                BlobLocation::Inline(bytes) => Source::Bytes(bytes),
                BlobLocation::Stored(key) => Source::open(&storage, &key, size).await?,
            };
            match &source {
                Source::Object(object) if size > 0 => object.get(0..size).await,
                _ => Ok(pieces(source)),
            }
        };
        stream::once(open).try_flatten().boxed()
    }
}

/// Streams all bytes of the source, even if it has more or fewer than expected.
fn pieces(source: Source) -> BoxStream<'static, Result<Bytes, StoreError>> {
    let next = |(source, at): (Source, u64)| async move {
        let piece = source.read(at..at.saturating_add(CHUNK)).await?;
        let end = at.saturating_add(piece.len() as u64);
        Ok((!piece.is_empty()).then_some((piece, (source, end))))
    };
    stream::try_unfold((source, 0), next).boxed()
}
