//! Objects behind the handles of `blobs`, and byte counts of a call.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use bytes::Bytes;
use packhouse_store::{Arriving, Blob, RepositoryId, Stager, Store, StoreError, Upload};

use crate::config::Limits;
use crate::host_error::HostError;
use crate::joined::{Cut, Joined, JoinedPart};

/// Most bytes that a writer holds in memory. An index of some thousand versions fits, so the host
/// sends and stores it without a file.
const HELD_BYTES: usize = 2 << 20;
/// Most pieces that a writer holds in memory. Each piece needs additional memory.
const HELD_PIECES: usize = 4096;

/// The right to read these bytes, which may still be arriving.
pub struct BlobRep(pub(crate) BlobContent);

#[derive(Clone)]
pub enum BlobContent {
    /// All bytes are available.
    Whole(Blob),
    /// The bytes are still arriving from an upstream.
    Arriving(Arriving),
    /// A part of a memoized blob: its bytes, and their position.
    Cut(Blob, Cut),
    /// Bytes in the parts in which they were written.
    Joined(Joined),
}

impl BlobRep {
    pub(crate) fn whole(blob: Blob) -> BlobRep {
        BlobRep(BlobContent::Whole(blob))
    }

    /// Creates a handle of a memoized piece. The handle has its own blob, so that keeping the blob
    /// does not affect other calls.
    pub(crate) fn piece(of: Blob) -> BlobRep {
        let own = of.made_in_memory().map_or_else(|| of.clone(), Blob::from_bytes);
        BlobRep(BlobContent::Cut(own, Cut { of, start: 0 }))
    }

    pub(crate) fn arriving(arriving: Arriving) -> BlobRep {
        BlobRep(arriving.now().map_or(BlobContent::Arriving(arriving), BlobContent::Whole))
    }
}

/// Bytes that become a blob. They stay in memory while they are few, and are staged otherwise.
pub struct WriterRep {
    held: Vec<JoinedPart>,
    held_bytes: usize,
    staged: Option<Stager>,
    /// Most bytes that may be written.
    limit: u64,
    repository: Option<RepositoryId>,
}

impl WriterRep {
    /// Writer for at most `limit` bytes, which count as staged for this repository.
    pub(crate) fn new(limit: u64, repository: Option<RepositoryId>) -> WriterRep {
        WriterRep { held: Vec::new(), held_bytes: 0, staged: None, limit, repository }
    }

    pub(crate) async fn write(&mut self, bytes: Bytes, storage: &Store) -> Result<(), StoreError> {
        self.add(JoinedPart { bytes, cut: None }, storage).await
    }

    /// Appends bytes that may be cut from a memoized blob.
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

    /// Returns everything that was written.
    pub(crate) async fn finish(self) -> Result<BlobRep, StoreError> {
        Ok(match self.staged {
            Some(staged) => BlobRep::whole(staged.finish().await?),
            None => BlobRep(BlobContent::Joined(Joined::of(self.held))),
        })
    }
}

/// An upload of the target, and the number of its bytes that this request sent.
pub struct UploadRep {
    pub(crate) upload: Upload,
    pub(crate) received: u64,
}

/// Bytes that a call passed for storing, and bytes that were decoded for it.
#[derive(Default)]
pub(crate) struct Volume {
    written: u64,
    decoded: u64,
}

impl Volume {
    /// Counts bytes that the guest passes for storing. Returns `too-large` above the call's limit.
    pub(crate) fn count_written(&mut self, bytes: usize, limits: &Limits) -> Result<(), HostError> {
        self.written = self.written.saturating_add(bytes as u64);
        if self.written > limits.written_bytes {
            return Err(HostError::too_large(self.written));
        }
        Ok(())
    }

    /// Bytes that may still be written.
    pub(crate) fn may_write(&self, limits: &Limits) -> u64 {
        limits.written_bytes.saturating_sub(self.written)
    }

    /// Bytes that may still be decoded.
    pub(crate) fn may_decode(&self, limits: &Limits) -> u64 {
        limits.decoded_bytes.saturating_sub(self.decoded)
    }

    /// Counts bytes that the host decoded for the guest.
    pub(crate) fn count_decoded(&mut self, bytes: u64) {
        self.decoded = self.decoded.saturating_add(bytes);
    }
}
