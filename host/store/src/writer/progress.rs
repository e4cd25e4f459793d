//! Progress of the writer. It shows since when commits are pending, and when the next probe is due.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time without a commit after which a probe runs, and the interval of probes.
const TRIED_AFTER: Duration = Duration::from_secs(2);

/// Start of the time with pending commits and without any success.
#[derive(Default)]
pub(super) struct Progress(Mutex<ProgressState>);

#[derive(Default, Clone, Copy)]
struct ProgressState {
    since: Option<Instant>,
    tried: Option<Instant>,
}

impl Progress {
    fn change(&self, change: impl FnOnce(&mut ProgressState)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn state(&self) -> ProgressState {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a commit is pending.
    pub(super) fn begun(&self) {
        self.change(|state| {
            state.since.get_or_insert_with(Instant::now);
        });
    }

    /// Records that the database accepted a batch.
    pub(super) fn committed(&self) {
        self.change(|state| *state = ProgressState::default());
    }

    /// Records the start of a probe.
    pub(super) fn tried(&self) {
        self.change(|state| state.tried = Some(Instant::now()));
    }

    /// Time for which commits have been pending without any success.
    pub(super) fn stalled_for(&self) -> Option<Duration> {
        self.state().since.map(|since| since.elapsed())
    }

    /// Waits until a probe is due. It never returns while nothing is pending.
    pub(super) async fn is_due(&self) {
        loop {
            let ProgressState { since, tried } = self.state();
            let due = since.map(|since| tried.map_or(since, |tried| tried.max(since)) + TRIED_AFTER);
            match due {
                Some(due) if due <= Instant::now() => return,
                Some(due) => tokio::time::sleep_until(due.into()).await,
                None => tokio::time::sleep(TRIED_AFTER).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_ends_with_a_commit() {
        let progress = Progress::default();
        assert!(progress.stalled_for().is_none());
        progress.begun();
        assert!(progress.stalled_for().is_some());
        progress.committed();
        assert!(progress.stalled_for().is_none());
    }
}
