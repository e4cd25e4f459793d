//! The bytes of a blob on their way out, checked when they are the whole blob and it was not checked lately.

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

/// A chunk: large, because a send and a read cost the same whatever their size.
pub(super) const CHUNK: usize = 256 * 1024;
/// Bytes of a blob from which on it is remembered when a whole read found it sound: of less, another check costs little.
const REMEMBERED_FROM: u64 = 512 * 1024;

/// The bytes of a blob, as [`Blob::stream`](super::Blob::stream) gives them. Ends with its first error.
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

    /// The same once its first bytes are there: what cannot be opened or read is an error now, while there is still time to say
    /// so, and not in the middle of an answer. `Unavailable` when storage failed, `Corrupt` when the bytes are missing or damaged.
    #[boxed]
    pub async fn begun(self) -> Result<BlobStream, StoreError> {
        let BlobStream { mut chunks, blob } = self;
        // An earlier read came to the end, and it is at the end that damage is found.
        if blob.is_damaged() {
            return Err(StoreError::Corrupt("a blob that was found damaged".to_owned()));
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
    // Who compresses a body asks once more after its end.
    stream::unfold(bytes, next).fuse().boxed()
}

fn from_object(object: Arc<BlobObject>, range: Range<u64>) -> Chunks {
    if range.is_empty() {
        return stream::empty().boxed();
    }
    let begin = async move {
        let bytes = object.get(range).await?;
        // The object is held as long as it is read: one that is staged goes when it is dropped.
        Ok::<_, StoreError>(bytes.inspect_ok(move |_| drop(Arc::clone(&object))))
    };
    stream::once(begin).try_flatten().boxed()
}

/// Holds each chunk back until the next is there, and the last until length and check value are right.
struct Checking {
    chunks: Chunks,
    held: Option<Bytes>,
    /// None where the bytes were checked lately.
    check: Option<Check>,
    /// What the file was before its first byte was read, where that can be told.
    version: Option<FileVersion>,
    seen: u64,
    blob: Arc<BlobBytes>,
}

impl Checking {
    /// Of a blob, none of which was read yet.
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
        Ok(Checking { chunks, held: None, check, version, seen: 0, blob })
    }

    /// The chunk that may go out, and how it goes on: none after the last.
    async fn next(mut self, expected: u64) -> Result<(Option<Bytes>, Option<Checking>), StoreError> {
        loop {
            let read = self.chunks.try_next().await;
            let Some(chunk) = self.blob.noted(read).await? else { break };
            if let Some(check) = &mut self.check {
                check.update(&chunk);
            }
            self.seen += chunk.len() as u64;
            if let Some(before) = self.held.replace(chunk) {
                return Ok((Some(before), Some(self)));
            }
        }
        if self.seen != self.blob.size {
            return Err(self.blob.corrupt("is cut short").await);
        }
        if let Some(check) = self.check {
            if check.value() != expected {
                return Err(self.blob.corrupt("is not what was stored").await);
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

/// Passes chunks on and checks that their length is the one asked for.
fn counted(chunks: Chunks, blob: Arc<BlobBytes>, length: u64) -> Chunks {
    stream::try_unfold((chunks, length, blob), |(mut chunks, missing, blob)| async move {
        let read = chunks.try_next().await;
        match blob.noted(read).await? {
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
