//! Background jobs. One driver runs each job at its period and whenever it is woken. It records the
//! job's state for operators, and logs and counts the job's failures.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use packhouse_store::{StoreError, now_ms};
use tokio::task::JoinHandle;

use crate::App;

/// Counter of the runs of background jobs, by outcome.
const RUNS: &str = "packhouse_job_runs_total";
/// Histogram of the duration of the runs of background jobs.
const SECONDS: &str = "packhouse_job_seconds";
/// Shortest period at which the driver adds jitter, so that servers which start together run the
/// job at different times.
const JITTERED: Duration = Duration::from_secs(1);

/// The future of one run of a job, or of the event that wakes a job.
pub type JobFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Result of a run: when the job runs next, unless it is woken before. After an error, the job runs
/// again after its period.
pub type JobResult = Result<Next, JobError>;

/// Why a run failed, in a sentence for the operator.
#[derive(Debug)]
pub struct JobError(pub String);

impl From<StoreError> for JobError {
    fn from(error: StoreError) -> JobError {
        JobError(error.to_string())
    }
}

impl From<anyhow::Error> for JobError {
    fn from(error: anyhow::Error) -> JobError {
        JobError(format!("{error:#}"))
    }
}

/// Time of a job's next run, unless the job is woken before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// After the job's period.
    AfterPeriod,
    /// After this time, because work is left over or something else is due then.
    After(Duration),
}

/// A job that has not started.
pub struct Job {
    name: &'static str,
    period: Duration,
    first: Duration,
    is_interruptible: bool,
    needs_plugins: bool,
    run: Box<dyn FnMut() -> JobFuture<JobResult> + Send>,
    wake: Box<dyn FnMut() -> JobFuture<()> + Send>,
}

impl Job {
    /// Creates a job that runs at once and then once in each period. `work` is one run.
    pub fn new<F>(app: &Arc<App>, name: &'static str, period: Duration, work: fn(Arc<App>) -> F) -> Job
    where
        F: Future<Output = JobResult> + Send + 'static,
    {
        let app = Arc::clone(app);
        Job::with_state(name, period, move || Box::pin(work(Arc::clone(&app))))
    }

    /// Creates the same for a job whose runs share state. `run` returns the future of one run.
    pub fn with_state(
        name: &'static str,
        period: Duration,
        run: impl FnMut() -> JobFuture<JobResult> + Send + 'static,
    ) -> Job {
        let wake = || -> JobFuture<()> { Box::pin(std::future::pending()) };
        Job {
            name,
            period,
            first: Duration::ZERO,
            is_interruptible: false,
            needs_plugins: false,
            run: Box::new(run),
            wake: Box::new(wake),
        }
    }

    /// Delays the first run by one period.
    #[must_use]
    pub fn after_period(self) -> Job {
        Job { first: self.period, ..self }
    }

    /// Delays the first run by this time.
    #[must_use]
    pub fn after(self, first: Duration) -> Job {
        Job { first, ..self }
    }

    /// Ends the wait for the next run as soon as the future that `wake` returns is ready.
    #[must_use]
    pub fn woken_by(self, wake: impl FnMut() -> JobFuture<()> + Send + 'static) -> Job {
        Job { wake: Box::new(wake), ..self }
    }

    /// Delays the first run until the start of the server has compiled all plugins.
    #[must_use]
    pub fn with_plugins(self) -> Job {
        Job { needs_plugins: true, ..self }
    }

    /// Allows the stop of the server to abort a run. Other jobs complete their run first.
    #[must_use]
    pub fn interruptible(self) -> Job {
        Job { is_interruptible: true, ..self }
    }
}

/// State of a job on this server.
#[derive(Clone, Debug)]
pub struct JobStatus {
    pub name: &'static str,
    /// Time between two runs, unless the job is woken.
    pub period: Duration,
    /// True if a run is in progress.
    pub is_running: bool,
    /// Time at which the last run started, in ms since 1970.
    pub last_started_at: Option<i64>,
    /// Time at which a run last ended, in ms since 1970.
    pub last_ended_at: Option<i64>,
    /// Reason why the last run failed; `None` if it succeeded.
    pub last_error: Option<String>,
    /// Time of the next run, in ms since 1970; `None` while a run is in progress.
    pub next_at: Option<i64>,
}

impl JobStatus {
    /// Period in whole seconds, at least 1.
    pub fn period_s(&self) -> u64 {
        self.period.as_secs().max(1)
    }

    /// Returns `running`, `failing` or `idle`.
    pub fn state(&self) -> &'static str {
        match (self.is_running, &self.last_error) {
            (true, _) => "running",
            (false, Some(_)) => "failing",
            (false, None) => "idle",
        }
    }
}

