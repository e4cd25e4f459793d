//! Bytes that many readers can read before all of them have arrived.
//!
//! There is one writer and any number of readers. A small amount of received bytes stays in memory,
//! a larger one goes to an unnamed file. Every reader reads that file at its own pace. No reader
//! delays the writer or another reader, and memory use does not grow with the size. Streams get the
//! last piece only after the writer has confirmed that all bytes are correct.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::stream::{self, Stream, StreamExt as _};
use tokio::sync::watch;

use super::handle::Blob;
use super::stage::Stager;
use super::storage::blocking;
use crate::boxed;
use crate::digest::Algorithm;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Bytes kept in memory before a file is created.
const IN_MEMORY: usize = 256 * 1024;
/// Maximum size of a piece of a stream.
const CHUNK: u32 = 256 * 1024;

/// Writing side of a transfer. Dropping it before its end aborts the transfer.
pub struct Arrival {
    shared: Arc<TransferState>,
    stager: Option<Stager>,
    /// Repository for which the bytes are staged.
    repository: Option<RepositoryId>,
    folder: PathBuf,
}

/// Reading side: a handle to bytes that are arriving or complete. Cheap to clone.
#[derive(Clone)]
pub struct Arriving {
    shared: Arc<TransferState>,
}

struct TransferState {
    declared: Option<u64>,
    spool: Mutex<Spool>,
    progress: watch::Sender<Progress>,
}

/// Place where readers find the received bytes.
enum Spool {
    Memory(Vec<u8>),
    File(Arc<File>),
    /// All bytes, which were complete from the beginning.
    Blob(Blob),
}

#[derive(Clone, Default)]
struct Progress {
    /// Number of bytes received so far.
    received: u64,
    /// Number of bytes that streams may send.
    released: u64,
    end: Option<End>,
}

#[derive(Clone)]
enum End {
    Whole(Blob),
    Broken(String),
    TooLarge { limit: u64, observed: u64 },
}

impl Store {
    /// Begins a transfer of at most `limit` bytes, of which `declared` are announced. The SHA-256
    /// and `digests` are computed while the bytes arrive.
    #[must_use]
    pub fn arrive(&self, digests: &[Algorithm], limit: u64, declared: Option<u64>) -> (Arrival, Arriving) {
        let shared = Arc::new(TransferState {
            declared,
            spool: Mutex::new(Spool::Memory(Vec::new())),
            progress: watch::Sender::default(),
        });
        let stager = Some(self.stage(digests, limit));
        let folder = self.inner.config.data.clone();
        let arrival = Arrival { shared: Arc::clone(&shared), stager, repository: None, folder };
        (arrival, Arriving { shared })
    }
}

impl Arrival {
    /// Counts the bytes among those staged for this repository.
    #[must_use]
    pub fn of(mut self, repository: RepositoryId) -> Arrival {
        self.stager = self.stager.take().map(|stager| stager.of(Some(repository)));
        self.repository = Some(repository);
        self
    }

    /// Appends bytes and makes them visible to readers. `TooLarge` beyond the limit, `Unavailable`
    /// if the storage failed.
    #[boxed]
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(stager) = &mut self.stager else { return Err(lost()) };
        stager.write(bytes.clone()).await?;
        let offset = self.shared.progress.borrow().received;
        let length = bytes.len() as u64;
        self.spool(offset, bytes).await?;
        self.shared.progress.send_modify(|progress| {
            progress.released = offset;
            progress.received = offset + length;
        });
        Ok(())
    }

    /// Returns all received bytes as a blob that is not stored yet. Readers continue to wait for
    /// [`Arrival::end`].
    #[boxed]
    pub async fn received(&mut self) -> Result<Blob, StoreError> {
        let blob = self.stager.take().ok_or_else(lost)?.finish().await?;
        Ok(match self.repository {
            Some(repository) => blob.read_in(repository),
            None => blob,
        })
    }

    /// Confirms that the bytes are correct and stored. Streams send the last piece, and
    /// [`Arriving::wait`] returns.
    pub fn end(self, blob: Blob) {
        self.finish(End::Whole(blob));
    }

    /// Aborts the transfer. Every stream breaks off before its last piece, and [`Arriving::wait`]
    /// returns the error.
    pub fn fail(self, error: &StoreError) {
        self.finish(match error {
            StoreError::TooLarge { limit, observed } => End::TooLarge { limit: *limit, observed: *observed },
            other => End::Broken(other.to_string()),
        });
    }

    fn finish(&self, end: End) {
        self.shared.progress.send_modify(|progress| {
            if progress.end.is_none() {
                if matches!(end, End::Whole(_)) {
                    progress.released = progress.received;
                }
                progress.end = Some(end);
            }
        });
    }

    /// Writes bytes to the place from which readers read. Bytes in memory stay there until the file
    /// has them.
    async fn spool(&self, offset: u64, bytes: Bytes) -> Result<(), StoreError> {
        let before = match &mut *self.shared.spool() {
            Spool::Memory(memory) if memory.len() + bytes.len() <= IN_MEMORY => {
                memory.extend_from_slice(&bytes);
                return Ok(());
            }
            Spool::Memory(memory) => Ok(memory.clone()),
            Spool::File(file) => Err(Arc::clone(file)),
            Spool::Blob(_) => return Err(lost()),
        };
        let folder = self.folder.clone();
        let file = blocking(move || {
            let file = match before {
                Ok(before) => {
                    let file = tempfile::tempfile_in(folder)?;
                    file.write_all_at(&before, 0)?;
                    Arc::new(file)
                }
                Err(file) => file,
            };
            file.write_all_at(&bytes, offset)?;
            Ok(file)
        });
        *self.shared.spool() = Spool::File(file.await?);
        Ok(())
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        self.finish(End::Broken("the transfer broke off".to_owned()));
    }
}

