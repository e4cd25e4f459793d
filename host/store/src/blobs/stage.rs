//! Staging: received bytes are hashed and written as they arrive, before any record references
//! them.
//!
//! Pieces are gathered into batches without copying. While one batch is written and hashed on other
//! threads, the next one is gathered. So an upload has at most two batches in memory, and no thread
//! waits for a slow sender.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::task::TaskTracker;

use super::budget::StagingReservation;
use super::bytes::KnownSums;
use super::handle::Blob;
use super::hashing::{Hasher, Sums};
use super::sink::{Sink, join};
use super::source::Source;
use crate::boxed;
use crate::digest::{Algorithm, Sha256};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Number of bytes in a batch.
const BATCH_BYTES: usize = 512 * 1024;
/// Maximum number of pieces in a batch, however small: each piece has memory overhead.
const BATCH_PIECES: usize = 1024;

/// Pieces of a batch, shared by the hashing and the writing threads.
pub(crate) type Batch = Arc<Vec<Bytes>>;

/// Collector of pieces into batches.
#[derive(Default)]
pub(crate) struct Gatherer {
    pieces: Vec<Bytes>,
    bytes: usize,
}

impl Gatherer {
    /// Adds a piece. Returns a batch when it is full.
    pub(crate) fn add(&mut self, piece: Bytes) -> Option<Batch> {
        if piece.is_empty() {
            return None;
        }
        self.bytes += piece.len();
        self.pieces.push(piece);
        (self.bytes >= BATCH_BYTES || self.pieces.len() >= BATCH_PIECES).then(|| self.take())
    }

    /// Returns the pieces that did not fill a batch.
    pub(crate) fn take(&mut self) -> Batch {
        self.bytes = 0;
        Arc::new(std::mem::take(&mut self.pieces))
    }
}

/// Receiver of the bytes of one new blob. The bytes are discarded if the stager is dropped before
/// `finish`, or if the blob is dropped before it is stored.
pub struct Stager {
    store: Store,
    others: Vec<Algorithm>,
    limit: u64,
    received: u64,
    gathered: Gatherer,
    flow: Option<Flow>,
    reservation: StagingReservation,
}

impl Store {
    /// Begins a new blob of at most `limit` bytes. The stager computes the SHA-256 and `digests`
    /// while the bytes arrive.
    #[must_use]
    pub fn stage(&self, digests: &[Algorithm], limit: u64) -> Stager {
        let mut others: Vec<Algorithm> =
            digests.iter().copied().filter(|a| *a != Algorithm::Sha256).collect();
        others.sort_unstable();
        others.dedup();
        let (gathered, reservation) =
            (Gatherer::default(), StagingReservation::new(&self.inner.budget, None));
        Stager { store: self.clone(), others, limit, received: 0, gathered, flow: None, reservation }
    }
}

impl Stager {
    /// Counts the bytes among those staged for this repository.
    #[must_use]
    pub fn of(self, repository: Option<RepositoryId>) -> Stager {
        Stager { reservation: self.reservation.of(repository), ..self }
    }

    /// Appends bytes, and waits while earlier ones are still being written. `TooLarge` beyond the
    /// limit, `NoRoom` if too much is staged. `Unavailable` if the storage failed; the blob is then
    /// lost.
    #[boxed]
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.received = self.received.saturating_add(bytes.len() as u64);
        if self.received > self.limit {
            return Err(StoreError::TooLarge { limit: self.limit, observed: self.received });
        }
        match self.gathered.add(bytes) {
            Some(batch) => self.hand_over(batch).await,
            None => Ok(()),
        }
    }

    /// Returns all bytes as a blob that is not stored yet. `Unavailable` if the storage failed.
    #[boxed]
    pub async fn finish(mut self) -> Result<Blob, StoreError> {
        let rest = self.gathered.take();
        if self.flow.is_none() && self.received <= self.store.inner.config.inline_max {
            return Ok(in_memory(join(&rest), &self.others));
        }
        if !rest.is_empty() {
            self.hand_over(rest).await?;
        }
        match self.flow {
            Some(flow) => flow.finish(self.reservation).await,
            None => Ok(in_memory(Bytes::new(), &self.others)),
        }
    }

    async fn hand_over(&mut self, batch: Batch) -> Result<(), StoreError> {
        self.reservation.grow(batch.iter().map(|piece| piece.len() as u64).sum())?;
        let flow = match self.flow.take() {
            Some(flow) => flow.next(batch).await?,
            None => Flow::begin(&self.store, &self.others, batch).await?,
        };
        self.flow = Some(flow);
        Ok(())
    }
}