/// States of all jobs of this server.
#[derive(Debug, Default)]
pub struct Jobs(Mutex<BTreeMap<&'static str, JobStatus>>);

impl Jobs {
    /// Returns the states of all jobs, sorted by name.
    pub fn list(&self) -> Vec<JobStatus> {
        self.all().values().cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<&'static str, JobStatus>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, job: &Job) {
        let status = JobStatus {
            name: job.name,
            period: job.period,
            is_running: false,
            last_started_at: None,
            last_ended_at: None,
            last_error: None,
            next_at: Some(in_future(job.first)),
        };
        self.all().insert(job.name, status);
    }

    fn begin(&self, name: &str) {
        if let Some(status) = self.all().get_mut(name) {
            (status.is_running, status.next_at) = (true, None);
            status.last_started_at = Some(now_ms());
        }
    }

    /// Records the end of a run. Returns whether the previous run failed too.
    fn end(&self, name: &str, error: Option<String>, wait: Duration) -> bool {
        let mut all = self.all();
        let Some(status) = all.get_mut(name) else { return false };
        let failed_before = status.last_error.is_some();
        status.is_running = false;
        status.last_ended_at = Some(now_ms());
        status.next_at = Some(in_future(wait));
        status.last_error = error;
        failed_before
    }
}

fn in_future(wait: Duration) -> i64 {
    now_ms().saturating_add(i64::try_from(wait.as_millis()).unwrap_or(i64::MAX))
}

/// Starts a job, which then runs until the server stops.
pub fn start(app: &Arc<App>, job: Job) -> JoinHandle<()> {
    app.jobs.add(&job);
    for outcome in ["ok", "failed"] {
        metrics::counter!(RUNS, "job" => job.name, "outcome" => outcome).increment(0);
    }
    tokio::spawn(drive(Arc::clone(app), job))
}

async fn drive(app: Arc<App>, mut job: Job) {
    if job.needs_plugins {
        tokio::select! {
            () = app.plugins.whole() => {}
            () = app.stop.cancelled() => return,
        }
    }
    let mut wait = job.first;
    loop {
        tokio::select! {
            biased;
            () = app.stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
            () = (job.wake)() => {}
        }
        app.jobs.begin(job.name);
        let since = Instant::now();
        let run = (job.run)();
        let result = if job.is_interruptible {
            tokio::select! {
                result = run => result,
                () = app.stop.cancelled() => return,
            }
        } else {
            run.await
        };
        wait = match result {
            Ok(Next::After(wait)) => wait,
            _ if job.period < JITTERED => job.period,
            _ => job.period.mul_f64(0.9 + 0.2 * rand::random::<f64>()),
        };
        let error = result.err().map(|JobError(error)| error);
        note_end(&app.jobs, job.name, error, wait, since.elapsed());
    }
}

/// Records, counts and logs the end of a run. Logs only the first of several consecutive failures
/// as a warning.
fn note_end(jobs: &Jobs, name: &'static str, error: Option<String>, wait: Duration, took: Duration) {
    let outcome = if error.is_some() { "failed" } else { "ok" };
    metrics::counter!(RUNS, "job" => name, "outcome" => outcome).increment(1);
    metrics::histogram!(SECONDS, "job" => name).record(took);
    let failed_before = jobs.end(name, error.clone(), wait);
    match (error, failed_before) {
        (Some(error), false) => tracing::warn!(job = name, error, "background job failed; will retry"),
        (Some(error), true) => tracing::debug!(job = name, error, "background job failed again; will retry"),
        (None, true) => tracing::info!(job = name, "background job works again"),
        (None, false) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs() -> Jobs {
        let jobs = Jobs::default();
        jobs.add(&Job::with_state("sweep", Duration::from_secs(60), || {
            Box::pin(async { Ok(Next::AfterPeriod) })
        }));
        jobs
    }

    fn status(jobs: &Jobs) -> JobStatus {
        jobs.list().into_iter().next().unwrap()
    }

    #[test]
    fn a_job_is_idle_until_it_runs_and_failing_after_an_error() {
        let jobs = jobs();
        assert_eq!((status(&jobs).state(), status(&jobs).last_started_at), ("idle", None));
        jobs.begin("sweep");
        assert_eq!((status(&jobs).state(), status(&jobs).next_at), ("running", None));
        assert!(!jobs.end("sweep", Some("disk full".to_owned()), Duration::from_secs(60)));
        let failed = status(&jobs);
        assert_eq!((failed.state(), failed.last_error.as_deref()), ("failing", Some("disk full")));
        assert!(failed.next_at > failed.last_ended_at);
        jobs.begin("sweep");
        assert!(jobs.end("sweep", None, Duration::from_secs(60)));
        assert_eq!((status(&jobs).state(), status(&jobs).last_error), ("idle", None));
    }
}
