//! What stands behind the handles of `blobs`, and how many bytes a call has made.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use packhouse_store::{Arriving, Blob, Stager, Upload};

use crate::config::Limits;
use crate::host_error::HostError;

/// The right to read these bytes, which may still be arriving.
pub struct BlobRep(pub(crate) Content);

/// Bytes behind a handle.
#[derive(Clone)]
pub enum Content {
    /// All of them are there.
    Whole(Blob),
    /// They still come in from an upstream.
    Arriving(Arriving),
}

impl BlobRep {
    pub(crate) fn whole(blob: Blob) -> BlobRep {
        BlobRep(Content::Whole(blob))
    }

    pub(crate) fn arriving(arriving: Arriving) -> BlobRep {
        BlobRep(arriving.now().map_or(Content::Arriving(arriving), Content::Whole))
    }
}

/// Bytes on their way to becoming a blob.
pub struct WriterRep(pub(crate) Stager);

/// An upload of the target, and how much of it this request brought.
pub struct UploadRep {
    pub(crate) upload: Upload,
    pub(crate) received: u64,
}

/// How many bytes a call handed over for keeping, and how many were decoded for it.
#[derive(Default)]
pub(crate) struct Volume {
    written: u64,
    decoded: u64,
}

impl Volume {
    /// Counts bytes that the guest hands over for keeping; `too-large` past the call's limit.
    pub(crate) fn count_written(&mut self, bytes: usize, limits: &Limits) -> Result<(), HostError> {
        self.written = self.written.saturating_add(bytes as u64);
        if self.written > limits.written_bytes {
            return Err(HostError::too_large(self.written));
        }
        Ok(())
    }

    /// What may still be written.
    pub(crate) fn may_write(&self, limits: &Limits) -> u64 {
        limits.written_bytes.saturating_sub(self.written)
    }

    /// What may still be decoded.
    pub(crate) fn may_decode(&self, limits: &Limits) -> u64 {
        limits.decoded_bytes.saturating_sub(self.decoded)
    }

    /// Counts bytes that the host decoded for the guest.
    pub(crate) fn count_decoded(&mut self, bytes: u64) {
        self.decoded = self.decoded.saturating_add(bytes);
    }
}
