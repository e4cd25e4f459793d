//! Appends of one request to an upload. Only one request at a time may append; it holds and renews
//! a claim in the row.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::Upload;
use super::rows::{self, UploadRow};
use crate::blobs::budget::StagingReservation;
use crate::blobs::hashing::Sums;
use crate::blobs::sink::{ObjectSink, Sink};
use crate::blobs::stage::{Batch, Gatherer, Lane};
use crate::blobs::storage::{StoragePlace, blocking};
use crate::boxed;
use crate::error::StoreError;
use crate::store::Store;

/// Age at which a claim is renewed, well before another request may take it.
const RENEWED_AFTER: Duration = Duration::from_secs(rows::CLAIM.as_secs() / 3);

/// Result of starting to append to an upload.
pub enum Append {
    /// The caller may append bytes.
    Ready(Box<UploadAppender>),
    /// The given offset is not the end of the upload. Holds the upload's length.
    Elsewhere(u64),
    /// Another request is appending at the moment.
    Busy,
    /// The upload does not exist any more.
    Gone,
}

/// Appends the bytes of one request to an upload. If the appender is dropped without `finish`, the
/// bytes are discarded.
pub struct UploadAppender {
    upload: Upload,
    limit: u64,
    claim: i64,
    renewed: Instant,
    gathered: Gatherer,
    reservation: StagingReservation,
    /// State of the work; `None` only while it is finished.
    lane: Option<Work>,
}

/// A batch that is being hashed and written, or the lane that is ready for the next one.
enum Work {
    Ready(Box<Lane>),
    Running(oneshot::Receiver<Result<Lane, StoreError>>),
}

impl Work {
    async fn ready(self) -> Result<Lane, StoreError> {
        match self {
            Work::Ready(lane) => Ok(*lane),
            Work::Running(lane) => lane.await.map_err(StoreError::storage)?,
        }
    }
}

pub(super) async fn begin(upload: &Upload, offset: Option<u64>, limit: u64) -> Result<Append, StoreError> {
    let (store, name, claim) = (&upload.store, &upload.name, rows::new_claim());
    if !rows::claim(store, name, claim, offset).await? {
        return Ok(match (rows::length(store, name).await?, offset) {
            (None, _) => Append::Gone,
            (Some(length), Some(offset)) if length != offset => Append::Elsewhere(length),
            _ => Append::Busy,
        });
    }
    // From here on, dropping the appender releases the claim.
    let upload = upload.clone();
    let reservation = StagingReservation::new(&store.inner.budget, Some(upload.repository));
    let mut appender = UploadAppender {
        upload,
        reservation,
        limit,
        claim,
        renewed: Instant::now(),
        gathered: Gatherer::default(),
        lane: None,
    };
    let (own, all) = rows::open_bytes(store, appender.upload.repository).await?;
    store.inner.budget.uploads(appender.upload.repository, own, all);
    let Some(lane) = open(&appender.upload.store, &appender.upload.name, claim).await? else {
        return Ok(Append::Busy);
    };
    appender.upload.length = lane.sums.length();
    appender.lane = Some(Work::Ready(Box::new(lane)));
    Ok(Append::Ready(Box::new(appender)))
}

/// State for further writing and hashing of an upload. `None` if another request still has its file
/// open, or if the claim is lost.
pub(super) async fn open(store: &Store, name: &str, claim: i64) -> Result<Option<Lane>, StoreError> {
    let Some(UploadRow { length, state, multipart, tail, tags }) = rows::read(store, name, claim).await?
    else {
        return Ok(None);
    };
    let sums = Sums::restore(&state).filter(|sums| sums.length() == length);
    let sums =
        sums.ok_or_else(|| StoreError::Corrupt(format!("the state of the upload {name} is malformed")))?;
    let sink = match &store.inner.storage.place {
        StoragePlace::Folder(folder) => {
            let (folder, name, now) = (Arc::clone(folder), name.to_owned(), store.now());
            let Some(file) = blocking(move || folder.open_upload(&name, length, now)).await? else {
                return Ok(None);
            };
            Sink::File(file)
        }
        StoragePlace::Bucket(bucket) => {
            Sink::Object(ObjectSink::resume(&store.inner.orphans, bucket, multipart, tags, tail, length))
        }
    };
    Ok(Some(Lane { sink, sums, tasks: store.inner.storage.tasks.clone() }))
}