/// Creates a small blob and hashes it on the calling thread.
fn in_memory(bytes: Bytes, others: &[Algorithm]) -> Blob {
    let mut sums = Sums::default();
    sums.update(&bytes);
    let digests = others.iter().map(|algorithm| (*algorithm, Hasher::of(*algorithm, &bytes))).collect();
    blob_of(Source::Bytes(bytes), sums, digests)
}

/// Creates the blob of a source whose sums are complete.
pub(crate) fn blob_of(source: Source, sums: Sums, mut digests: BTreeMap<Algorithm, Vec<u8>>) -> Blob {
    let size = sums.length();
    let (Sha256(sha256), check) = sums.finish();
    digests.insert(Algorithm::Sha256, sha256.to_vec());
    Blob::new(source, size, KnownSums::new(Some(check), digests), None)
}

/// A blob being written: the batch in progress in each lane.
struct Flow {
    main: oneshot::Receiver<Result<Lane, StoreError>>,
    others: Vec<(Algorithm, JoinHandle<Hasher>)>,
}

/// Main lane, which writes the bytes and computes the sums that every blob has.
pub(crate) struct Lane {
    pub(crate) sink: Sink,
    pub(crate) sums: Sums,
    /// Tracker of the background work.
    pub(crate) tasks: TaskTracker,
}

impl Flow {
    async fn begin(store: &Store, others: &[Algorithm], batch: Batch) -> Result<Flow, StoreError> {
        let lane = Lane {
            sink: Sink::begin(&store.inner.storage, &store.inner.orphans).await?,
            sums: Sums::default(),
            tasks: store.inner.storage.tasks.clone(),
        };
        let hashers = others.iter().map(|algorithm| (*algorithm, Hasher::new(*algorithm))).collect();
        Ok(Flow::run(lane, hashers, &batch))
    }

    async fn next(self, batch: Batch) -> Result<Flow, StoreError> {
        let (lane, hashers) = self.wait().await?;
        Ok(Flow::run(lane, hashers, &batch))
    }

    async fn finish(self, reservation: StagingReservation) -> Result<Blob, StoreError> {
        let (lane, hashers) = self.wait().await?;
        let digests = hashers.into_iter().map(|(algorithm, hasher)| (algorithm, hasher.finish())).collect();
        let source = lane.sink.finish().await?;
        source.hold(Some(reservation));
        Ok(blob_of(source, lane.sums, digests))
    }

    fn run(lane: Lane, hashers: Vec<(Algorithm, Hasher)>, batch: &Batch) -> Flow {
        let others = hashers.into_iter().map(|(algorithm, mut hasher)| {
            let batch = Arc::clone(batch);
            let hashed = spawn_blocking(move || {
                hasher.update_all(&batch);
                hasher
            });
            (algorithm, hashed)
        });
        Flow { others: others.collect(), main: lane.add(Arc::clone(batch)) }
    }

    async fn wait(self) -> Result<(Lane, Vec<(Algorithm, Hasher)>), StoreError> {
        let lane = self.main.await.map_err(StoreError::storage)??;
        let mut hashers = Vec::with_capacity(self.others.len());
        for (algorithm, hasher) in self.others {
            hashers.push((algorithm, hasher.await.map_err(StoreError::storage)?));
        }
        Ok((lane, hashers))
    }
}

impl Lane {
    /// Writes and sums a batch on another thread. If the caller has stopped waiting, the task drops
    /// the lane. So a wait for all tasks includes the removal of the lane's bytes.
    pub(crate) fn add(self, batch: Batch) -> oneshot::Receiver<Result<Lane, StoreError>> {
        let Lane { sink, mut sums, tasks } = self;
        let tracker = tasks.clone();
        let (sender, added) = oneshot::channel();
        match sink {
            Sink::File(mut file) => drop(tracker.spawn_blocking(move || {
                sums.update_all(&batch);
                let appended = file.append(&batch).map_err(StoreError::storage);
                drop(sender.send(appended.map(|()| Lane { sink: Sink::File(file), sums, tasks })));
            })),
            Sink::Object(mut object) => drop(tracker.spawn(async move {
                let pieces = Arc::clone(&batch);
                let summed = spawn_blocking(move || {
                    sums.update_all(&pieces);
                    sums
                });
                let appended = object.append(&batch).await;
                let summed = summed.await.map_err(StoreError::storage);
                let lane = appended.and(summed).map(|sums| Lane { sink: Sink::Object(object), sums, tasks });
                drop(sender.send(lane));
            })),
        }
        added
    }
}
