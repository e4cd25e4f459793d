//! Periodically checks the server's dependencies, for `/readyz` and the metrics. Each check runs in
//! a task with a time limit. A check does not start again while it is still running, so a hanging
//! dependency costs only one task.

use std::sync::Arc;
use std::time::Duration;

use packhouse_store::{DatabaseHealth, StoreError};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use packhouse_app::App;
use packhouse_app::jobs::{Job, Next};
use packhouse_app::metrics::LAST_BACKUP;
use packhouse_app::readiness::{BLOBS, CLOCK, DATABASE, DISK, Finding, PLUGIN};

/// How long a check may take: a little longer than the store's own limit for the database.
const PATIENCE: Duration = Duration::from_secs(4);
/// Interval after a failed check, so that a recovery is noticed soon.
const AGAIN: Duration = Duration::from_secs(1);
/// One of this many rounds of checks writes a blob. Writing has a small cost on S3, so the other
/// rounds only read.
const WRITE_EVERY: u32 = 6;
/// Free bytes below which the disk counts as full: less than the database may need to write its
/// log.
const LITTLE_ROOM: u64 = 64 << 20;
/// Free files (inodes) below which the disk counts as full.
const FEW_FILES: u64 = 1000;

/// Clock difference from which a problem is reported, in ms.
const SKEW_MS: u64 = 1000;
/// How long commits may be pending before the writer counts as stalled.
const STALLED: Duration = Duration::from_secs(5);

/// The dependency checks, including those that are still running.
pub(crate) struct Watch {
    app: Arc<App>,
    database: RunningCheck,
    blobs: RunningCheck,
    disk: RunningCheck,
    formats: RunningCheck,
    rounds: u32,
    /// True if the last write of a blob failed. While it is true, each round writes.
    unwritable: bool,
}

/// Scope of a round of checks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Probe {
    ReadOnly,
    /// Also writes a blob and updates the metric of the last backup.
    ReadWrite,
}

impl Watch {
    /// Creates the checks without running them.
    pub(crate) fn new(app: &Arc<App>) -> Watch {
        let [database, blobs, disk, formats] = Default::default();
        Watch { app: Arc::clone(app), database, blobs, disk, formats, rounds: 0, unwritable: false }
    }

    /// The job that runs the checks at the configured interval, or sooner after a failed check.
    pub(crate) fn job(self) -> Job {
        let interval = self.app.config.readiness_interval;
        // Random, so that servers which share a failed dependency do not check it together.
        let again = move || AGAIN.min(interval).mul_f64(0.8 + 0.4 * rand::random::<f64>());
        let first = if self.app.readiness.has_problems() { again() } else { interval };
        let watch = Arc::new(Mutex::new(self));
        let job = Job::with_state("check-dependencies", interval, move || {
            let watch = Arc::clone(&watch);
            Box::pin(async move {
                let mut watch = watch.lock().await;
                watch.check_all().await;
                let has_problems = watch.app.readiness.has_problems();
                Ok(if has_problems { Next::After(again()) } else { Next::AfterPeriod })
            })
        });
        job.after(first)
    }

    pub(crate) async fn check_all(&mut self) {
        let write = self.unwritable || self.rounds.is_multiple_of(WRITE_EVERY);
        let probe = if write { Probe::ReadWrite } else { Probe::ReadOnly };
        self.rounds = self.rounds.wrapping_add(1);
        let app = &self.app;
        let (database, blobs, disk, formats) = tokio::join!(
            self.database.run(|| check_database(Arc::clone(app), probe)),
            self.blobs.run(|| check_blobs(Arc::clone(app), probe)),
            self.disk.run(|| check_disk(Arc::clone(app))),
            self.formats.run(|| check_formats(Arc::clone(app))),
        );
        self.unwritable = blobs.is_err();
        let mut findings = Vec::new();
        let mut note = |what: &'static str, result: CheckResult| match result {
            Ok(found) => findings.extend(found),
            Err(Problem { detail, cause }) => {
                findings.push(Finding { what, which: String::new(), detail, cause });
            }
        };
        let database_failed = database.is_err();
        note(DATABASE, database);
        note(BLOBS, blobs);
        note(DISK, disk);
        // The formats come from the database: without it nothing is known about them.
        if !database_failed {
            note(PLUGIN, formats);
        }
        let wrong = self.app.store.clock_skew().filter(|skew| skew.unsigned_abs() > SKEW_MS);
        findings.extend(wrong.map(|skew| Finding {
            what: CLOCK,
            which: String::new(),
            detail: format!("this server's clock is {skew} ms ahead of the database's"),
            cause: String::new(),
        }));
        findings.extend(self.app.certificates.findings(&self.app.secured(), packhouse_store::now_ms()));
        self.app.readiness.note(findings);
    }
}

