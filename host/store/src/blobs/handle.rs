//! `Blob`: a handle to bytes, the same whether they were just received, are stored, or lie in memory.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::StreamExt;
use tokio::task::spawn_blocking;
use url::Url;

use super::bytes::{BlobBytes, Known, Settled, StoredRow};
use super::hashing::Hasher;
use super::presigned::SentAs;
use super::row::BlobRow;
use super::source::{Source, part};
use super::stream::{BlobStream, CHUNK};
use crate::boxed;
use crate::db::Database;
use crate::digest::{Algorithm, Digest, Sha256};
use crate::error::StoreError;
use crate::ids::RepositoryId;

/// How much of a blob `find` looks through at a time.
const WINDOW: u64 = 256 * 1024;
/// The longest needle.
const MAX_NEEDLE: usize = 4096;
/// Up to this length, bytes in memory are hashed in place: handing them to another thread costs more.
const HASHED_IN_PLACE: u64 = 64 * 1024;

/// A handle to bytes. To hold it is the right to read them; the bytes stay while it lives. Cheap to clone.
///
/// A new blob is gone when its last handle is dropped before it was kept.
#[derive(Clone)]
pub struct Blob(pub(crate) Arc<BlobBytes>);

impl Blob {
    /// A blob of bytes in memory. Their digests are computed when they are wanted.
    #[must_use]
    pub fn from_bytes(bytes: Bytes) -> Blob {
        let size = bytes.len() as u64;
        Blob::new(Source::Bytes(bytes), size, Known::default(), None)
    }

    /// A blob that was received.
    pub(crate) fn new(source: Source, size: u64, known: Known, origin: Option<RepositoryId>) -> Blob {
        let settled = tokio::sync::Mutex::default();
        Blob(Arc::new(BlobBytes {
            source,
            start: 0,
            size,
            origin,
            known: Mutex::new(known),
            settled,
            damaged: AtomicBool::new(false),
            stored: None,
        }))
    }

    /// A blob that a row names.
    pub(crate) fn stored(
        database: &Database,
        source: Source,
        row: BlobRow,
        origin: Option<RepositoryId>,
    ) -> Blob {
        let digests = row
            .digests
            .iter()
            .chain([&row.sha256.digest()])
            .map(|d| (d.algorithm, d.bytes.clone()))
            .collect();
        let known = Known::new(Some(row.check.cast_unsigned()), digests);
        let key = row.key().to_owned();
        let stored = Some(StoredRow { database: database.clone(), id: row.id, key });
        let (size, damaged) = (row.size, AtomicBool::new(false));
        let settled = tokio::sync::Mutex::new(Settled { row: Some(row), copy: None });
        let known = Mutex::new(known);
        Blob(Arc::new(BlobBytes { source, start: 0, size, origin, known, settled, damaged, stored }))
    }

    /// How many bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// The repository that it was read from; none for a new one.
    #[must_use]
    pub fn origin(&self) -> Option<RepositoryId> {
        self.0.origin
    }

    /// A new blob that has one handle, as read from this repository: it is a file of it, and not
    /// made for an answer.
    pub(crate) fn read_in(mut self, repository: RepositoryId) -> Blob {
        if let Some(bytes) = Arc::get_mut(&mut self.0) {
            bytes.origin = Some(repository);
        }
        self
    }

