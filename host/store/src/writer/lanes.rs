//! Lanes: commits to a repository that another process has locked wait here, each repository for itself, while the writer goes on
//! with all others. So do those of which one cannot be written together with those before it.
//!
//! A lane begins with the first job that is given to it and ends when it has none left. In between all jobs of its repository
//! go through it, so that they keep their order. It waits in the database's own queue for the lock, which is fair to the
//! servers that share it, and then takes all that has come meanwhile: servers that publish into one repository write batches as
//! large as one server alone would. When the database gives up waiting, the jobs that waited as long are refused.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, oneshot};
use tokio_util::task::TaskTracker;

use super::attempt::{Begun, Target, attempt_within};
use super::job::{Done, Job, MAX_BYTES, MAX_JOBS, QUEUE, fail};
use super::together::Together;
use crate::db::{Acknowledgement, Failed, is_silent};
use crate::error::StoreError;
use crate::ids::RepositoryId;

/// For how long the commits to a repository go through a lane after another process was found to have it locked: it is likely to have it
/// again, and what would be read to find that out is read in vain.
const CONTENDED: Duration = Duration::from_secs(1);

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
    /// When another process was last found to have a repository locked; for as long as that says something.
    contended: Arc<Mutex<HashMap<RepositoryId, Instant>>>,
    turns: Arc<Semaphore>,
    tasks: TaskTracker,
}

impl Lanes {
    pub(super) fn new(target: &Arc<Target>) -> Lanes {
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

    /// Takes the jobs of repositories that have a lane, or that others have just had locked; the others. Where that are many
    /// repositories, the writer serves them better, with one batch for all.
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

    /// Leaves jobs of repositories that another process has locked to their lanes.
    pub(super) fn give_locked(&self, jobs: Vec<Job>) {
        if !jobs.is_empty() {
            let now = Instant::now();
            self.contended().extend(jobs.iter().map(|job| (job.repository, now)));
        }
        self.give(jobs);
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
            if self.ends(repository) {
                return;
            }
            let began = Instant::now();
            match self.lock(repository).await {
                Ok(begun) => self.write(repository, begun).await,
                Err(problem) => fail(self.since_before(repository, began), &problem),
            }
            // Others that wait for a turn come first now.
            drop(turn);
        }
    }

    /// Whether the lane has no more jobs; then it is gone.
    fn ends(&self, repository: RepositoryId) -> bool {
        let mut waiting = self.waiting();
        let is_empty = waiting.get(&repository).is_none_or(VecDeque::is_empty);
        if is_empty {
            waiting.remove(&repository);
        }
        is_empty
    }

    /// Takes the jobs that were handed in before this moment.
    fn since_before(&self, repository: RepositoryId, moment: Instant) -> Vec<Job> {
        let mut waiting = self.waiting();
        let Some(lane) = waiting.get_mut(&repository) else { return Vec::new() };
        let (before, after) = lane.drain(..).partition(|job| job.since < moment);
        *lane = after;
        before.into()
    }

    async fn lock(&self, repository: RepositoryId) -> Result<Begun, StoreError> {
        match Begun::with(&self.target, repository).await {
            // A new connection may be better: this one is not used again.
            Err(problem) if is_silent(&problem) => Begun::with(&self.target, repository).await,
            begun => begun,
        }
    }

    /// The jobs of the next batch, and those that have waited too long.
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

    /// How long a job may have waited and still be begun: it was silent once, and waited for others' turns.
    fn patience(&self) -> Duration {
        let limits = self.target.database.limits();
        limits.deadline() + limits.lock * 2
    }

    /// Writes what waits now that the repository is locked, those among it that came while another process had it.
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
