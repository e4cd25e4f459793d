//! Lanes: queues of individual repositories. Commits to a repository that another process has
//! locked wait here, while the writer continues with all others. Commits that cannot share a
//! transaction with earlier commits wait here too.
//!
//! A lane begins with its first job and ends when it is empty. Meanwhile, all jobs of its
//! repository go through the lane, so that they keep their order.
//!
//! The lane waits for the lock in the database's own queue, which is fair to all servers. Then it
//! takes all jobs that have arrived meanwhile. Servers that publish into one repository thus write
//! batches as large as a single server would.
//!
//! If the database stops waiting for the lock, the jobs that were submitted before the wait fail.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};
use tokio_util::task::TaskTracker;

use super::attempt::{BatchTarget, Begun, attempt_within};
use super::job::{Done, Job, MAX_BYTES, MAX_JOBS, QUEUE, fail};
use super::together::Together;
use crate::db::{Acknowledgement, Failed, is_timeout};
use crate::error::StoreError;
use crate::ids::RepositoryId;

/// Time for which a repository's commits use a lane after another process had it locked. That
/// process will likely lock the repository again, and an attempt that finds the lock wastes its
/// reads.
const CONTENDED: Duration = Duration::from_secs(1);

/// Maximum lanes with a connection at one time: one fewer than the writer and the lanes have
/// together.
const AT_ONCE: usize = 3;

/// A result and its receiver.
pub(super) type JobAnswer = (oneshot::Sender<Result<Done, StoreError>>, Result<Done, StoreError>);

