//! A component that is tried beside what its format runs: where, for whom, and what is counted of it until somebody takes the counts.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use packhouse_store::{RepositoryId, Sha256, TrialCounts, TrialId, TrialRow, TrialTimes};

use crate::plugin::Plugin;

/// How a component is tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TrialMode {
    /// It is put to what was answered, and nobody sees it.
    Shadow,
    /// It answers a share of the clients.
    Canary,
}

impl TrialMode {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            TrialMode::Shadow => "shadow",
            TrialMode::Canary => "canary",
        }
    }

    /// The mode of this word.
    #[must_use]
    pub fn of(word: &str) -> Option<TrialMode> {
        [TrialMode::Shadow, TrialMode::Canary].into_iter().find(|mode| mode.word() == word)
    }
}

/// A trial. See the module.
pub struct Trial {
    /// Its identifier.
    pub id: TrialId,
    /// How.
    pub mode: TrialMode,
    /// The component.
    pub candidate: Arc<Plugin>,
    repositories: Option<HashSet<RepositoryId>>,
    percent: u32,
    max_failures: Option<u64>,
    counts: Mutex<TrialCounts>,
    /// Failed calls that were added up elsewhere.
    failed_before: AtomicU64,
    is_over: AtomicBool,
    /// Recordings that were made: of calls that were answered otherwise, and of calls that failed.
    recordings: [AtomicU32; 2],
}

impl Trial {
    /// The trial of this row, with its component loaded. None for a mode that nobody knows.
    pub fn of(row: &TrialRow, candidate: Arc<Plugin>) -> Option<Trial> {
        Some(Trial {
            id: row.id,
            mode: TrialMode::of(&row.new.mode)?,
            candidate,
            repositories: row.new.repositories.as_ref().map(|ids| ids.iter().copied().collect()),
            percent: row.new.percent,
            max_failures: row.new.max_failures,
            counts: Mutex::default(),
            failed_before: AtomicU64::new(row.counts.failed),
            is_over: AtomicBool::new(false),
            recordings: Default::default(),
        })
    }

    /// Whether it is tried in this repository.
    pub fn covers(&self, repository: RepositoryId) -> bool {
        !self.is_over.load(Ordering::Relaxed)
            && self.repositories.as_ref().is_none_or(|chosen| chosen.contains(&repository))
    }

    /// Whether it is tried with this client, whom `client` names. The same on every server, and of each component another share; a larger
    /// percentage adds clients.
    pub fn takes(&self, client: impl FnOnce() -> String) -> bool {
        if self.percent >= 100 {
            return true;
        }
        let Sha256(hash) = Sha256::of(format!("{} {}", self.candidate.digest(), client()).as_bytes());
        let number = hash.iter().take(8).fold(0_u64, |number, byte| (number << 8) | u64::from(*byte));
        number % 100 < u64::from(self.percent)
    }

    /// Adds to what is counted.
    pub fn count(&self, add: impl FnOnce(&mut TrialCounts)) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        add(&mut counts);
        let failed = self.failed_before.load(Ordering::Relaxed).saturating_add(counts.failed);
        if self.mode == TrialMode::Canary && self.max_failures.is_some_and(|most| failed > most) {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }

    /// Whether more calls failed than may, as far as this server knows: it is not tried here any more.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// What was counted since this was last asked.
    pub fn take_counts(&self) -> TrialCounts {
        std::mem::take(&mut *self.counts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts back what was taken and could not be added up elsewhere.
    pub fn put_back(&self, taken: &TrialCounts) {
        self.count(|counts| add(counts, taken));
    }

    /// So many calls have failed, those of other servers among them, without what is counted here.
    pub fn failed(&self, failed: u64) {
        self.failed_before.store(failed, Ordering::Relaxed);
        self.count(|_| {});
    }

    /// Whether one more recording is wanted, of a call that `failed` or of one that was answered otherwise; it counts as made.
    pub fn wants_recording(&self, failed: bool) -> bool {
        let [different, failing] = &self.recordings;
        let made = if failed { failing } else { different };
        made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |made| {
            (made < packhouse_store::MAX_RECORDINGS).then_some(made + 1)
        })
        .is_ok()
    }
}

fn add(counts: &mut TrialCounts, more: &TrialCounts) {
    counts.calls += more.calls;
    counts.equal += more.equal;
    counts.different += more.different;
    counts.failed += more.failed;
    counts.unanswered += more.unanswered;
    counts.changed += more.changed;
    counts.dropped += more.dropped;
    for (times, more) in [(&mut counts.active, more.active), (&mut counts.candidate, more.candidate)] {
        times.calls += more.calls;
        times.total_us += more.total_us;
        times.max_us = times.max_us.max(more.max_us);
    }
}

/// Adds a call that took so long.
pub fn add_time(times: &mut TrialTimes, took: Duration) {
    let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
    times.calls += 1;
    times.total_us = times.total_us.saturating_add(us);
    times.max_us = times.max_us.max(us);
}
