//! Commits: handed to one task, which makes many of them durable at once.
//!
//! A durable transaction costs a flush of the disk, whatever is in it. So the writer takes all that has come in while the last
//! one was flushed, judges each in the order of arrival, in memory, as if those before it were applied, and writes the result
//! with a number of statements that does not grow with the number of commits.
//!
//! The writer waits for nobody's lock. A repository that another process has locked is left to a [`lane`](lanes) of its own,
//! which waits, while the commits to all others go on; and no statement waits longer than its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use crate::accounts::Snapshots;
use crate::blobs::Blob;
use crate::blobs::row::{BlobRow, Place};
use crate::db::{Database, Patience, Purpose, is_blocked, is_retryable, is_silent};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::records::{Commit, Outcome};
use crate::store::Store;

mod batch;
mod catalog;
mod check;
mod lanes;
mod progress;
pub(crate) mod sql;

use batch::Batch;
pub(crate) use batch::Revisions;
use lanes::Lanes;
use progress::Progress;

/// Most jobs in one transaction.
const MAX_JOBS: usize = 256;
/// A batch is closed once it has as many bytes.
const MAX_BYTES: usize = 16 << 20;
/// How many jobs may wait; whoever comes then waits before the queue.
const QUEUE: usize = 1024;
/// How often a transaction is run again that another process stood in the way of.
const ATTEMPTS: u32 = 8;
/// How often the writer lets others go first before it closes a batch: those it just answered come again.
const YIELDS: u32 = 2;

/// One commit, or blobs to be kept.
struct Job {
    repository: RepositoryId,
    /// None: nothing but `keeps`.
    commit: Option<Commit>,
    keeps: Vec<BlobRow>,
    /// When it was handed in.
    since: Instant,
    done: oneshot::Sender<Result<Done, StoreError>>,
}

impl Job {
    /// About as many bytes as it brings into the transaction.
    fn bytes(&self) -> usize {
        let inline = |row: &BlobRow| match &row.place {
            Place::Inline(bytes) => bytes.len(),
            Place::Stored(_) => 0,
        };
        let blobs: usize = self.keeps.iter().map(inline).sum();
        blobs + self.commit.as_ref().map_or(0, check::bytes)
    }
}

/// What became of a job.
struct Done {
    /// None when there was no commit in it.
    outcome: Option<Outcome>,
    /// For each kept blob, which row it now is: its own or that of the same bytes that was there before.
    rows: Vec<i64>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "nearly every message is a job: a box would cost each publish an allocation"
)]
enum Message {
    Job(Job),
    /// Everything before it is to be finished, and nothing after it begun.
    Stop(oneshot::Sender<()>),
}

/// The way to the writing task.
pub(crate) struct Writer {
    queue: mpsc::Sender<Message>,
    progress: Arc<Progress>,
}

impl Writer {
    /// Starts the task, which ends with the last handle, or when it is told to. `lease_ms` is how long a kept blob is held.
    pub(crate) fn start(database: Database, snapshots: Arc<Snapshots>, lease_ms: i64) -> Writer {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let progress = Arc::<Progress>::default();
        let target = Target { database, snapshots, lease_ms, progress: Arc::clone(&progress) };
        tokio::spawn(run(Arc::new(target), jobs));
        Writer { queue, progress }
    }

    /// How many jobs wait to be taken into a batch.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Finishes what was handed in. Later jobs are `Unavailable`.
    pub(crate) async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.queue.send(Message::Stop(done)).await.is_ok() {
            let _ = stopped.await;
        }
    }

    /// For how long something was handed in, or tried, and nothing was committed.
    pub(crate) fn stalled_for(&self) -> Option<Duration> {
        self.progress.stalled_for()
    }

    async fn submit(
        &self,
        repository: RepositoryId,
        commit: Option<Commit>,
        keeps: Vec<BlobRow>,
    ) -> Result<Done, StoreError> {
        let (done, answer) = oneshot::channel();
        let job = Job { repository, commit, keeps, since: Instant::now(), done };
        let closed = || StoreError::database("the store is closed");
        self.progress.begun();
        self.queue.send(Message::Job(job)).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }
}

/// What a batch is written to.
struct Target {
    database: Database,
    /// Answers that stay good through a commit of records.
    snapshots: Arc<Snapshots>,
    lease_ms: i64,
    progress: Arc<Progress>,
}

