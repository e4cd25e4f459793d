//! Whether the writer makes progress: a stall is visible from outside, and commits are probed until it is over.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long nothing may be committed before it is tried out whether anything can be, and between two such trials.
const TRIED_AFTER: Duration = Duration::from_secs(2);

/// Since when something was to be committed and nothing was.
#[derive(Default)]
pub(super) struct Progress(Mutex<State>);

#[derive(Default, Clone, Copy)]
struct State {
    since: Option<Instant>,
    tried: Option<Instant>,
}

impl Progress {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn state(&self) -> State {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something is to be committed.
    pub(super) fn begun(&self) {
        self.change(|state| {
            state.since.get_or_insert_with(Instant::now);
        });
    }

    /// The database took a batch.
    pub(super) fn committed(&self) {
        self.change(|state| *state = State::default());
    }

    /// A trial begins.
    pub(super) fn tried(&self) {
        self.change(|state| state.tried = Some(Instant::now()));
    }

    /// For how long nothing was committed that was to be.
    pub(super) fn stalled_for(&self) -> Option<Duration> {
        self.state().since.map(|since| since.elapsed())
    }

    /// Returns when it is time to try out whether anything can be committed: never, while all is committed.
    pub(super) async fn is_due(&self) {
        loop {
            let State { since, tried } = self.state();
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
    fn what_is_not_committed_is_tried_out_until_it_is() {
        let progress = Progress::default();
        assert!(progress.stalled_for().is_none());
        progress.begun();
        assert!(progress.stalled_for().is_some());
        progress.committed();
        assert!(progress.stalled_for().is_none());
    }
}
