//! Bytes that the host holds: handles that are read in pieces, kept, or given as an answer.

use crate::host::{HostBlob, HostUpload, HostWriter, HostWritten};
use crate::upstream::Origin;
use crate::{Digest, Error, ReadAt};
use std::rc::Rc;

/// A received body, a stored file, an upstream's answer. Dropped without being kept, a new one is gone. Where an upstream's answer is
/// too large, its calls fail with [`Error::UpstreamTooLarge`] in the place of [`Error::TooLarge`].
pub struct Blob {
    host: Box<dyn HostBlob>,
    /// Of an upstream's answer.
    origin: Option<Rc<Origin>>,
}

impl Blob {
    /// Over the host's handle.
    pub fn new(host: Box<dyn HostBlob>) -> Self {
        Self { host, origin: None }
    }

    pub(crate) fn of_upstream(host: Box<dyn HostBlob>, origin: Origin) -> Self {
        Self { host, origin: Some(Rc::new(origin)) }
    }

    /// The host's handle.
    pub fn into_host(self) -> Box<dyn HostBlob> {
        self.host
    }

    pub(crate) fn host(&self) -> &dyn HostBlob {
        &*self.host
    }

    /// What the host answers about these bytes, of which `limit` are allowed or else those of the fetch.
    fn checked<T>(&self, limit: Option<u64>, answer: Result<T, Error>) -> Result<T, Error> {
        answer.map_err(|error| match (error, &self.origin) {
            (Error::TooLarge(size), Some(origin)) => origin.too_large(size, limit.or(origin.limit)),
            (error, _) => error,
        })
    }

    /// How many bytes, where that is no more than `limit`.
    pub(crate) fn size_within(&self, limit: u64) -> Result<u64, Error> {
        let size = self.size()?;
        self.checked(Some(limit), if size > limit { Err(Error::TooLarge(size)) } else { Ok(size) })
    }

    /// A blob made of these bytes, or of some of them.
    fn derived(&self, host: Box<dyn HostBlob>) -> Self {
        Self { host, origin: self.origin.clone() }
    }

    /// How many bytes. Of one that is still arriving, this waits for its end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it broke off.
    pub fn size(&self) -> Result<u64, Error> {
        self.checked(None, self.host.size())
    }

    /// Its SHA-256, which is there already.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it broke off while arriving.
    pub fn sha256(&self) -> Result<Digest, Error> {
        self.digest("sha256")
    }

    /// Its digest by this algorithm. Another than SHA-256 is there when [`Intent::digests`](crate::Intent::digests) asked for
    /// it; else the bytes are read again.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an algorithm that the host does not know.
    pub fn digest(&self, algorithm: &str) -> Result<Digest, Error> {
        self.checked(None, self.host.digest(algorithm))
    }

    /// The bytes from `offset` on, at most `length` and at most 1 MiB; fewer only at the end, none at or past it.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it broke off while arriving.
    pub fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        self.checked(None, self.host.read(offset, length))
    }

    /// All of it as text, where it is no more than `limit` bytes.
    ///
    /// # Errors
    /// [`Error::TooLarge`] with its size; [`Error::Invalid`] when it is not UTF-8.
    pub fn text(&self, limit: u64) -> Result<String, Error> {
        let bytes = self.read_all(limit)?;
        String::from_utf8(bytes).map_err(|_| Error::Invalid("not UTF-8".to_owned()))
    }

    /// Offset, from the blob's start, of the first `needle` (1 byte to 4 KiB) that lies wholly within `start` and `end`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a needle of another length, or when `start` is past `end`.
    pub fn find(&self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>, Error> {
        self.checked(None, self.host.find(needle, start, end))
    }

    /// A part of these bytes, without a copy.
    ///
    /// # Errors
    /// [`Error::Invalid`] when it does not lie within them.
    pub fn slice(&self, offset: u64, length: u64) -> Result<Self, Error> {
        self.checked(None, self.host.slice(offset, length)).map(|host| self.derived(host))
    }

    /// A new blob of these bytes decoded: `base64`, `gzip`, `deflate` (RFC 1951, as archives hold it), `zlib` (RFC 1950) or
    /// `zstd`, of at most `limit` bytes; `digests` as in [`Intent::digests`](crate::Intent::digests).
    ///
    /// # Errors
    /// [`Error::TooLarge`]; [`Error::Invalid`] for bytes that are not of that encoding, or an unknown encoding.
    pub fn decode(&self, encoding: &str, limit: u64, digests: &[&str]) -> Result<Self, Error> {
        let decoded = self.host.decode(encoding, limit, digests);
        self.checked(Some(limit), decoded).map(|host| self.derived(host))
    }
}

/// Bytes that the plugin makes itself, from [`Context::writer`](crate::Context::writer).
pub struct Writer(Box<dyn HostWriter>);

impl Writer {
    pub(crate) fn new(host: Box<dyn HostWriter>) -> Self {
        Self(host)
    }

    /// Adds bytes at the end.
    ///
    /// # Errors
    /// [`Error::TooLarge`] past the plugin's limit for what it may write in one call.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.write(bytes)
    }

    /// Adds all of a blob's bytes at the end, without their passing through the plugin's memory.
    ///
    /// # Errors
    /// As [`Writer::write`]; besides, what reading the blob fails with.
    pub fn append(&mut self, blob: &Blob) -> Result<(), Error> {
        if blob.origin.is_some() {
            // What the upstream's answer fails with is told from what the writer fails with.
            blob.size()?;
        }
        self.0.append(blob.host())
    }

    pub(crate) fn write_parts(&mut self, parts: Vec<HostWritten<'_>>) -> Result<(), Error> {
        self.0.write_parts(parts)
    }

    /// All that was written.
    ///
    /// # Errors
    /// The host's.
    pub fn finish(self) -> Result<Blob, Error> {
        self.0.finish().map(Blob::new)
    }
}

/// An upload that outlives a request, found by [`Repository::upload`](crate::Repository::upload). Bytes reach it by
/// [`Intent::append`](crate::Intent::append) alone.
pub struct Upload(Box<dyn HostUpload>);

impl Upload {
    pub(crate) fn new(host: Box<dyn HostUpload>) -> Self {
        Self(host)
    }

    /// What the plugin said when it began it.
    pub fn note(&self) -> String {
        self.0.note()
    }

    /// How many bytes it holds, those of this request among them.
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    /// How many of them this request brought.
    pub fn received(&self) -> u64 {
        self.0.received()
    }

    /// The bytes as a blob; the upload is gone.
    ///
    /// # Errors
    /// [`Error::Denied`] unless the intent was to publish.
    pub fn finish(self) -> Result<Blob, Error> {
        self.0.finish().map(Blob::new)
    }

    /// The upload and its bytes are gone.
    ///
    /// # Errors
    /// [`Error::Denied`] unless the intent was to write.
    pub fn abort(self) -> Result<(), Error> {
        self.0.abort()
    }
}
