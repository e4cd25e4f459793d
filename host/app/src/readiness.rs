//! Readiness: what of this server works at present. It is found out in the background (`serve/watch.rs`) and only read here, so
//! that a probe costs nothing and is answered at once, whatever hangs.
//!
//! What still works is not taken out of service: only without the database can nothing be served, because every request's
//! credential is looked up in it. All else is degraded: blobs out of reach still leave everything that lies in the database.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use packhouse_store::now_ms;
use serde::Serialize;

/// The database; without it nothing is served.
pub const DATABASE: &str = "database";
/// The storage of blobs.
pub const BLOBS: &str = "blobs";
/// The room on the disk of the data folder.
pub const DISK: &str = "disk";
/// A format that repositories have and no loaded plugin serves.
pub const PLUGIN: &str = "plugin";
/// This machine's clock, as compared with the database's.
pub const CLOCK: &str = "clock";
/// A certificate of TLS.
pub const CERTIFICATE: &str = "certificate";
/// The looking itself.
pub const WATCH: &str = "watch";
/// All that may be amiss.
pub const PARTS: [&str; 7] = [DATABASE, BLOBS, DISK, PLUGIN, CLOCK, CERTIFICATE, WATCH];

/// How old what was found may be beyond the interval of looking, before nobody can rely on it.
const STALE: Duration = Duration::from_secs(20);

/// Something that does not work as it should.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Problem {
    /// Which part: one of [`PARTS`].
    pub what: &'static str,
    /// Since when this server knows, in ms since 1970.
    pub since: i64,
    /// What is amiss, in a sentence for the operator.
    pub detail: String,
}

/// Whether anything can be served.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// All works.
    Ready,
    /// Something does not; what does not need it is served.
    Degraded,
    /// Nothing can be served.
    Unavailable,
}

/// What was found the last time.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The whole in a word.
    pub status: Status,
    /// What is amiss; empty when nothing is.
    pub degraded: Vec<Problem>,
    /// How long ago it was found out, in ms; none before the first look.
    pub age_ms: Option<u64>,
}

/// What the looks found.
pub struct Readiness {
    found: Mutex<Found>,
    interval: Duration,
}

#[derive(Default)]
struct Found {
    at: Option<Instant>,
    /// By part and, where a part can be amiss in several ways at once, by which.
    problems: BTreeMap<(&'static str, String), Problem>,
}

/// What one look found amiss.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// Which part.
    pub what: &'static str,
    /// Which one of it, where there are several: a format's name.
    pub which: String,
    /// What is amiss with it.
    pub detail: String,
    /// The whole of the error, for the log alone: it may name addresses.
    pub cause: String,
}

impl Readiness {
    /// Nothing is known yet; looks come at this interval.
    pub fn new(interval: Duration) -> Readiness {
        Readiness { found: Mutex::default(), interval }
    }

    /// Takes what a look found in the place of what was found before, and says in the log what changed.
    pub fn note(&self, findings: Vec<Finding>) {
        let now = now_ms();
        let mut found = self.lock();
        let mut before = std::mem::take(&mut found.problems);
        for Finding { what, which, detail, cause } in findings {
            let known = before.remove(&(what, which.clone()));
            if known.is_none() {
                tracing::warn!(what, detail, cause, "not all of this server works");
            }
            let since = known.map_or(now, |known| known.since);
            found.problems.insert((what, which), Problem { what, since, detail });
        }
        for ((what, which), problem) in before {
            let seconds = now.saturating_sub(problem.since) / 1000;
            tracing::info!(what, which, seconds, "works again");
        }
        found.at = Some(Instant::now());
    }

    /// Whether the last look found anything amiss.
    pub fn is_amiss(&self) -> bool {
        !self.lock().problems.is_empty()
    }

    /// What is known, for a server that does or does not serve.
    pub fn report(&self, serving: bool) -> Report {
        let found = self.lock();
        let age = found.at.map(|at| at.elapsed());
        let mut degraded: Vec<Problem> = found.problems.values().cloned().collect();
        drop(found);
        if let Some(age) = age.filter(|age| *age > self.interval + STALE) {
            let since = now_ms().saturating_sub(i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
            let detail = format!("nothing was found out for {} s", age.as_secs());
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

    fn lock(&self) -> MutexGuard<'_, Found> {
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
