//! Looks after what the server stands on, at an interval, for `/readyz` and the metrics. Each part is asked in a task of its own
//! that is waited for only so long, and never asked again while it has not answered: what hangs costs one task, however long.

use std::sync::Arc;
use std::time::Duration;

use packhouse_store::{Answering, StoreError};
use tokio::task::JoinHandle;

use packhouse_app::App;
use packhouse_app::metrics::LAST_BACKUP;
use packhouse_app::readiness::{BLOBS, CLOCK, DATABASE, DISK, Finding, PLUGIN};

/// How long a part may take to answer: a little longer than the store's own limit for the database.
const PATIENCE: Duration = Duration::from_secs(4);
/// How soon it is looked again after something was found amiss, so that its return is noticed.
const AGAIN: Duration = Duration::from_secs(1);
/// Every so many looks a blob is written, too: that costs S3 a little, and the looks between only ask whether it answers.
const WRITE_EVERY: u32 = 6;
/// Bytes below which the disk counts as full: less than what the database may need to write its log.
const LITTLE_ROOM: u64 = 64 << 20;
/// Files below which it counts as full.
const FEW_FILES: u64 = 1000;

/// A difference of the clocks that is told, in ms.
const SKEW_MS: u64 = 1000;
/// How long nothing may have been committed that was to be.
const STALLED: Duration = Duration::from_secs(5);

/// What is looked at, with what is still being asked.
pub(crate) struct Watch {
    app: Arc<App>,
    database: Question,
    blobs: Question,
    disk: Question,
    formats: Question,
    looks: u32,
    /// Whether the last write of a blob failed: then each look writes.
    unwritable: bool,
}

impl Watch {
    /// Nothing is asked yet.
    pub(crate) fn new(app: &Arc<App>) -> Watch {
        let [database, blobs, disk, formats] = Default::default();
        Watch { app: Arc::clone(app), database, blobs, disk, formats, looks: 0, unwritable: false }
    }

    /// Looks until the stop.
    pub(crate) async fn run(mut self) {
        let interval = self.app.config.readiness_interval;
        loop {
            let next = if self.app.readiness.is_amiss() { AGAIN.min(interval) } else { interval };
            // Servers that were started together shall not ask together.
            let next = next.mul_f64(0.8 + 0.4 * rand::random::<f64>());
            if tokio::time::timeout(next, self.app.stop.cancelled()).await.is_ok() {
                return;
            }
            self.look().await;
        }
    }

