//! Blobs, writers and uploads of the SDK, which call the imports.

use super::convert;
use super::generated::packhouse::format as wit;
use crate::host::{HostBlob, HostUpload, HostWriter, HostWritten};
use crate::{Blob, Digest, Error, Failure};

/// Handle of a blob.
pub(super) struct BlobHandle(pub(super) wit::blobs::Blob);

pub(super) fn blob(handle: wit::blobs::Blob) -> Box<dyn HostBlob> {
    Box::new(BlobHandle(handle))
}

/// Returns the host's handle of a blob. In Wasm every blob has one, unless a format implements
/// [`HostBlob`] itself.
pub(super) fn handle(blob: &dyn HostBlob) -> Result<&wit::blobs::Blob, Error> {
    let blob: &dyn std::any::Any = blob;
    let handle = blob.downcast_ref::<BlobHandle>();
    handle
        .map(|handle| &handle.0)
        .ok_or_else(|| Error::Invalid("the blob does not belong to the host".to_owned()))
}

impl HostBlob for BlobHandle {
    fn size(&self) -> Result<u64, Error> {
        self.0.size().map_err(convert::error)
    }

    fn digest(&self, algorithm: &str) -> Result<Digest, Error> {
        self.0.digest(algorithm).map(Digest::trusted).map_err(convert::error)
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        self.0.read(offset, length).map_err(convert::error)
    }

    fn find(&self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>, Error> {
        self.0.find(needle, start, end).map_err(convert::error)
    }

    fn slice(&self, offset: u64, length: u64) -> Result<Box<dyn HostBlob>, Error> {
        self.0.slice(offset, length).map(blob).map_err(convert::error)
    }

    fn decode(&self, encoding: &str, limit: u64, digests: &[&str]) -> Result<Box<dyn HostBlob>, Error> {
        self.0.decode(encoding, limit, &convert::owned(digests)).map(blob).map_err(convert::error)
    }
}

pub(super) struct WriterHandle(pub(super) wit::blobs::Writer);

impl HostWriter for WriterHandle {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.0.write(bytes).map_err(convert::error)
    }

    fn append(&mut self, blob: &dyn HostBlob) -> Result<(), Error> {
        self.0.append(handle(blob)?).map_err(convert::error)
    }

    fn write_parts(&mut self, parts: Vec<HostWritten<'_>>) -> Result<(), Error> {
        let part = |part| {
            Ok(match part {
                HostWritten::Bytes(bytes) => wit::blobs::Part::Bytes(bytes),
                HostWritten::Section { of, offset, length } => {
                    wit::blobs::Part::Section(wit::blobs::Section { of: handle(of)?, offset, length })
                }
            })
        };
        let parts = parts.into_iter().map(part).collect::<Result<Vec<_>, Error>>()?;
        self.0.write_parts(&parts).map_err(convert::error)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error> {
        wit::blobs::Writer::finish(self.0).map(blob).map_err(convert::error)
    }
}

pub(super) struct UploadHandle(pub(super) wit::blobs::Upload);

impl HostUpload for UploadHandle {
    fn note(&self) -> String {
        self.0.note()
    }

    fn length(&self) -> u64 {
        self.0.length()
    }

    fn received(&self) -> u64 {
        self.0.received()
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error> {
        wit::blobs::Upload::finish(self.0).map(blob).map_err(convert::error)
    }

    fn abort(self: Box<Self>) -> Result<(), Error> {
        wit::blobs::Upload::abort(self.0).map_err(convert::error)
    }
}

/// Takes the host's handle out of a blob. In Wasm every blob has one, unless a format implements
/// [`HostBlob`] itself.
pub(super) fn into_blob(blob: Blob) -> Result<wit::blobs::Blob, Failure> {
    let host: Box<dyn std::any::Any> = blob.into_host();
    let handle = host.downcast::<BlobHandle>();
    handle
        .map(|handle| handle.0)
        .map_err(|_| Failure::internal("the blob of a response does not belong to the host"))
}