type CheckResult = Result<Vec<Finding>, Problem>;

/// A problem with a dependency, for `/readyz` and for the log.
struct Problem {
    detail: String,
    cause: String,
}

impl From<String> for Problem {
    fn from(detail: String) -> Problem {
        Problem { detail, cause: String::new() }
    }
}

/// A check that may still be running.
#[derive(Default)]
struct RunningCheck {
    task: Option<JoinHandle<CheckResult>>,
}

impl RunningCheck {
    /// Starts the check unless it is still running, and waits for its result up to a limit.
    async fn run<F>(&mut self, check: impl FnOnce() -> F) -> CheckResult
    where
        F: Future<Output = CheckResult> + Send + 'static,
    {
        let mut task = self.task.take().unwrap_or_else(|| tokio::spawn(check()));
        match tokio::time::timeout(PATIENCE, &mut task).await {
            Ok(Ok(result)) => result,
            Ok(Err(error)) => Err(format!("the check failed: {error}").into()),
            Err(_) => {
                self.task = Some(task);
                Err(format!("no answer within {PATIENCE:?}").into())
            }
        }
    }
}

async fn check_database(app: Arc<App>, probe: Probe) -> CheckResult {
    if let Some(stalled) = app.store.writer_stalled_for().filter(|stalled| *stalled >= STALLED) {
        return Err(format!("nothing could be committed for {} s", stalled.as_secs()).into());
    }
    match app.store.probe_database().await {
        Ok(DatabaseHealth::Well) => {
            if probe == Probe::ReadWrite {
                record_last_backup(&app).await;
            }
            Ok(Vec::new())
        }
        Ok(DatabaseHealth::Busy) => {
            tracing::warn!("all connections to the database are in use");
            Ok(Vec::new())
        }
        Err(error) => Err(reason("the database cannot be reached", &error)),
    }
}

/// Updates the metric of the last backup. The server works without it.
async fn record_last_backup(app: &App) {
    match app.store.last_backup().await {
        Ok(last) => metrics::gauge!(LAST_BACKUP).set(last.unwrap_or_default() as f64 / 1000.0),
        Err(error) => tracing::warn!(%error, "reading the time of the last backup failed"),
    }
}

async fn check_blobs(app: Arc<App>, probe: Probe) -> CheckResult {
    let write = probe == Probe::ReadWrite;
    match app.store.probe_blobs(write).await {
        Ok(()) => Ok(Vec::new()),
        Err(error) if write => Err(reason("a test blob cannot be written or read", &error)),
        Err(error) => Err(reason("the blob storage cannot be reached", &error)),
    }
}

async fn check_disk(app: Arc<App>) -> CheckResult {
    let room = app.store.disk_room().await.map_err(|error| reason("its free space is unknown", &error))?;
    metrics::gauge!("packhouse_disk_available_bytes").set(room.available as f64);
    metrics::gauge!("packhouse_disk_size_bytes").set(room.total as f64);
    let few = room.files.is_some_and(|files| files < FEW_FILES);
    if few {
        Err("the disk of the data folder has no room for more files".to_owned().into())
    } else if room.available < LITTLE_ROOM {
        Err(format!("the disk of the data folder has {} bytes left", room.available).into())
    } else {
        Ok(Vec::new())
    }
}

/// Finds plugin files that cannot be loaded, and formats of repositories without a loaded plugin.
async fn check_formats(app: Arc<App>) -> CheckResult {
    let used = app
        .store
        .formats_in_use(None)
        .await
        .map_err(|error| reason("the formats in use are unknown", &error))?;
    let refused = app.runtime.refused().into_iter().map(|error| Finding {
        what: PLUGIN,
        detail: error.to_string(),
        which: error.file_name().unwrap_or_default(),
        cause: String::new(),
    });
    let failed = app.plugins.failed().into_iter().map(|(digest, reason)| Finding {
        what: PLUGIN,
        detail: format!("the component {digest} cannot run on this server: {reason}"),
        which: digest,
        cause: String::new(),
    });
    let current = app.runtime.current();
    // Plugins that are still being compiled are reported separately.
    let missing =
        used.into_iter().filter(|(format, _)| current.plugin(format).is_none() && !current.awaits(format));
    let missing = missing.map(|(format, repositories)| Finding {
        what: PLUGIN,
        detail: format!(
            "the format {format} has no plugin in the folder {}, and {repositories} repositories need it",
            app.config.runtime.plugins.display()
        ),
        which: format,
        cause: String::new(),
    });
    Ok(refused.chain(failed).chain(missing).collect())
}

fn reason(what: &str, error: &StoreError) -> Problem {
    Problem { detail: format!("{what}: {}", error.reason()), cause: error.to_string() }
}