    /// Looks once.
    pub(crate) async fn look(&mut self) {
        let write = self.unwritable || self.looks.is_multiple_of(WRITE_EVERY);
        self.looks = self.looks.wrapping_add(1);
        let app = &self.app;
        let (database, blobs, disk, formats) = tokio::join!(
            self.database.ask(|| database(Arc::clone(app), write)),
            self.blobs.ask(|| blobs(Arc::clone(app), write)),
            self.disk.ask(|| disk(Arc::clone(app))),
            self.formats.ask(|| formats(Arc::clone(app))),
        );
        self.unwritable = blobs.is_err();
        let mut findings = Vec::new();
        let mut note = |what: &'static str, outcome: Outcome| match outcome {
            Ok(found) => findings.extend(found),
            Err(Amiss { detail, cause }) => {
                findings.push(Finding { what, which: String::new(), detail, cause });
            }
        };
        let away = database.is_err();
        note(DATABASE, database);
        note(BLOBS, blobs);
        note(DISK, disk);
        // Which formats there are is asked of the database: without it nothing is known of them.
        if !away {
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

type Outcome = Result<Vec<Finding>, Amiss>;

/// What is amiss with a part, for whoever asks and for the log.
struct Amiss {
    detail: String,
    cause: String,
}

impl From<String> for Amiss {
    fn from(detail: String) -> Amiss {
        Amiss { detail, cause: String::new() }
    }
}

/// One part's question, perhaps not answered yet.
#[derive(Default)]
struct Question {
    asked: Option<JoinHandle<Outcome>>,
}

impl Question {
    /// Asks, unless the last question still waits for its answer, and waits for a while.
    async fn ask<F>(&mut self, question: impl FnOnce() -> F) -> Outcome
    where
        F: Future<Output = Outcome> + Send + 'static,
    {
        let mut asked = self.asked.take().unwrap_or_else(|| tokio::spawn(question()));
        match tokio::time::timeout(PATIENCE, &mut asked).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => Err(format!("asking it failed: {error}").into()),
            Err(_) => {
                self.asked = Some(asked);
                Err(format!("it does not answer within {PATIENCE:?}").into())
            }
        }
    }
}

async fn database(app: Arc<App>, seldom: bool) -> Outcome {
    if let Some(stalled) = app.store.writer_stalled_for().filter(|stalled| *stalled >= STALLED) {
        return Err(format!("nothing could be committed for {} s", stalled.as_secs()).into());
    }
    match app.store.probe_database().await {
        Ok(Answering::Well) => {
            if seldom {
                tell_last_backup(&app).await;
            }
            Ok(Vec::new())
        }
        Ok(Answering::Busy) => {
            tracing::warn!("all connections to the database are in use");
            Ok(Vec::new())
        }
        Err(error) => Err(reason("it cannot be reached", &error)),
    }
}

/// For the metrics alone: without it the server serves as before.
async fn tell_last_backup(app: &App) {
    match app.store.last_backup().await {
        Ok(last) => metrics::gauge!(LAST_BACKUP).set(last.unwrap_or_default() as f64 / 1000.0),
        Err(error) => tracing::warn!(%error, "it is not known when the last backup was taken"),
    }
}

async fn blobs(app: Arc<App>, write: bool) -> Outcome {
    match app.store.probe_blobs(write).await {
        Ok(()) => Ok(Vec::new()),
        Err(error) if write => Err(reason("they cannot be written, or not be read", &error)),
        Err(error) => Err(reason("they cannot be reached", &error)),
    }
}

async fn disk(app: Arc<App>) -> Outcome {
    let room = app.store.disk_room().await.map_err(|error| reason("its room is not known", &error))?;
    metrics::gauge!("packhouse_disk_available_bytes").set(room.available as f64);
    metrics::gauge!("packhouse_disk_size_bytes").set(room.total as f64);
    let few = room.files.is_some_and(|files| files < FEW_FILES);
    if few {
        Err("the disk of the data folder takes no more files".to_owned().into())
    } else if room.available < LITTLE_ROOM {
        Err(format!("the disk of the data folder has {} bytes left", room.available).into())
    } else {
        Ok(Vec::new())
    }
}

/// Files that are no plugins, and the formats of repositories that no loaded plugin serves.
async fn formats(app: Arc<App>) -> Outcome {
    let used = app.store.formats_in_use(None).await.map_err(|error| reason("not known", &error))?;
    let refused = app.runtime.refused().into_iter().map(|error| Finding {
        what: PLUGIN,
        detail: error.to_string(),
        which: error.file_name().unwrap_or_default(),
        cause: String::new(),
    });
    let failed = app.plugins.failed().into_iter().map(|(digest, reason)| Finding {
        what: PLUGIN,
        detail: format!("the component {digest} cannot be run here: {reason}"),
        which: digest,
        cause: String::new(),
    });
    let current = app.runtime.current();
    // What is still being compiled is told by itself.
    let missing =
        used.into_iter().filter(|(format, _)| current.plugin(format).is_none() && !current.awaits(format));
    let missing = missing.map(|(format, repositories)| Finding {
        what: PLUGIN,
        detail: format!(
            "no plugin of the format {format} is in the folder {}, and {repositories} repositories need it",
            app.config.runtime.plugins.display()
        ),
        which: format,
        cause: String::new(),
    });
    Ok(refused.chain(failed).chain(missing).collect())
}

fn reason(what: &str, error: &StoreError) -> Amiss {
    Amiss { detail: format!("{what}: {}", error.reason()), cause: error.to_string() }
}
