//! Bytes that are read by many while they still arrive.
//!
//! One writer, any number of readers. What has come lies in memory while it is little and else in a file without a name, which
//! readers read at their own pace: none holds up the writer or another, and memory does not grow with the size. The last piece
//! is shown to no stream before the writer has said that the whole is right.

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

/// How much lies in memory before a file is made.
const IN_MEMORY: usize = 256 * 1024;
/// How much a stream takes at a time.
const CHUNK: u32 = 256 * 1024;

/// The writing side. Dropped before it has ended, the bytes have broken off.
pub struct Arrival {
    shared: Arc<Shared>,
    stager: Option<Stager>,
    /// Whose bytes they are.
    repository: Option<RepositoryId>,
    folder: PathBuf,
}

/// The reading side: a handle to bytes that arrive, or that are all there. Cheap to clone.
#[derive(Clone)]
pub struct Arriving {
    shared: Arc<Shared>,
}

struct Shared {
    declared: Option<u64>,
    spool: Mutex<Spool>,
    progress: watch::Sender<Progress>,
}

/// Where readers find what has come.
enum Spool {
    Memory(Vec<u8>),
    File(Arc<File>),
    /// It was all there from the beginning.
    Blob(Blob),
}

#[derive(Clone, Default)]
struct Progress {
    /// Bytes that have come.
    there: u64,
    /// How many of them may be sent out.
    shown: u64,
    end: Option<End>,
}

#[derive(Clone)]
enum End {
    Whole(Blob),
    Broken(String),
    TooLarge { limit: u64, observed: u64 },
}

impl Store {
    /// Begins bytes that are read while they arrive: at most `limit`, of which `declared` are announced. Their SHA-256 and
    /// `digests` are computed on the way.
    #[must_use]
    pub fn arrive(&self, digests: &[Algorithm], limit: u64, declared: Option<u64>) -> (Arrival, Arriving) {
        let shared = Arc::new(Shared {
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
    /// The same, as bytes of this repository, counted among what is staged for it.
    #[must_use]
    pub fn of(mut self, repository: RepositoryId) -> Arrival {
        self.stager = self.stager.take().map(|stager| stager.of(Some(repository)));
        self.repository = Some(repository);
        self
    }

    /// Adds bytes at the end, for readers too. `TooLarge` past the limit, `Unavailable` when the storage failed.
    #[boxed]
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let Some(stager) = &mut self.stager else { return Err(lost()) };
        stager.write(bytes.clone()).await?;
        let offset = self.shared.progress.borrow().there;
        let length = bytes.len() as u64;
        self.spool(offset, bytes).await?;
        self.shared.progress.send_modify(|progress| {
            progress.shown = offset;
            progress.there = offset + length;
        });
        Ok(())
    }

    /// All that came, as a blob that is not kept yet; readers go on waiting for [`Arrival::end`].
    #[boxed]
    pub async fn received(&mut self) -> Result<Blob, StoreError> {
        let blob = self.stager.take().ok_or_else(lost)?.finish().await?;
        Ok(match self.repository {
            Some(repository) => blob.read_in(repository),
            None => blob,
        })
    }

    /// The bytes are right and kept: streams show the last piece, and [`Arriving::wait`] returns.
    pub fn end(self, blob: Blob) {
        self.finish(End::Whole(blob));
    }

    /// They are not: every stream breaks off before its last piece, and [`Arriving::wait`] returns the error.
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
                    progress.shown = progress.there;
                }
                progress.end = Some(end);
            }
        });
    }

    /// Takes bytes to where readers find them. What lies in memory stays there until the file holds it.
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
        self.finish(End::Broken("the bytes broke off".to_owned()));
    }
}

impl Shared {
    fn spool(&self) -> std::sync::MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that have come.
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
    /// Bytes that are all there.
    #[must_use]
    pub fn whole(blob: Blob) -> Arriving {
        let size = blob.size();
        let progress = Progress { there: size, shown: size, end: Some(End::Whole(blob.clone())) };
        let (spool, progress) = (Mutex::new(Spool::Blob(blob)), watch::Sender::new(progress));
        Arriving { shared: Arc::new(Shared { declared: Some(size), spool, progress }) }
    }

    /// Whether both are the same bytes on the same way.
    #[must_use]
    pub fn is_same(&self, other: &Arriving) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// How many bytes are announced.
    #[must_use]
    pub fn declared(&self) -> Option<u64> {
        self.shared.declared
    }

    /// The bytes, if they are all there and right by now.
    #[must_use]
    pub fn now(&self) -> Option<Blob> {
        match &self.shared.progress.borrow().end {
            Some(End::Whole(blob)) => Some(blob.clone()),
            _ => None,
        }
    }

    /// Waits for all of them. `BrokenOff` when they broke off or were not right, `TooLarge` when they were too many.
    #[boxed]
    pub async fn wait(&self) -> Result<Blob, StoreError> {
        let end = self.until(|progress| progress.end.is_some()).await?.end;
        end.ok_or_else(lost)?.blob()
    }

    /// The bytes from `offset` on, at most `length`: waits until they are there or the end is known. As [`Arriving::wait`].
    #[boxed]
    pub async fn read_at(&self, offset: u64, length: u32) -> Result<Bytes, StoreError> {
        let wanted = offset.saturating_add(length.into());
        let progress = self.until(|progress| progress.there >= wanted || progress.end.is_some()).await?;
        match progress.end {
            Some(end) => end.blob()?.read_at(offset, length).await,
            None => self.shared.read(offset, length).await,
        }
    }

    /// All bytes in the order of their coming, the last piece once they are right. Ends with its first error.
    pub fn stream(&self) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        self.stream_in(CHUNK as usize)
    }

    /// The same in pieces of at most so many bytes, where many are sent at one time.
    pub fn stream_in(&self, piece: usize) -> impl Stream<Item = Result<Bytes, StoreError>> + Send + use<> {
        let most = u32::try_from(piece).unwrap_or(CHUNK).clamp(1, CHUNK);
        stream::try_unfold((self.clone(), 0_u64), move |(arriving, at)| async move {
            let bytes = arriving.next(at, most).await?;
            let next = at + bytes.len() as u64;
            Ok((!bytes.is_empty()).then_some((bytes, (arriving, next))))
        })
        .boxed()
    }

    /// What may be sent from here on; nothing at the end.
    async fn next(&self, at: u64, most: u32) -> Result<Bytes, StoreError> {
        let progress = self.until(|progress| progress.shown > at || progress.end.is_some()).await?;
        if progress.shown > at {
            let length = u32::try_from(progress.shown - at).unwrap_or(most).min(most);
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
    StoreError::BrokenOff("the bytes are no longer written".to_owned())
}
