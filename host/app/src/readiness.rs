//! Readiness of this server. A background task checks the state (`serve/watch.rs`), and this module
//! only stores the result. A probe is therefore cheap, and gets an immediate answer even if some
//! part hangs.
//!
//! The server cannot serve anything without the database, because it looks up the credential of
//! every request there. Any other problem only degrades the server. For example, if blobs are
//! unreachable, the server still serves everything in the database.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use packhouse_store::now_ms;
use serde::Serialize;

/// The database, without which the server is unavailable.
pub const DATABASE: &str = "database";
pub const BLOBS: &str = "blobs";
/// Free space on the disk of the data folder.
pub const DISK: &str = "disk";
/// A format that has repositories but no loaded plugin.
pub const PLUGIN: &str = "plugin";
/// The clock of this machine, compared with that of the database.
pub const CLOCK: &str = "clock";
pub const CERTIFICATE: &str = "certificate";
pub const WATCH: &str = "watch";
/// All parts that can have a problem.
pub const PARTS: [&str; 7] = [DATABASE, BLOBS, DISK, PLUGIN, CLOCK, CERTIFICATE, WATCH];

/// Time after which a result is too old, in addition to the interval between checks.
const STALE: Duration = Duration::from_secs(20);

/// A part that does not work.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// Name of the part, one of [`PARTS`].
    pub what: &'static str,
    /// Time since which this server knows of the problem, in ms since 1970.
    pub since: i64,
    /// Description for the operator, as a sentence.
    pub detail: String,
}

/// Overall state of the server.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ready,
    /// Some part does not work. The server serves requests that do not need it.
    Degraded,
    /// The server cannot serve any requests.
    Unavailable,
}

/// Result of the last check.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub status: Status,
    /// All current problems; may be empty.
    pub degraded: Vec<Problem>,
    /// Age of the result in ms; `None` before the first check.
    pub age_ms: Option<u64>,
}

/// Results of the readiness checks.
pub struct Readiness {
    found: Mutex<Findings>,
    interval: Duration,
}

#[derive(Default)]
struct Findings {
    at: Option<Instant>,
    /// Problems by part, and by instance if a part can have several problems at the same time.
    problems: BTreeMap<(&'static str, String), Problem>,
}

/// One problem that a check found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    pub what: &'static str,
    /// Instance of the part, for example the name of a format; empty if the part has only one.
    pub which: String,
    pub detail: String,
    /// The complete error. It is only for the log, because it may contain addresses.
    pub cause: String,
}

impl Readiness {
    /// Creates an empty state. `interval` is the time between two checks.
    pub fn new(interval: Duration) -> Readiness {
        Readiness { found: Mutex::default(), interval }
    }

    /// Replaces the earlier findings with those of a new check, and logs what changed.
    pub fn note(&self, findings: Vec<Finding>) {
        let now = now_ms();
        let mut found = self.lock();
        let mut before = std::mem::take(&mut found.problems);
        for Finding { what, which, detail, cause } in findings {
            let known = before.remove(&(what, which.clone()));
            if known.is_none() {
                tracing::warn!(what, detail, cause, "part of the server does not work");
            }
            let since = known.map_or(now, |known| known.since);
            found.problems.insert((what, which), Problem { what, since, detail });
        }
        for ((what, which), problem) in before {
            let seconds = now.saturating_sub(problem.since) / 1000;
            tracing::info!(what, which, seconds, "part of the server works again");
        }
        found.at = Some(Instant::now());
    }

    /// Reports whether the last check found a problem.
    pub fn has_problems(&self) -> bool {
        !self.lock().problems.is_empty()
    }

    /// Returns the report. `serving` is true if both hosts serve.
    pub fn report(&self, serving: bool) -> Report {
        let found = self.lock();
        let age = found.at.map(|at| at.elapsed());
        let mut degraded: Vec<Problem> = found.problems.values().cloned().collect();
        drop(found);
        if let Some(age) = age.filter(|age| *age > self.interval + STALE) {
            let since = now_ms().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
            let detail = format!("the last readiness check was {} s ago", age.as_secs());
            degraded.push(Problem { what: WATCH, since, detail });
        }
        let status = match degraded.as_slice() {
            _ if !serving => Status::Unavailable,
            [] => Status::Ready,
            problems if problems.iter().any(|problem| problem.what == DATABASE) => Status::Unavailable,
            _ => Status::Degraded,
        };
        let age_ms = age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        Report { status, degraded, age_ms }
    }

    fn lock(&self) -> MutexGuard<'_, Findings> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(what: &'static str, which: &str) -> Finding {
        Finding { what, which: which.to_owned(), detail: "is away".to_owned(), cause: String::new() }
    }

    #[test]
    fn only_without_the_database_nothing_is_served() {
        let readiness = Readiness::new(Duration::from_secs(5));
        assert_eq!(readiness.report(true).status, Status::Ready);
        assert_eq!(readiness.report(false).status, Status::Unavailable);
        readiness.note(vec![finding(BLOBS, ""), finding(PLUGIN, "one"), finding(PLUGIN, "two")]);
        let report = readiness.report(true);
        assert_eq!((report.status, report.degraded.len()), (Status::Degraded, 3));
        readiness.note(vec![finding(DATABASE, "")]);
        assert_eq!(readiness.report(true).status, Status::Unavailable);
        readiness.note(Vec::new());
        assert_eq!(readiness.report(true).status, Status::Ready);
    }

    #[test]
    fn a_problem_keeps_the_time_at_which_it_began() {
        let readiness = Readiness::new(Duration::from_secs(5));
        readiness.note(vec![finding(BLOBS, "")]);
        let began = readiness.report(true).degraded[0].since;
        std::thread::sleep(Duration::from_millis(5));
        readiness.note(vec![finding(DISK, ""), finding(BLOBS, "")]);
        let since = |what| {
            let report = readiness.report(true);
            report.degraded.iter().find(|problem| problem.what == what).map(|problem| problem.since)
        };
        assert_eq!(since(BLOBS), Some(began));
        assert!(since(DISK) > Some(began));
    }
}