impl TransferState {
    fn spool(&self) -> std::sync::MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a range of the received bytes.
    async fn read(&self, offset: u64, length: u32) -> Result<Bytes, StoreError> {
        let from = match &*self.spool() {
            Spool::Memory(memory) => {
                let start = usize::try_from(offset).unwrap_or(usize::MAX).min(memory.len());
                let end = start.saturating_add(length as usize).min(memory.len());
                return Ok(Bytes::copy_from_slice(memory.get(start..end).unwrap_or_default()));
            }
            Spool::File(file) => Ok(Arc::clone(file)),
            Spool::Blob(blob) => Err(blob.clone()),
        };
        let file = match from {
            Ok(file) => file,
            Err(blob) => return blob.read_at(offset, length).await,
        };
        blocking(move || {
            let mut bytes = vec![0; length as usize];
            file.read_exact_at(&mut bytes, offset)?;
            Ok(Bytes::from(bytes))
        })
        .await
    }
}

impl Arriving {
    /// Creates a handle to bytes that are already complete.
    #[must_use]
    pub fn whole(blob: Blob) -> Arriving {
        let size = blob.size();
        let progress = Progress { received: size, released: size, end: Some(End::Whole(blob.clone())) };
        let (spool, progress) = (Mutex::new(Spool::Blob(blob)), watch::Sender::new(progress));
        Arriving { shared: Arc::new(TransferState { declared: Some(size), spool, progress }) }
    }

    /// Returns whether both are handles to the same transfer.
    #[must_use]
    pub fn is_same(&self, other: &Arriving) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Returns the announced number of bytes.
    #[must_use]
    pub fn declared(&self) -> Option<u64> {
        self.shared.declared
    }

    /// Returns the blob if the transfer has ended and is correct.
    #[must_use]
    pub fn now(&self) -> Option<Blob> {
        match &self.shared.progress.borrow().end {
            Some(End::Whole(blob)) => Some(blob.clone()),
            _ => None,
        }
    }

    /// Waits for all bytes. `BrokenOff` if the transfer was aborted or the bytes are wrong,
    /// `TooLarge` if there are too many.
    #[boxed]
    pub async fn wait(&self) -> Result<Blob, StoreError> {
        let end = self.until(|progress| progress.end.is_some()).await?.end;
        end.ok_or_else(lost)?.blob()
    }

    /// Returns at most `length` bytes from `offset` on, once they have arrived or the end is known.
    /// Errors as for [`Arriving::wait`].
    #[boxed]
    pub async fn read_at(&self, offset: u64, length: u32) -> Result<Bytes, StoreError> {
        let end = offset.saturating_add(length.into());
        let progress = self.until(|progress| progress.received >= end || progress.end.is_some()).await?;
        match progress.end {
            Some(end) => end.blob()?.read_at(offset, length).await,
            None => self.shared.read(offset, length).await,
        }
    }

    /// Streams all bytes in order; sends the last piece once the writer has confirmed the bytes.
    /// Ends at the first error.
    pub fn stream(&self) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        self.stream_in(CHUNK as usize)
    }

    /// Streams all bytes in pieces of at most this size. Use small pieces if the server sends many
    /// responses at a time.
    pub fn stream_in(&self, piece: usize) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        let most = u32::try_from(piece).unwrap_or(CHUNK).clamp(1, CHUNK);
        stream::try_unfold((self.clone(), 0_u64), move |(arriving, at)| async move {
            let bytes = arriving.next(at, most).await?;
            let next = at + bytes.len() as u64;
            Ok((!bytes.is_empty()).then_some((bytes, (arriving, next))))
        })
        .boxed()
    }

    /// Returns the next bytes that may be sent; nothing at the end.
    async fn next(&self, at: u64, most: u32) -> Result<Bytes, StoreError> {
        let progress = self.until(|progress| progress.released > at || progress.end.is_some()).await?;
        if progress.released > at {
            let length = u32::try_from(progress.released - at).unwrap_or(most).min(most);
            return self.shared.read(at, length).await;
        }
        progress.end.ok_or_else(lost)?.blob().map(|_| Bytes::new())
    }

    async fn until(&self, enough: impl FnMut(&Progress) -> bool) -> Result<Progress, StoreError> {
        let mut progress = self.shared.progress.subscribe();
        // The sender lives as long as this handle.
        progress.wait_for(enough).await.map(|progress| progress.clone()).map_err(|_| lost())
    }
}

impl End {
    fn blob(self) -> Result<Blob, StoreError> {
        match self {
            End::Whole(blob) => Ok(blob),
            End::Broken(why) => Err(StoreError::BrokenOff(why)),
            End::TooLarge { limit, observed } => Err(StoreError::TooLarge { limit, observed }),
        }
    }
}

fn lost() -> StoreError {
    StoreError::BrokenOff("the transfer was abandoned".to_owned())
}
