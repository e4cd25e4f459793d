//! The writer: one task that makes many commits durable at once.
//!
//! A durable transaction costs a disk flush, independent of its size. So the writer takes all
//! commits that arrived during the last flush. It evaluates them in memory, in the order of
//! arrival, as if the earlier ones were applied. The number of statements for the result does not
//! grow with the number of commits.
//!
//! The writer never waits for a lock. A repository that another process has locked gets its own
//! [`lane`](lanes), which waits while the commits to all others continue. Each statement has a time
//! limit.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tracing::Instrument as _;

use crate::blobs::row::BlobRow;
use crate::db::{Acknowledgement, Database, Failed, is_blocked, is_timeout};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::part_span;
use crate::records::Commit;

pub(crate) mod answers;
mod attempt;
mod batch;
pub(crate) mod catalog;
mod check;
pub(crate) mod events;
mod job;
mod lanes;
mod progress;
pub(crate) mod quota;
pub(crate) mod sql;
mod together;
pub(crate) mod trash;
mod unanswered;

pub(crate) use attempt::Memory;
use attempt::{BatchTarget, JobResults, attempt, probe_commit};
pub(crate) use check::checked;
pub(crate) use job::{Done, SettledRow};
use job::{Job, MAX_BYTES, MAX_JOBS, QUEUE, fail};
use lanes::Lanes;
use progress::Progress;
use unanswered::Unanswered;

/// Number of times that the writer yields before it closes a batch. The yields let clients that
/// were just answered submit again.
const YIELDS: u32 = 2;

enum Message {
    Job(Job),
    /// Finish everything before this message, and begin nothing after it.
    Stop(oneshot::Sender<()>),
}

/// Handle of the writer task.
pub(crate) struct Writer {
    queue: mpsc::Sender<Message>,
    progress: Arc<Progress>,
    unanswered: Arc<Unanswered>,
}

impl Writer {
    /// Starts the task, which ends with the last handle or with `stop`. `lease_ms` is how long a
    /// stored blob is pinned.
    pub(crate) fn start(database: Database, memory: Memory, lease_ms: i64) -> Writer {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let progress = Arc::<Progress>::default();
        let target = BatchTarget { database, memory, lease_ms, progress: Arc::clone(&progress) };
        tokio::spawn(run(Arc::new(target), jobs));
        Writer { queue, progress, unanswered: Arc::default() }
    }

    /// Number of jobs that wait for a batch.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.max_capacity() - self.queue.capacity()
    }

    /// Age of the oldest unanswered job; `None` if all are answered.
    pub(crate) fn oldest(&self) -> Option<Duration> {
        self.unanswered.oldest()
    }

    /// Finishes the submitted jobs. Later ones fail with `Unavailable`.
    pub(crate) async fn stop(&self) {
        let (done, stopped) = oneshot::channel();
        if self.queue.send(Message::Stop(done)).await.is_ok() {
            let _ = stopped.await;
        }
    }

    /// Time for which jobs or probes have been pending without any commit.
    pub(crate) fn stalled_for(&self) -> Option<Duration> {
        self.progress.stalled_for()
    }

    /// Submits a commit, or blobs alone, and waits until it is durable.
    pub(crate) async fn submit(
        &self,
        repository: RepositoryId,
        commit: Option<Arc<Commit>>,
        keeps: Vec<BlobRow>,
    ) -> Result<Done, StoreError> {
        let (done, answer) = oneshot::channel();
        let ticket = self.unanswered.begin();
        let job = Job { repository, commit, keeps, since: Instant::now(), done, _ticket: ticket };
        let closed = || StoreError::database("the store is closed");
        let began = job.since;
        self.progress.begun();
        self.queue.send(Message::Job(job)).await.map_err(|_| closed())?;
        let span = part_span!("store.commit", repository = repository.0, otel.kind = "client");
        let done = answer.instrument(span).await.map_err(|_| closed())?;
        metrics::histogram!("packhouse_store_commit_seconds").record(began.elapsed().as_secs_f64());
        done
    }
}

async fn run(target: Arc<BatchTarget>, mut queue: mpsc::Receiver<Message>) {
    let lanes = Lanes::new(&target);
    loop {
        let message = tokio::select! {
            biased;
            message = queue.recv() => message,
            () = target.progress.is_due() => {
                probe_commit(&target).await;
                continue;
            }
        };
        let Some(message) = message else { return };
        let (jobs, stop) = collect(message, &mut queue).await;
        let jobs = lanes.take_apart(lanes.take_theirs(jobs));
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

/// Collects waiting jobs, up to the bounds of a batch.
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

/// Writes a batch and answers its jobs, except those that are left to lanes. If the database
/// rejects the batch, tries the jobs one by one, so that no commit fails because of another.
async fn write(target: &BatchTarget, lanes: &Lanes, jobs: Vec<Job>) {
    metrics::histogram!("packhouse_store_batch_commits")
        .record(f64::from(u32::try_from(jobs.len()).unwrap_or(u32::MAX)));
    let waited = metrics::histogram!("packhouse_store_commit_wait_seconds");
    jobs.iter().for_each(|job| waited.record(job.since.elapsed().as_secs_f64()));
    target.progress.begun();
    match attempt(target, &jobs).await {
        Ok((answers, acknowledgement)) => {
            target.progress.committed();
            answer(jobs, answers, acknowledgement, lanes);
        }
        Err(Failed::Before(problem)) if is_blocked(&problem) || is_timeout(&problem) => {
            tracing::warn!(commits = jobs.len(), %problem, "retrying a batch of commits, each repository separately");
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

async fn write_one(target: &BatchTarget, lanes: &Lanes, job: Job) {
    match attempt(target, std::slice::from_ref(&job)).await {
        Ok((answers, acknowledgement)) => {
            target.progress.committed();
            answer(vec![job], answers, acknowledgement, lanes);
        }
        Err(Failed::Before(problem)) if is_blocked(&problem) => lanes.give(vec![job]),
        Err(Failed::Before(problem) | Failed::Commit(problem)) => fail(vec![job], &problem),
    }
}

/// True if the database rejected the statement, rather than not answering.
fn is_refusal(problem: &StoreError) -> bool {
    match problem {
        StoreError::Unavailable { source, .. } => {
            matches!(source.downcast_ref(), Some(sqlx::Error::Database(_)))
                || matches!(source.downcast_ref(), Some(rusqlite::Error::SqliteFailure(..)))
        }
        _ => true,
    }
}

fn answer(jobs: Vec<Job>, answers: JobResults, acknowledgement: Acknowledgement, lanes: &Lanes) {
    let (mut locked, mut done) = (Vec::new(), Vec::new());
    for (job, answer) in jobs.into_iter().zip(answers) {
        match answer {
            Some(answer) => done.push((job.done, answer)),
            None => locked.push(job),
        }
    }
    lanes.give_locked(locked);
    lanes.answer(done, acknowledgement);
}
