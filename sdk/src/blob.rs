//! Handles for bytes that the host stores. A plugin can read them in pieces, store them, or send
//! them as a response.

use crate::host::{HostBlob, HostUpload, HostWriter, HostWritten};
use crate::upstream::Origin;
use crate::{Digest, Error, ReadAt};
use std::rc::Rc;

/// Handle for a received body, a stored file or an upstream's response. The host discards a new
/// blob unless the plugin keeps it. If an upstream's response is too large, the methods fail with
/// [`Error::UpstreamTooLarge`] instead of [`Error::TooLarge`].
pub struct Blob {
    host: Box<dyn HostBlob>,
    /// Set if the bytes belong to an upstream's response.
    origin: Option<Rc<Origin>>,
}

impl Blob {
    /// Wraps the host's handle.
    pub fn new(host: Box<dyn HostBlob>) -> Self {
        Self { host, origin: None }
    }

    pub(crate) fn of_upstream(host: Box<dyn HostBlob>, origin: Origin) -> Self {
        Self { host, origin: Some(Rc::new(origin)) }
    }

    /// Returns the host's handle.
    pub fn into_host(self) -> Box<dyn HostBlob> {
        self.host
    }

    pub(crate) fn host(&self) -> &dyn HostBlob {
        &*self.host
    }

    /// Turns a `TooLarge` error into an upstream error if the bytes came from an upstream. `limit`
    /// is the limit that was exceeded; `None` stands for the limit of the fetch.
    fn checked<T>(&self, limit: Option<u64>, answer: Result<T, Error>) -> Result<T, Error> {
        answer.map_err(|error| match (error, &self.origin) {
            (Error::TooLarge(size), Some(origin)) => origin.too_large(size, limit.or(origin.limit)),
            (error, _) => error,
        })
    }

    /// Returns the size, or an error if it exceeds `limit`.
    pub(crate) fn size_within(&self, limit: u64) -> Result<u64, Error> {
        let size = self.size()?;
        self.checked(Some(limit), if size > limit { Err(Error::TooLarge(size)) } else { Ok(size) })
    }

    /// Wraps a blob that the host made from this blob or from a part of it.
    fn derived(&self, host: Box<dyn HostBlob>) -> Self {
        Self { host, origin: self.origin.clone() }
    }

    /// Returns the size in bytes. If the blob is still arriving, this waits until all of it has
    /// arrived.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the transfer broke off.
    pub fn size(&self) -> Result<u64, Error> {
        self.checked(None, self.host.size())
    }

    /// Returns the SHA-256. The host always knows it, and does not read the bytes again.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the transfer broke off.
    pub fn sha256(&self) -> Result<Digest, Error> {
        self.digest("sha256")
    }

    /// Returns the digest by this algorithm. For algorithms other than SHA-256 the host reads the
    /// bytes again, unless [`Intent::digests`](crate::Intent::digests) requested the algorithm.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an algorithm that the host does not know.
    pub fn digest(&self, algorithm: &str) -> Result<Digest, Error> {
        self.checked(None, self.host.digest(algorithm))
    }

    /// Returns the bytes from `offset` on: at most `length`, and at most 1 MiB. Returns fewer only
    /// at the end of the blob, and none if `offset` is at or past the end.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the transfer broke off.
    pub fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        self.checked(None, self.host.read(offset, length))
    }

    /// Returns the whole content as text if it has at most `limit` bytes.
    ///
    /// # Errors
    /// [`Error::TooLarge`] with the actual size; [`Error::Invalid`] if the content is not UTF-8.
    pub fn text(&self, limit: u64) -> Result<String, Error> {
        let bytes = self.read_all(limit)?;
        String::from_utf8(bytes).map_err(|_| Error::Invalid("not UTF-8".to_owned()))
    }

    /// Returns the offset of the first `needle` (1 byte to 4 KiB) that lies wholly between `start`
    /// and `end`. Offsets count from the start of the blob.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a needle of another length, or if `start` is past `end`.
    pub fn find(&self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>, Error> {
        self.checked(None, self.host.find(needle, start, end))
    }

    /// Returns a part of these bytes without copying them.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the part does not lie within the blob.
    pub fn slice(&self, offset: u64, length: u64) -> Result<Self, Error> {
        self.checked(None, self.host.slice(offset, length)).map(|host| self.derived(host))
    }

    /// Decodes the bytes into a new blob of at most `limit` bytes. Encodings are `base64`, `gzip`,
    /// `deflate` (RFC 1951, as in archives), `zlib` (RFC 1950) and `zstd`. `digests` are algorithms
    /// as in [`Intent::digests`](crate::Intent::digests).
    ///
    /// # Errors
    /// [`Error::TooLarge`] past a limit; [`Error::Invalid`] for bytes that do not have that
    /// encoding, or for an unknown encoding.
    pub fn decode(&self, encoding: &str, limit: u64, digests: &[&str]) -> Result<Self, Error> {
        let decoded = self.host.decode(encoding, limit, digests);
        self.checked(Some(limit), decoded).map(|host| self.derived(host))
    }
}

/// Writer for a new blob, from [`Context::writer`](crate::Context::writer).
pub struct Writer(Box<dyn HostWriter>);

impl Writer {
    pub(crate) fn new(host: Box<dyn HostWriter>) -> Self {
        Self(host)
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::TooLarge`] past the plugin's limit for bytes written in one call.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.write(bytes)
    }

    /// Appends all bytes of a blob without passing them through the plugin's memory.
    ///
    /// # Errors
    /// The errors of [`Writer::write`], and those of reading the blob.
    pub fn append(&mut self, blob: &Blob) -> Result<(), Error> {
        if blob.origin.is_some() {
            // Read the size first, so that an upstream's error is not mistaken for one of the
            // writer.
            blob.size()?;
        }
        self.0.append(blob.host())
    }

    pub(crate) fn write_parts(&mut self, parts: Vec<HostWritten<'_>>) -> Result<(), Error> {
        self.0.write_parts(parts)
    }

    /// Returns everything that was written, as a blob.
    ///
    /// # Errors
    /// Returns the host's error.
    pub fn finish(self) -> Result<Blob, Error> {
        self.0.finish().map(Blob::new)
    }
}

/// Upload that spans several requests, found by [`Repository::upload`](crate::Repository::upload).
/// Only [`Intent::append`](crate::Intent::append) adds bytes to an upload.
pub struct Upload(Box<dyn HostUpload>);

impl Upload {
    pub(crate) fn new(host: Box<dyn HostUpload>) -> Self {
        Self(host)
    }

    /// Returns the note that the plugin passed when it began the upload.
    pub fn note(&self) -> String {
        self.0.note()
    }

    /// Returns the size in bytes, including the bytes of this request.
    pub fn length(&self) -> u64 {
        self.0.length()
    }

    /// Returns how many bytes this request added.
    pub fn received(&self) -> u64 {
        self.0.received()
    }

    /// Ends the upload and returns its bytes as a blob.
    ///
    /// # Errors
    /// [`Error::Denied`] unless the action of the intent is to publish.
    pub fn finish(self) -> Result<Blob, Error> {
        self.0.finish().map(Blob::new)
    }

    /// Deletes the upload and its bytes.
    ///
    /// # Errors
    /// [`Error::Denied`] unless the intent allows writing.
    pub fn abort(self) -> Result<(), Error> {
        self.0.abort()
    }
}