    /// Whether its bytes are in memory.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.0.source, Source::Bytes(_))
    }

    /// Its bytes, where they are in memory: what was stored was checked when it was read.
    #[must_use]
    pub fn in_memory(&self) -> Option<Bytes> {
        match &self.0.source {
            Source::Bytes(bytes) => Some(part(bytes, self.0.range())),
            _ => None,
        }
    }

    /// Its bytes, where they are in memory and were never stored: what was made for an answer.
    #[must_use]
    pub fn made_in_memory(&self) -> Option<Bytes> {
        self.in_memory().filter(|_| self.0.origin.is_none())
    }

    /// The row that it was read from.
    pub(crate) fn stored_row(&self) -> Option<i64> {
        self.0.stored.as_ref().map(|row| row.id)
    }

    /// Its SHA-256. As `digest`.
    #[boxed]
    pub async fn sha256(&self) -> Result<Sha256, StoreError> {
        let digest = self.digest(Algorithm::Sha256).await?;
        digest.sha256().ok_or_else(|| StoreError::Corrupt("a SHA-256 is not 32 bytes".to_owned()))
    }

    /// Its digest by this algorithm, if that needs no reading.
    #[must_use]
    pub fn known(&self, algorithm: Algorithm) -> Option<Digest> {
        self.0.known(algorithm)
    }

    /// Its digest by this algorithm; the bytes are read again when it is not known yet. `Corrupt` when they are damaged,
    /// `Unavailable` when they cannot be read.
    #[boxed]
    pub async fn digest(&self, algorithm: Algorithm) -> Result<Digest, StoreError> {
        if let Some(digest) = self.known(algorithm) {
            return Ok(digest);
        }
        let bytes = match &self.0.source {
            Source::Bytes(bytes) if self.size() <= HASHED_IN_PLACE => {
                Hasher::of(algorithm, &part(bytes, self.0.range()))
            }
            _ => self.hash_again(algorithm).await?,
        };
        self.0.facts().digests.insert(algorithm, bytes.clone());
        self.0.remember_digests().await;
        Ok(Digest { algorithm, bytes })
    }

    /// The bytes from `offset` on, at most `length`; fewer only at the end, none at or past it. `Unavailable` when they cannot
    /// be read.
    #[boxed]
    pub async fn read_at(&self, offset: u64, length: u32) -> Result<Bytes, StoreError> {
        let start = offset.min(self.size());
        let end = start.saturating_add(length.into()).min(self.size());
        let read = self.0.source.read(self.0.start + start..self.0.start + end).await;
        let bytes = self.0.noted(read).await?;
        if bytes.len() as u64 != end - start {
            return Err(self.0.corrupt("is cut short").await);
        }
        Ok(bytes)
    }

    /// Offset of the first `needle` that lies wholly within `start` (included) and `end` (not included; no further than the
    /// blob's end). `Invalid` when the needle is empty or longer than 4 KiB, or `start` is past `end`.
    #[boxed]
    pub async fn find(&self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>, StoreError> {
        if needle.is_empty() || needle.len() > MAX_NEEDLE {
            return Err(StoreError::Invalid("a needle has 1 to 4096 bytes".to_owned()));
        }
        if start > end {
            return Err(StoreError::Invalid(format!("the search starts at {start}, past its end {end}")));
        }
        let (length, end) = (needle.len() as u64, end.min(self.size()));
        let finder = memchr::memmem::Finder::new(needle);
        let mut at = start;
        while at.saturating_add(length) <= end {
            let window = (end - at).min(WINDOW);
            let bytes = self.read_at(at, u32::try_from(window).unwrap_or(u32::MAX)).await?;
            if let Some(found) = finder.find(&bytes) {
                return Ok(Some(at + found as u64));
            }
            // What may begin in this window and end in the next is looked at again.
            at += (window + 1).saturating_sub(length).max(1);
        }
        Ok(None)
    }

    /// A part of these bytes, without a copy. `Invalid` when it does not lie within them.
    pub fn slice(&self, offset: u64, length: u64) -> Result<Blob, StoreError> {
        if offset.checked_add(length).is_none_or(|end| end > self.size()) {
            return Err(StoreError::Invalid(format!(
                "{length} bytes from {offset} do not lie in {}",
                self.size()
            )));
        }
        if length == self.size() {
            return Ok(self.clone());
        }
        let (source, start) = (self.0.source.clone(), self.0.start + offset);
        let (known, settled) = (Mutex::default(), tokio::sync::Mutex::default());
        let (origin, size, damaged) = (self.0.origin, length, AtomicBool::new(false));
        let stored = None;
        Ok(Blob(Arc::new(BlobBytes { source, start, size, origin, known, settled, damaged, stored })))
    }

    /// The bytes of a range (cut off at the blob's end), in chunks of 256 KiB. When it is the whole blob they are checked, and
    /// the last chunk is withheld and `Corrupt` told if they are not what was stored: so nobody receives a damaged blob to its
    /// end.
    pub fn stream(&self, range: Range<u64>) -> BlobStream {
        BlobStream::new(&self.0, range, CHUNK)
    }

    /// The same in chunks of at most so many bytes, where many are sent at one time: about four chunks are in memory. What comes
    /// from an object store comes in the pieces in which that sends it.
    pub fn stream_in(&self, range: Range<u64>, chunk: usize) -> BlobStream {
        BlobStream::new(&self.0, range, chunk)
    }

    /// An address at which a client fetches the bytes from S3 itself, good for a while for whoever has it; none where they pass through this
    /// server: they lie
    /// elsewhere, are not stored yet or a part of others, or the operator wants it so. `Unavailable` where the address cannot be signed.
    #[boxed]
    pub async fn presigned(&self, sent_as: &SentAs<'_>) -> Result<Option<Url>, StoreError> {
        let BlobBytes { source: Source::Object(object), start: 0, size, stored: Some(_), .. } = &*self.0
        else {
            return Ok(None);
        };
        if *size != object.size {
            return Ok(None);
        }
        object.bucket.presigned(&object.key, *size, sent_as).await.map_err(StoreError::storage)
    }

    async fn hash_again(&self, algorithm: Algorithm) -> Result<Vec<u8>, StoreError> {
        let mut hasher = Hasher::new(algorithm);
        let mut stream = self.stream(0..self.size());
        while let Some(chunk) = stream.next().await {
            let chunk = chunk?;
            hasher = spawn_blocking(move || {
                hasher.update(&chunk);
                hasher
            })
            .await
            .map_err(StoreError::storage)?;
        }
        Ok(hasher.finish())
    }
}

impl fmt::Debug for Blob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blob")
            .field("size", &self.0.size)
            .field("origin", &self.0.origin)
            .finish_non_exhaustive()
    }
}