impl UploadAppender {
    /// Length of the upload, including bytes that were appended here.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.upload.length
    }

    /// Appends bytes; waits while earlier ones are written. `TooLarge` beyond the limit. `NoRoom`
    /// if too much is staged or held by open uploads. `Unavailable` if the database or storage
    /// failed, or another request took over.
    #[boxed]
    pub async fn write(&mut self, bytes: Bytes) -> Result<(), StoreError> {
        self.limit_to(bytes.len() as u64)?;
        if self.renewed.elapsed() > RENEWED_AFTER {
            self.renewed = Instant::now();
            if !rows::renew(&self.upload.store, &self.upload.name, self.claim).await? {
                return Err(overtaken());
            }
        }
        match self.gathered.add(bytes) {
            Some(batch) => self.hand_over(batch).await,
            None => Ok(()),
        }
    }

    /// Makes the bytes durable and returns the new state of the upload. `Unavailable` if it failed
    /// or another request took over; the upload is then unchanged.
    #[boxed]
    pub async fn finish(mut self) -> Result<Upload, StoreError> {
        let rest = self.gathered.take();
        if !rest.is_empty() {
            self.hand_over(rest).await?;
        }
        let Some(work) = self.lane.take() else { return Err(overtaken()) };
        let Lane { sink, sums, .. } = work.ready().await?;
        let (length, state) = (sums.length(), sums.save());
        let written = match sink {
            Sink::File(file) => {
                let file = blocking(move || file.sync().map(|()| file)).await?;
                let done =
                    rows::advance(&self.upload.store, &self.upload.name, self.claim, length, state, None)
                        .await;
                drop(file);
                done?
            }
            Sink::Object(mut object) => {
                let parts = object.parts();
                // If the database fails now, it is unknown whether the row names the parts.
                let was_lent = object.lend();
                let done = rows::advance(
                    &self.upload.store,
                    &self.upload.name,
                    self.claim,
                    length,
                    state,
                    Some(parts),
                )
                .await?;
                if !done && !was_lent {
                    drop(object.own());
                }
                done
            }
        };
        if !written {
            return Err(overtaken());
        }
        self.upload.store.inner.budget.upload_grew(self.upload.repository, self.reservation.bytes());
        Ok(Upload { length, ..self.upload.clone() })
    }

    fn limit_to(&mut self, more: u64) -> Result<(), StoreError> {
        self.upload.length = self.upload.length.saturating_add(more);
        let (limit, observed) = (self.limit, self.upload.length);
        if observed > limit { Err(StoreError::TooLarge { limit, observed }) } else { Ok(()) }
    }

    async fn hand_over(&mut self, batch: Batch) -> Result<(), StoreError> {
        self.reservation.grow(batch.iter().map(|piece| piece.len() as u64).sum())?;
        let Some(work) = self.lane.take() else { return Err(overtaken()) };
        self.lane = Some(Work::Running(work.ready().await?.add(batch)));
        Ok(())
    }
}

impl Drop for UploadAppender {
    fn drop(&mut self) {
        let (store, name, claim) = (self.upload.store.clone(), self.upload.name.clone(), self.claim);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let tasks = store.inner.storage.tasks.clone();
        let work = self.lane.take();
        tasks.spawn_on(
            async move {
                // The last batch must be written before another request can claim the upload.
                if let Some(work) = work {
                    drop(work.ready().await);
                }
                if let Err(error) = rows::release(&store, &name, claim).await {
                    tracing::debug!(%error, upload = name, "could not release a claim; it expires by itself");
                }
            },
            &runtime,
        );
    }
}

fn overtaken() -> StoreError {
    StoreError::storage("another request took over the upload")
}
