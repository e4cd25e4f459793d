//! Blobs and writers of the memory host.

use crate::state::{self, Bytes};
use base64::Engine;
use packhouse_sdk::host::{HostBlob, HostWriter, HostWritten};
use packhouse_sdk::{Digest, Error};
use std::any::Any;
use std::io::Read;

/// Largest read in bytes.
const PIECE: usize = 1 << 20;
/// Longest needle in bytes.
const NEEDLE: usize = 4 << 10;
/// Bytes that a plugin may write in one call.
const WRITTEN: usize = 256 << 20;

/// Blob whose bytes are all present.
#[derive(Clone)]
pub(crate) struct MemoryBlob {
    pub(crate) bytes: Bytes,
}

impl MemoryBlob {
    pub(crate) fn new(bytes: impl Into<Bytes>) -> Self {
        Self { bytes: bytes.into() }
    }

    pub(crate) fn boxed(bytes: impl Into<Bytes>) -> Box<dyn HostBlob> {
        Box::new(Self::new(bytes))
    }
}

/// Returns a position within the bytes; a position past their end becomes their end.
fn clamp_offset(bytes: &[u8], at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len())
}

impl HostBlob for MemoryBlob {
    fn size(&self) -> Result<u64, Error> {
        Ok(self.bytes.len() as u64)
    }

    fn digest(&self, algorithm: &str) -> Result<Digest, Error> {
        state::digest(algorithm, &self.bytes)
    }

    fn read(&self, offset: u64, length: u32) -> Result<Vec<u8>, Error> {
        let start = clamp_offset(&self.bytes, offset);
        let end = clamp_offset(&self.bytes, offset.saturating_add(u64::from(length.min(PIECE as u32))));
        Ok(self.bytes.get(start..end).unwrap_or_default().to_vec())
    }

    fn find(&self, needle: &[u8], start: u64, end: u64) -> Result<Option<u64>, Error> {
        if needle.is_empty() || needle.len() > NEEDLE {
            return Err(Error::Invalid("a needle is 1 byte to 4 KiB".to_owned()));
        }
        if start > end {
            return Err(Error::Invalid("the start is past the end".to_owned()));
        }
        let (start, end) = (clamp_offset(&self.bytes, start), clamp_offset(&self.bytes, end));
        let within = self.bytes.get(start..end).unwrap_or_default();
        let found = within.windows(needle.len()).position(|window| window == needle);
        Ok(found.map(|at| (start + at) as u64))
    }

    fn slice(&self, offset: u64, length: u64) -> Result<Box<dyn HostBlob>, Error> {
        let end = offset.checked_add(length).filter(|end| *end <= self.bytes.len() as u64);
        let Some(end) = end else {
            return Err(Error::Invalid(format!("{length} bytes at {offset} do not lie within the blob")));
        };
        Ok(Self::boxed(
            self.bytes
                .get(clamp_offset(&self.bytes, offset)..clamp_offset(&self.bytes, end))
                .unwrap_or_default(),
        ))
    }

    fn decode(&self, encoding: &str, limit: u64, digests: &[&str]) -> Result<Box<dyn HostBlob>, Error> {
        digests.iter().try_for_each(|algorithm| state::digest(algorithm, b"").map(drop))?;
        let decoded = decode(&self.bytes, encoding, limit)?;
        if decoded.len() as u64 > limit {
            Err(Error::TooLarge(decoded.len() as u64))
        } else {
            Ok(Self::boxed(decoded))
        }
    }
}

/// Decodes bytes, and stops one byte after the limit. Base64 is decoded completely.
fn decode(bytes: &[u8], encoding: &str, limit: u64) -> Result<Vec<u8>, Error> {
    let invalid = |error: &dyn std::fmt::Display| Error::Invalid(format!("not {encoding}: {error}"));
    let mut decoder: Box<dyn Read> = match encoding {
        "base64" => {
            let decoded = base64::engine::general_purpose::STANDARD.decode(bytes);
            return decoded.map_err(|error| invalid(&error));
        }
        "gzip" => Box::new(flate2::read::MultiGzDecoder::new(bytes)),
        "deflate" => Box::new(flate2::read::DeflateDecoder::new(bytes)),
        "zlib" => Box::new(flate2::read::ZlibDecoder::new(bytes)),
        "zstd" => Box::new(zstd::Decoder::new(bytes).map_err(|error| invalid(&error))?),
        other => return Err(Error::Invalid(format!("unknown encoding {other:?}"))),
    };
    let mut decoded = Vec::new();
    let read = decoder.by_ref().take(limit.saturating_add(1)).read_to_end(&mut decoded);
    read.map_err(|error| invalid(&error))?;
    Ok(decoded)
}

/// Bytes that a plugin writes.
#[derive(Default)]
pub(crate) struct MemoryWriter(Vec<u8>);

impl HostWriter for MemoryWriter {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let size = self.0.len() + bytes.len();
        if size > WRITTEN {
            return Err(Error::TooLarge(size as u64));
        }
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn append(&mut self, blob: &dyn HostBlob) -> Result<(), Error> {
        let blob: &dyn Any = blob;
        let blob = blob.downcast_ref::<MemoryBlob>();
        self.write(
            &blob.ok_or_else(|| Error::Invalid("the blob does not belong to this host".to_owned()))?.bytes,
        )
    }

    fn write_parts(&mut self, parts: Vec<HostWritten<'_>>) -> Result<(), Error> {
        parts.into_iter().try_for_each(|part| match part {
            HostWritten::Bytes(bytes) => self.write(&bytes),
            HostWritten::Section { of, offset, length } => self.append(&*of.slice(offset, length)?),
        })
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn HostBlob>, Error> {
        Ok(MemoryBlob::boxed(self.0))
    }
}
