//! Lanes: commits to a repository that another process has locked wait here, each repository for itself, while the writer goes on
//! with all others. So do those of which one cannot be written together with those before it.
//!
//! A lane begins with the first job that is given to it and ends when it has none left. In between all jobs of its repository
//! go through it, so that they keep their order. It waits in the database's own queue for the lock, which is fair to the
//! servers that share it; when the database gives up waiting, the jobs that waited as long are refused.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio_util::task::TaskTracker;

use super::attempt::{Target, attempt};
use super::job::{Done, Job, MAX_BYTES, MAX_JOBS, QUEUE, Waiting, fail};
use super::together::Together;
use crate::db::{Acknowledgement, Failed, is_silent};
use crate::error::StoreError;
use crate::ids::RepositoryId;

/// Lanes that use a connection at one time: one fewer than the writer and they have together.
const AT_ONCE: usize = 3;

/// To whom a result goes.
pub(super) type Answered = (oneshot::Sender<Result<Done, StoreError>>, Result<Done, StoreError>);

/// Cheap to clone.
#[derive(Clone)]
pub(super) struct Lanes {
    target: Arc<Target>,
    /// A repository is in here as long as its lane lasts.
    waiting: Arc<Mutex<HashMap<RepositoryId, VecDeque<Job>>>>,
    turns: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Lanes {
    pub(super) fn new(target: &Arc<Target>) -> Lanes {
        Lanes {
            target: Arc::clone(target),
            waiting: Arc::default(),
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            tasks: TaskTracker::new(),
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<RepositoryId, VecDeque<Job>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the jobs of repositories that have a lane; the others.
    pub(super) fn take_theirs(&self, jobs: Vec<Job>) -> Vec<Job> {
        let waiting = self.waiting();
        if waiting.is_empty() {
            return jobs;
        }
        let (theirs, others): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| waiting.contains_key(&job.repository));
        drop(waiting);
        self.give(theirs);
        others
    }

    /// Takes the jobs of repositories of which one has a job that cannot be written with those before it; the others.
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

    /// Leaves jobs to the lanes of their repositories, which begin where there are none.
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

    /// Returns when no lane has anything left.
    pub(super) async fn finish(&self) {
        self.tasks.close();
        self.tasks.wait().await;
        self.tasks.reopen();
    }

    /// Answers jobs once no server gives out any more what was before them; other batches are written meanwhile.
    pub(super) fn answer(&self, done: Vec<Answered>, acknowledgement: Acknowledgement) {
        // The caller may have stopped waiting.
        let answer = |done: Vec<Answered>| done.into_iter().for_each(|(to, answer)| drop(to.send(answer)));
        if acknowledgement.is_at_once() {
            return answer(done);
        }
        self.tasks.spawn(async move {
            acknowledgement.wait().await;
            answer(done);
        });
    }

    async fn run(&self, repository: RepositoryId) {
        // Never closed.
        while let Ok(turn) = self.turns.acquire().await {
            let Some((jobs, late)) = self.next(repository) else { return };
            if !late.is_empty() {
                fail(late, &locked());
            }
            if !jobs.is_empty() {
                self.write(jobs).await;
            }
            // Others that wait for a turn come first now.
            drop(turn);
        }
    }

    /// The jobs of the next batch, and those that have waited too long; none when the lane has no more.
    fn next(&self, repository: RepositoryId) -> Option<(Vec<Job>, Vec<Job>)> {
        let mut waiting = self.waiting();
        let lane = waiting.get_mut(&repository)?;
        if lane.is_empty() {
            waiting.remove(&repository);
            return None;
        }
        let (patience, mut bytes, mut together) = (self.patience(), 0, Together::default());
        let (mut jobs, mut late) = (Vec::new(), Vec::new());
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
        Some((jobs, late))
    }

    /// How long a job may have waited and still be begun: it was silent once, and waited for others' turns.
    fn patience(&self) -> Duration {
        let limits = self.target.database.limits();
        limits.deadline() + limits.lock * 2
    }

    async fn write(&self, jobs: Vec<Job>) {
        let mut again = true;
        loop {
            match attempt(&self.target, &jobs, Waiting::Yes).await {
                Ok((answers, acknowledgement)) => {
                    let answered = jobs.into_iter().zip(answers);
                    let done =
                        answered.map(|(job, answer)| (job.done, answer.unwrap_or_else(|| Err(locked()))));
                    return self.answer(done.collect(), acknowledgement);
                }
                // A new connection may be better: this one is not used again.
                Err(Failed::Before(problem)) if again && is_silent(&problem) => again = false,
                Err(Failed::Before(problem) | Failed::Commit(problem)) => return fail(jobs, &problem),
            }
        }
    }
}

fn locked() -> StoreError {
    StoreError::database("another process has locked the repository")
}
