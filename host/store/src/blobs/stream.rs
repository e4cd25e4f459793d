//! Streaming of a blob to a client. The bytes are checked if the whole blob is sent and was not
//! checked recently.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt, TryStreamExt};

use super::bytes::BlobBytes;
use super::check::Check;
use super::file_reader;
use super::fs::FileVersion;
use super::source::{BlobObject, Source, part};
use super::storage::blocking;
use crate::boxed;
use crate::error::StoreError;

/// Size of a chunk. It is large because each read and each send has a fixed cost.
pub(super) const CHUNK: usize = 256 * 1024;
/// Minimum size of a blob for which a successful check is remembered. Checking a smaller blob again
/// costs little.
const REMEMBERED_FROM: u64 = 512 * 1024;

/// Stream of a blob's bytes, as returned by [`Blob::stream`](super::Blob::stream). Ends at its
/// first error.
pub struct BlobStream {
    chunks: Chunks,
    blob: Arc<BlobBytes>,
}

impl BlobStream {
    pub(super) fn new(blob: &Arc<BlobBytes>, range: Range<u64>, chunk: usize) -> BlobStream {
        let chunk = chunk.clamp(1, CHUNK);
        let end = range.end.min(blob.size);
        let range = range.start.min(end)..end;
        let whole = range == (0..blob.size);
        let expected = if whole { blob.facts().check } else { None };
        let length = range.end - range.start;
        let chunks = chunks(blob, range, chunk);
        let chunks = match expected {
            Some(expected) => checked(chunks, Arc::clone(blob), expected),
            None => counted(chunks, Arc::clone(blob), length),
        };
        BlobStream { chunks, blob: Arc::clone(blob) }
    }

    /// Waits for the first chunk, so that bytes that cannot be opened or read cause an error before
    /// the response begins. `Unavailable` if the storage failed, `Corrupt` if the bytes are missing
    /// or damaged.
    #[boxed]
    pub async fn with_first_chunk(self) -> Result<BlobStream, StoreError> {
        let BlobStream { mut chunks, blob } = self;
        // A stream detects damage only at its end. An earlier read may have reached the end and
        // recorded damage.
        if blob.is_damaged() {
            return Err(StoreError::Corrupt("the blob is damaged".to_owned()));
        }
        let first = chunks.try_next().await?;
        Ok(BlobStream { chunks: stream::iter(first.map(Ok)).chain(chunks).boxed(), blob })
    }
}

impl Stream for BlobStream {
    type Item = Result<Bytes, StoreError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.chunks.poll_next_unpin(context)
    }
}

type Chunks = BoxStream<'static, Result<Bytes, StoreError>>;

fn chunks(blob: &Arc<BlobBytes>, range: Range<u64>, chunk: usize) -> Chunks {
    let offset = blob.start;
    let (start, end) = (offset + range.start, offset + range.end);
    match &blob.source {
        Source::Bytes(bytes) => from_memory(part(bytes, start..end), chunk),
        Source::File(file) => file_reader::pieces(Arc::clone(file), start..end, chunk),
        Source::Object(object) => from_object(Arc::clone(object), start..end),
    }
}

fn from_memory(bytes: Bytes, chunk: usize) -> Chunks {
    let next = move |mut rest: Bytes| async move {
        let chunk = rest.split_to(rest.len().min(chunk));
        (!chunk.is_empty()).then_some((Ok(chunk), rest))
    };
    // `fuse` is needed because the compression of a body polls once more after the end.
    stream::unfold(bytes, next).fuse().boxed()
}

fn from_object(object: Arc<BlobObject>, range: Range<u64>) -> Chunks {
    if range.is_empty() {
        return stream::empty().boxed();
    }
    let begin = async move {
        let bytes = object.get(range).await?;
        // Keeps the object alive while it is read, because dropping a staged object removes it.
        Ok::<_, StoreError>(bytes.inspect_ok(move |_| drop(Arc::clone(&object))))
    };
    stream::once(begin).try_flatten().boxed()
}

/// Holds each chunk back until the next one is read, and the last one until length and check value
/// are verified.
struct Checking {
    chunks: Chunks,
    held: Option<Bytes>,
    /// `None` if the bytes were checked recently.
    check: Option<Check>,
    /// State of the file before its first byte was read, if it can be determined.
    version: Option<FileVersion>,
    received: u64,
    blob: Arc<BlobBytes>,
}

impl Checking {
    /// Begins the check of a blob before its first read.
    async fn begin(chunks: Chunks, blob: Arc<BlobBytes>) -> Result<Checking, StoreError> {
        let version = match &blob.source {
            Source::File(file) if blob.size >= REMEMBERED_FROM => {
                let file = Arc::clone(file);
                Some(blocking(move || file.version()).await?)
            }
            _ => None,
        };
        let lately = version.as_ref().is_some_and(|version| blob.was_checked_lately(version, Instant::now()));
        let check = (!lately).then(Check::default);
        Ok(Checking { chunks, held: None, check, version, received: 0, blob })
    }

    /// Returns the next chunk to send and the state for the rest; no state after the last chunk.
    async fn next(mut self, expected: u64) -> Result<(Option<Bytes>, Option<Checking>), StoreError> {
        loop {
            let read = self.chunks.try_next().await;
            let Some(chunk) = self.blob.recording_damage(read).await? else { break };
            if let Some(check) = &mut self.check {
                check.update(&chunk);
            }
            self.received += chunk.len() as u64;
            if let Some(before) = self.held.replace(chunk) {
                return Ok((Some(before), Some(self)));
            }
        }
        if self.received != self.blob.size {
            return Err(self.blob.corrupt("is cut short").await);
        }
        if let Some(check) = self.check {
            if check.value() != expected {
                return Err(self.blob.corrupt("differs from what was stored").await);
            }
            if let Some(version) = self.version {
                self.blob.set_checked(version, Instant::now());
            }
        }
        Ok((self.held, None))
    }
}

fn checked(chunks: Chunks, blob: Arc<BlobBytes>, expected: u64) -> Chunks {
    stream::once(Checking::begin(chunks, blob))
        .map_ok(move |begun| {
            stream::try_unfold(Some(begun), move |state| async move {
                let Some(checking) = state else { return Ok(None) };
                let (chunk, state) = checking.next(expected).await?;
                Ok(chunk.map(|chunk| (chunk, state)))
            })
        })
        .try_flatten()
        .boxed()
}

/// Passes chunks on and checks their total length.
fn counted(chunks: Chunks, blob: Arc<BlobBytes>, length: u64) -> Chunks {
    stream::try_unfold((chunks, length, blob), |(mut chunks, missing, blob)| async move {
        let read = chunks.try_next().await;
        match blob.recording_damage(read).await? {
            Some(chunk) => {
                let missing = missing.saturating_sub(chunk.len() as u64);
                Ok(Some((chunk, (chunks, missing, blob))))
            }
            None if missing > 0 => Err(blob.corrupt("is cut short").await),
            None => Ok(None),
        }
    })
    .boxed()
}
