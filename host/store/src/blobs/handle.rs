//! `Blob`, a handle to bytes that were just received, are stored, or are only in memory.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::StreamExt;
use tokio::task::spawn_blocking;
use url::Url;

use super::bytes::{BlobBytes, KnownSums, Settled, StoredRow};
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

/// Number of bytes that `find` reads at a time.
const WINDOW: u64 = 256 * 1024;
/// Maximum length of the search text.
const MAX_NEEDLE: usize = 4096;
/// Maximum length for hashing bytes in memory on the calling thread. Another thread hashes more
/// bytes.
const HASHED_IN_PLACE: u64 = 64 * 1024;

/// A handle to bytes. The holder of a handle may read the bytes, and they stay available while the
/// handle lives. Cheap to clone.
///
/// The bytes of a new blob are discarded if its last handle is dropped before it is stored.
#[derive(Clone)]
pub struct Blob(pub(crate) Arc<BlobBytes>);

impl Blob {
    /// Creates a blob from bytes in memory. Digests are computed on demand.
    #[must_use]
    pub fn from_bytes(bytes: Bytes) -> Blob {
        let size = bytes.len() as u64;
        Blob::new(Source::Bytes(bytes), size, KnownSums::default(), None)
    }

    /// Creates a blob from received bytes.
    pub(crate) fn new(source: Source, size: u64, known: KnownSums, origin: Option<RepositoryId>) -> Blob {
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

    /// Creates a handle to the blob of a row.
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
        let known = KnownSums::new(Some(row.check.cast_unsigned()), digests);
        let key = row.key().to_owned();
        let stored = Some(StoredRow { database: database.clone(), id: row.id, key });
        let (size, damaged) = (row.size, AtomicBool::new(false));
        let settled = tokio::sync::Mutex::new(Settled { row: Some(row), copy: None });
        let known = Mutex::new(known);
        Blob(Arc::new(BlobBytes { source, start: 0, size, origin, known, settled, damaged, stored }))
    }

    /// Returns the number of bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.0.size
    }

    /// Returns the repository that the blob was read from; `None` for a new one.
    #[must_use]
    pub fn origin(&self) -> Option<RepositoryId> {
        self.0.origin
    }

    /// Marks a new blob that has one handle as read from this repository. It then counts as a file
    /// of the repository, not as bytes made for an answer.
    pub(crate) fn read_in(mut self, repository: RepositoryId) -> Blob {
        if let Some(bytes) = Arc::get_mut(&mut self.0) {
            bytes.origin = Some(repository);
        }
        self
    }

    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.0.source, Source::Bytes(_))
    }

    /// Returns the bytes if they are in memory. Stored bytes were verified when they were read.
    #[must_use]
    pub fn in_memory(&self) -> Option<Bytes> {
        match &self.0.source {
            Source::Bytes(bytes) => Some(part(bytes, self.0.range())),
            _ => None,
        }
    }

    /// Returns the bytes if they are in memory and were never stored, as for bytes made for an
    /// answer.
    #[must_use]
    pub fn made_in_memory(&self) -> Option<Bytes> {
        self.in_memory().filter(|_| self.0.origin.is_none())
    }

    /// Returns the identifier of the row that the blob was read from.
    pub(crate) fn stored_row(&self) -> Option<i64> {
        self.0.stored.as_ref().map(|row| row.id)
    }

    /// Returns the SHA-256. Errors as for [`digest`](Self::digest).
    #[boxed]
    pub async fn sha256(&self) -> Result<Sha256, StoreError> {
        let digest = self.digest(Algorithm::Sha256).await?;
        digest.sha256().ok_or_else(|| StoreError::Corrupt("a SHA-256 is not 32 bytes".to_owned()))
    }

    /// Returns the digest by this algorithm if it is already known.
    #[must_use]
    pub fn known(&self, algorithm: Algorithm) -> Option<Digest> {
        self.0.known(algorithm)
    }

    /// Returns the digest by this algorithm. The bytes are read again if it is not known yet.
    /// `Corrupt` if they are damaged, `Unavailable` if they cannot be read.
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

    /// Returns at most `length` bytes from `offset` on; fewer only at the end of the blob.
    /// `Unavailable` if they cannot be read.
    #[boxed]
    pub async fn read_at(&self, offset: u64, length: u32) -> Result<Bytes, StoreError> {
        let start = offset.min(self.size());
        let end = start.saturating_add(length.into()).min(self.size());
        let read = self.0.source.read(self.0.start + start..self.0.start + end).await;
        let bytes = self.0.recording_damage(read).await?;
        if bytes.len() as u64 != end - start {
            return Err(self.0.corrupt("is cut short").await);
        }
        Ok(bytes)
    }

    /// Returns the offset of the first `needle` that lies entirely between `start` (inclusive) and
    /// `end` (exclusive, at most the blob's end). `Invalid` if the needle is empty or longer than 4
    /// KiB, or `start` is past `end`.
    #[boxed]
    pub async fn find(&self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>, StoreError> {
        if needle.is_empty() || needle.len() > MAX_NEEDLE {
            return Err(StoreError::Invalid("the search text must have 1 to 4096 bytes".to_owned()));
        }
        if start > end {
            return Err(StoreError::Invalid(format!("the search starts at {start}, after its end {end}")));
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
            // A match may begin in this window and end in the next one, so the windows overlap.
            at += (window + 1).saturating_sub(length).max(1);
        }
        Ok(None)
    }

    /// Returns a part of these bytes without copying. `Invalid` if it does not lie within them.
    pub fn slice(&self, offset: u64, length: u64) -> Result<Blob, StoreError> {
        if offset.checked_add(length).is_none_or(|end| end > self.size()) {
            return Err(StoreError::Invalid(format!(
                "the range of {length} bytes from {offset} exceeds the size {}",
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

    /// Streams a range (cut off at the blob's end) in chunks of 256 KiB. A stream of the whole blob
    /// checks the bytes. If they differ from the stored ones, it ends with `Corrupt` instead of the
    /// last chunk, so that no client receives a damaged blob completely.
    pub fn stream(&self, range: Range<u64>) -> BlobStream {
        BlobStream::new(&self.0, range, CHUNK)
    }

    /// Streams a range in chunks of at most this size. Use small chunks if the server sends many
    /// responses at a time: each stream holds about four chunks in memory. Bytes from an object
    /// store come in the store's own pieces.
    pub fn stream_in(&self, range: Range<u64>, chunk: usize) -> BlobStream {
        BlobStream::new(&self.0, range, chunk)
    }

    /// Returns a URL at which a client can fetch the bytes from S3. Anyone who has the URL can use
    /// it until it expires. `None` if the bytes must pass through this server: they are not in S3,
    /// not stored yet, or a part of another blob, or the configuration excludes it. `Unavailable`
    /// if the URL cannot be signed.
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