async fn run(target: Arc<Target>, mut queue: mpsc::Receiver<Message>) {
    let lanes = Lanes::new(&target);
    loop {
        let message = tokio::select! {
            biased;
            message = queue.recv() => message,
            () = target.progress.is_due() => {
                try_out(&target).await;
                continue;
            }
        };
        let Some(message) = message else { return };
        let (jobs, stop) = collect(message, &mut queue).await;
        let jobs = lanes.take_theirs(jobs);
        if !jobs.is_empty() {
            write(&target, &lanes, jobs).await;
        }
        if let Some(stopped) = stop {
            lanes.finish().await;
            queue.close();
            drop(queue);
            let _ = stopped.send(());
            return;
        }
    }
}

/// Commits a change that changes nothing, so that a failure that is over is known to be over though nobody publishes.
async fn try_out(target: &Target) {
    target.progress.tried();
    let sql = "UPDATE migrations SET applied_at = applied_at WHERE step = 1";
    let tried = async {
        let mut transaction = target.database.begin_for(Purpose::Commit, Patience::Ordinary).await?;
        if transaction.is_shared() {
            // As every commit has them.
            let tables = "repositories, records, record_blobs, blobs, leases, packages, versions, files";
            transaction.execute(format!("LOCK TABLE {tables} IN ROW EXCLUSIVE MODE"), vec![]).await?;
        }
        transaction.execute(sql, vec![]).await?;
        transaction.commit().await
    };
    match tried.await {
        Ok(()) => target.progress.committed(),
        Err(problem) => tracing::warn!(%problem, "nothing can be committed"),
    }
}

/// What waits, up to the bounds of a batch.
async fn collect(
    first: Message,
    queue: &mut mpsc::Receiver<Message>,
) -> (Vec<Job>, Option<oneshot::Sender<()>>) {
    let mut jobs = Vec::new();
    let mut bytes = 0;
    let mut next = Some(first);
    let mut yields = 0;
    loop {
        match next {
            Some(Message::Job(job)) => {
                bytes += job.bytes();
                jobs.push(job);
            }
            Some(Message::Stop(stopped)) => return (jobs, Some(stopped)),
            None if yields < YIELDS => {
                yields += 1;
                tokio::task::yield_now().await;
            }
            None => return (jobs, None),
        }
        if jobs.len() >= MAX_JOBS || bytes >= MAX_BYTES {
            return (jobs, None);
        }
        next = queue.try_recv().ok();
    }
}

/// Writes a batch and answers all, but for those that are left to lanes. What the database refuses as a whole is tried one by
/// one, so that no commit fails for another's sake.
async fn write(target: &Target, lanes: &Lanes, jobs: Vec<Job>) {
    metrics::histogram!("packhouse_store_batch_commits")
        .record(f64::from(u32::try_from(jobs.len()).unwrap_or(u32::MAX)));
    target.progress.begun();
    match attempt(target, &jobs, Waiting::No).await {
        Ok(answers) => {
            target.progress.committed();
            answer(jobs, answers, lanes);
        }
        Err(Failed::Before(problem)) if is_blocked(&problem) || is_silent(&problem) => {
            tracing::warn!(commits = jobs.len(), %problem, "a batch of commits is tried again, each repository alone");
            lanes.give(jobs);
        }
        Err(Failed::Before(problem)) if jobs.len() > 1 && is_refusal(&problem) => {
            for job in jobs {
                write_one(target, lanes, job).await;
            }
        }
        Err(Failed::Before(problem) | Failed::Commit(problem)) => fail(jobs, &problem),
    }
}

async fn write_one(target: &Target, lanes: &Lanes, job: Job) {
    match attempt(target, std::slice::from_ref(&job), Waiting::No).await {
        Ok(answers) => {
            target.progress.committed();
            answer(vec![job], answers, lanes);
        }
        Err(Failed::Before(problem)) if is_blocked(&problem) => lanes.give(vec![job]),
        Err(Failed::Before(problem) | Failed::Commit(problem)) => fail(vec![job], &problem),
    }
}

/// Whether a repository that is locked is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    /// Its jobs are left out.
    No,
    /// As long as a statement may wait for a lock.
    Yes,
}