/// Lanes of all repositories. Cheap to clone.
#[derive(Clone)]
pub(super) struct Lanes {
    target: Arc<BatchTarget>,
    /// Waiting jobs. A repository has an entry as long as its lane exists.
    waiting: Arc<Mutex<HashMap<RepositoryId, VecDeque<Job>>>>,
    /// Repositories that another process recently had locked, with the time. Old entries are
    /// removed.
    contended: Arc<Mutex<HashMap<RepositoryId, Instant>>>,
    turns: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Lanes {
    pub(super) fn new(target: &Arc<BatchTarget>) -> Lanes {
        Lanes {
            target: Arc::clone(target),
            waiting: Arc::default(),
            contended: Arc::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            tasks: TaskTracker::new(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<RepositoryId, VecDeque<Job>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn contended(&self) -> MutexGuard<'_, HashMap<RepositoryId, Instant>> {
        self.contended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the jobs of repositories with a lane or with a recent lock, and returns the others.
    /// Leaves contended repositories to the writer if there are many, because one batch for all is
    /// faster than many lanes.
    pub(super) fn take_theirs(&self, jobs: Vec<Job>) -> Vec<Job> {
        let mut contended = self.contended();
        contended.retain(|_, since| since.elapsed() < CONTENDED);
        if contended.len() > AT_ONCE {
            contended.clear();
        }
        let waiting = self.waiting();
        if waiting.is_empty() && contended.is_empty() {
            return jobs;
        }
        let is_theirs =
            |job: &Job| waiting.contains_key(&job.repository) || contended.contains_key(&job.repository);
        let (theirs, others): (Vec<Job>, Vec<Job>) = jobs.into_iter().partition(is_theirs);
        drop((waiting, contended));
        self.give(theirs);
        others
    }

    /// Moves jobs of locked repositories to their lanes.
    pub(super) fn give_locked(&self, jobs: Vec<Job>) {
        if !jobs.is_empty() {
            let now = Instant::now();
            self.contended().extend(jobs.iter().map(|job| (job.repository, now)));
        }
        self.give(jobs);
    }

    /// Takes all jobs of repositories with a job that cannot share the batch, and returns the
    /// others.
    pub(super) fn take_apart(&self, jobs: Vec<Job>) -> Vec<Job> {
        if !jobs.iter().any(Job::is_into_trash) {
            return jobs;
        }
        let mut together = Together::default();
        let apart: HashSet<RepositoryId> =
            jobs.iter().filter(|job| !together.admits(job)).map(|job| job.repository).collect();
        let (theirs, others): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| apart.contains(&job.repository));
        self.give(theirs);
        others
    }

    /// Adds jobs to the lanes of their repositories, which are started if necessary.
    pub(super) fn give(&self, jobs: Vec<Job>) {
        for job in jobs {
            let repository = job.repository;
            let mut waiting = self.waiting();
            let begins = !waiting.contains_key(&repository);
            let lane = waiting.entry(repository).or_default();
            if lane.len() >= QUEUE {
                drop(waiting);
                fail(vec![job], &locked());
                continue;
            }
            lane.push_back(job);
            drop(waiting);
            if begins {
                let lanes = self.clone();
                self.tasks.spawn(async move { lanes.run(repository).await });
            }
        }
    }

    /// Waits until all lanes are empty.
    pub(super) async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// Sends results once no server answers from the state before them. Does not delay the next
    /// batches.
    pub(super) fn answer(&self, done: Vec<JobAnswer>, acknowledgement: Acknowledgement) {
        // The caller may have stopped waiting.
        let answer = |done: Vec<JobAnswer>| done.into_iter().for_each(|(to, answer)| drop(to.send(answer)));
        if acknowledgement.is_at_once() {
            return answer(done);
        }
        self.tasks.spawn(async move {
            acknowledgement.wait().await;
            answer(done);
        });
    }

    async fn run(&self, repository: RepositoryId) {
        // The semaphore is never closed.
        while let Ok(turn) = self.turns.acquire().await {
            if self.ends(repository) {
                return;
            }
            let began = Instant::now();
            match self.lock(repository).await {
                Ok(begun) => self.write(repository, begun).await,
                Err(problem) => fail(self.since_before(repository, began), &problem),
            }
            // Gives the turn to other lanes that wait for one.
            drop(turn);
        }
    }

    /// Removes the lane if it has no more jobs; returns true then.
    fn ends(&self, repository: RepositoryId) -> bool {
        let mut waiting = self.waiting();
        let is_empty = waiting.get(&repository).is_none_or(VecDeque::is_empty);
        if is_empty {
            waiting.remove(&repository);
        }
        is_empty
    }

    /// Takes the jobs that were submitted before this moment.
    fn since_before(&self, repository: RepositoryId, moment: Instant) -> Vec<Job> {
        let mut waiting = self.waiting();
        let Some(lane) = waiting.get_mut(&repository) else { return Vec::new() };
        let (before, after) = lane.drain(..).partition(|job| job.since < moment);
        *lane = after;
        before.into()
    }

    async fn lock(&self, repository: RepositoryId) -> Result<Begun, StoreError> {
        match Begun::with(&self.target, repository).await {
            // The pool does not use the silent connection again, so try once more with another.
            Err(problem) if is_timeout(&problem) => Begun::with(&self.target, repository).await,
            begun => begun,
        }
    }

    /// Returns the jobs of the next batch, and those that have waited too long.
    fn next(&self, repository: RepositoryId) -> (Vec<Job>, Vec<Job>) {
        let (patience, mut bytes, mut together) = (self.patience(), 0, Together::default());
        let (mut jobs, mut late) = (Vec::new(), Vec::new());
        let mut waiting = self.waiting();
        let Some(lane) = waiting.get_mut(&repository) else { return (jobs, late) };
        while jobs.len() < MAX_JOBS
            && bytes < MAX_BYTES
            && let Some(job) = lane.pop_front()
        {
            if job.since.elapsed() > patience {
                late.push(job);
            } else if !together.admits(&job) {
                lane.push_front(job);
                break;
            } else {
                bytes += job.bytes();
                jobs.push(job);
            }
        }
        (jobs, late)
    }

    /// Maximum age at which a job is still started. It allows for one silent connection and for the
    /// turns of other lanes.
    fn patience(&self) -> Duration {
        let limits = self.target.database.limits();
        limits.deadline() + limits.lock * 2
    }

    /// Writes the waiting jobs once the repository is locked, including those that arrived during
    /// the wait.
    async fn write(&self, repository: RepositoryId, begun: Begun) {
        let (jobs, late) = self.next(repository);
        if !late.is_empty() {
            fail(late, &locked());
        }
        if jobs.is_empty() {
            return;
        }
        let mut begun = Some(begun);
        let mut again = true;
        loop {
            match attempt_within(&self.target, repository, begun.take(), &jobs).await {
                Ok((answers, acknowledgement)) => {
                    let answered = jobs.into_iter().zip(answers);
                    let done =
                        answered.map(|(job, answer)| (job.done, answer.unwrap_or_else(|| Err(locked()))));
                    return self.answer(done.collect(), acknowledgement);
                }
                // The pool does not use the silent connection again, so try another one.
                Err(Failed::Before(problem)) if again && is_timeout(&problem) => again = false,
                Err(Failed::Before(problem) | Failed::Commit(problem)) => return fail(jobs, &problem),
            }
        }
    }
}

fn locked() -> StoreError {
    StoreError::database("another process has locked the repository")
}
