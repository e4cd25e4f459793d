//! What stands behind the handles of `blobs`, and how many bytes a call has made.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use bytes::Bytes;
use packhouse_store::{Arriving, Blob, RepositoryId, Stager, Store, StoreError, Upload};

use crate::config::Limits;
use crate::host_error::HostError;
use crate::joined::{Cut, Joined, JoinedPart};

/// Bytes that a writer holds in memory: an index of some thousand versions is sent and kept without a file.
const HELD_BYTES: usize = 2 << 20;
/// Pieces that it holds: each costs memory of its own.
const HELD_PIECES: usize = 4096;

/// The right to read these bytes, which may still be arriving.
pub struct BlobRep(pub(crate) Content);

/// Bytes behind a handle.
#[derive(Clone)]
pub enum Content {
    /// All of them are there.
    Whole(Blob),
    /// They still come in from an upstream.
    Arriving(Arriving),
    /// A part of something that is remembered: itself, and where it lies in that.
    Cut(Blob, Cut),
    /// In the parts in which they were written.
    Joined(Joined),
}

impl BlobRep {
    pub(crate) fn whole(blob: Blob) -> BlobRep {
        BlobRep(Content::Whole(blob))
    }

    /// A piece of a document, which is in memory and remembered. The handle has a blob of its own: what becomes of that when it is kept
    /// is no matter of other calls'.
    pub(crate) fn piece(of: Blob) -> BlobRep {
        let own = of.made_in_memory().map_or_else(|| of.clone(), Blob::from_bytes);
        BlobRep(Content::Cut(own, Cut { of, start: 0 }))
    }

    pub(crate) fn arriving(arriving: Arriving) -> BlobRep {
        BlobRep(arriving.now().map_or(Content::Arriving(arriving), Content::Whole))
    }
}

/// Bytes on their way to becoming a blob: in memory while they are few, then staged.
pub struct WriterRep {
    held: Vec<JoinedPart>,
    held_bytes: usize,
    staged: Option<Stager>,
    /// Bytes of all, at most.
    limit: u64,
    repository: Option<RepositoryId>,
}

impl WriterRep {
    /// For at most `limit` bytes, which count among what is staged for this repository.
    pub(crate) fn new(limit: u64, repository: Option<RepositoryId>) -> WriterRep {
        WriterRep { held: Vec::new(), held_bytes: 0, staged: None, limit, repository }
    }

    /// Adds bytes at the end.
    pub(crate) async fn write(&mut self, bytes: Bytes, storage: &Store) -> Result<(), StoreError> {
        self.add(JoinedPart { bytes, cut: None }, storage).await
    }

    /// The same of bytes that may be cut out of others.
    pub(crate) async fn add(&mut self, part: JoinedPart, storage: &Store) -> Result<(), StoreError> {
        if part.bytes.is_empty() {
            return Ok(());
        }
        if let Some(staged) = &mut self.staged {
            return staged.write(part.bytes).await;
        }
        self.held_bytes = self.held_bytes.saturating_add(part.bytes.len());
        self.held.push(part);
        if self.held_bytes > HELD_BYTES || self.held.len() > HELD_PIECES {
            let mut staged = storage.stage(&[], self.limit).of(self.repository);
            for part in self.held.drain(..) {
                staged.write(part.bytes).await?;
            }
            self.staged = Some(staged);
        }
        Ok(())
    }

    /// All that was written.
    pub(crate) async fn finish(self) -> Result<BlobRep, StoreError> {
        Ok(match self.staged {
            Some(staged) => BlobRep::whole(staged.finish().await?),
            None => BlobRep(Content::Joined(Joined::of(self.held))),
        })
    }
}

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