/// What was not written.
enum Failed {
    /// Nothing of it is: it never came to the commit.
    Before(StoreError),
    /// It is not known whether it is.
    Commit(StoreError),
}

/// What became of each job; none: its repository is locked.
type Answers = Vec<Option<Result<Done, StoreError>>>;

async fn attempt(target: &Target, jobs: &[Job], waiting: Waiting) -> Result<Answers, Failed> {
    let mut attempts = 1;
    loop {
        match transact(target, jobs, waiting).await {
            Err(Failed::Before(problem) | Failed::Commit(problem))
                if attempts < ATTEMPTS && is_retryable(&problem) =>
            {
                attempts += 1;
            }
            done => return done,
        }
    }
}

async fn transact(target: &Target, jobs: &[Job], waiting: Waiting) -> Result<Answers, Failed> {
    let Target { database, snapshots, lease_ms, .. } = target;
    let begun = database.begin_for(Purpose::Commit, Patience::Ordinary).await;
    let mut transaction = begun.map_err(Failed::Before)?;
    let before = database.generation();
    let read = Batch::read(&mut transaction, jobs, waiting).await;
    let mut batch = read.map_err(Failed::Before)?;
    let answers = jobs.iter().map(|job| batch.judge(job)).collect();
    if batch.changes_anything() {
        let bumped = batch.bumped();
        let changes = batch.changes(*lease_ms, database.now_ms()).map_err(Failed::Before)?;
        transaction.execute_each(changes).await.map_err(Failed::Before)?;
        transaction.commit().await.map_err(Failed::Commit)?;
        if let (Some(before), Some(after)) = (before, database.generation()) {
            snapshots.carry(before, after, &bumped);
        }
    }
    Ok(answers)
}

/// Whether the database answered and said no, rather than not answering.
fn is_refusal(problem: &StoreError) -> bool {
    match problem {
        StoreError::Unavailable { source, .. } => {
            matches!(source.downcast_ref::<sqlx::Error>(), Some(sqlx::Error::Database(_)))
        }
        _ => true,
    }
}

fn answer(jobs: Vec<Job>, answers: Answers, lanes: &Lanes) {
    let mut locked = Vec::new();
    for (job, answer) in jobs.into_iter().zip(answers) {
        match answer {
            // Whoever asked may have gone away.
            Some(answer) => drop(job.done.send(answer)),
            None => locked.push(job),
        }
    }
    lanes.give(locked);
}

fn fail(jobs: Vec<Job>, problem: &StoreError) {
    tracing::warn!(commits = jobs.len(), %problem, "a batch of commits could not be written");
    for job in jobs {
        let _ = job.done.send(Err(StoreError::database(problem.to_string())));
    }
}

impl Store {
    /// Applies a commit, all of it or nothing, durably. `Invalid` when it is beyond the limits or the repository is not there,
    /// `Unavailable` when it is not known whether it is applied.
    pub async fn commit(&self, repository: RepositoryId, commit: Commit) -> Result<Outcome, StoreError> {
        let mut commit = check::checked(commit)?;
        let keeps = std::mem::take(&mut commit.keeps);
        let rows = self.settle(&keeps).await?;
        let done = self.inner.writer.submit(repository, Some(commit), rows).await?;
        settled(self, &keeps, &done);
        done.outcome.ok_or_else(|| StoreError::Corrupt("a commit without an outcome".to_owned()))
    }

    /// Makes blobs durable and holds them in this repository for the time of grace. From a blob that another repository holds
    /// nothing is copied. `Invalid` when the repository is not there, or a blob no longer is.
    pub async fn keep(&self, repository: RepositoryId, blobs: &[Blob]) -> Result<(), StoreError> {
        if blobs.is_empty() {
            return Ok(());
        }
        let rows = self.settle(blobs).await?;
        let done = self.inner.writer.submit(repository, None, rows).await?;
        settled(self, blobs, &done);
        Ok(())
    }

    async fn settle(&self, blobs: &[Blob]) -> Result<Vec<BlobRow>, StoreError> {
        let mut rows = Vec::with_capacity(blobs.len());
        for blob in blobs {
            rows.push(blob.settle(self).await?);
        }
        Ok(rows)
    }
}

fn settled(store: &Store, blobs: &[Blob], done: &Done) {
    for (blob, row) in blobs.iter().zip(&done.rows) {
        blob.settled(store, *row);
    }
}
