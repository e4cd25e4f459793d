//! The time by which servers that share a database compare what each of them wrote: the database's own. Between two looks at it
//! the time is counted on by a clock of this machine that nobody can set, so it costs no statement.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::ids::now_ms;

/// How often the database is asked.
pub(super) const EVERY: Duration = Duration::from_secs(5);
/// An answer that took longer says too little, unless there is none yet.
const PROMPT: Duration = Duration::from_millis(500);
/// From what difference on the log says so, in ms; and how often.
const WARN_FROM: u64 = 1000;
const WARN_EVERY: Duration = Duration::from_mins(10);

/// What is known of the database's time; with SQLite, whose time is the process's, nothing.
#[derive(Default)]
pub(super) struct Clock(Mutex<State>);

#[derive(Default)]
struct State {
    seen: Option<Seen>,
    warned: Option<Instant>,
}

#[derive(Clone, Copy)]
struct Seen {
    /// When, by this machine.
    at: Instant,
    /// What the database's clock showed, in ms since 1970.
    database_ms: i64,
    /// By how much this machine's clock was ahead of it, in ms.
    ahead_ms: i64,
}

impl Clock {
    /// Milliseconds since 1970 by the database's clock; by this machine's where there is no other.
    pub(super) fn now_ms(&self) -> i64 {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner).seen;
        seen.map_or_else(now_ms, |seen| seen.database_ms.saturating_add(millis(seen.at.elapsed())))
    }

    /// By how many milliseconds this machine's clock is ahead of the database's, or behind it.
    pub(super) fn ahead_ms(&self) -> Option<i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).seen.map(|seen| seen.ahead_ms)
    }

    /// Takes in what the database answered to a question that was asked at `asked`.
    pub(super) fn observe(&self, database_ms: i64, asked: Instant) {
        let took = asked.elapsed();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if took > PROMPT && state.seen.is_some() {
            return;
        }
        // Half of the way there, half of the way back.
        let database_ms = database_ms.saturating_add(millis(took / 2));
        let ahead_ms = now_ms().saturating_sub(database_ms);
        state.seen = Some(Seen { at: Instant::now(), database_ms, ahead_ms });
        if ahead_ms.unsigned_abs() <= WARN_FROM {
            state.warned = None;
        } else if state.warned.is_none_or(|warned| warned.elapsed() >= WARN_EVERY) {
            state.warned = Some(Instant::now());
            tracing::warn!(
                ahead_ms,
                "this machine's clock differs from the database's: credentials, uploads, leases and the collection of garbage go \
                 by the database's; set the clock (NTP), since what is kept of upstreams, and the log, go by this machine's"
            );
        }
    }
}

/// In ms, as the database keeps times.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_databases_time_counts_on_and_the_difference_is_known() {
        let clock = Clock::default();
        assert!(clock.ahead_ms().is_none());
        assert!((clock.now_ms() - now_ms()).abs() < 1000);
        let two_days = 2 * 24 * 60 * 60 * 1000;
        clock.observe(now_ms() - two_days, Instant::now());
        assert!((clock.now_ms() - (now_ms() - two_days)).abs() < 1000);
        assert!(clock.ahead_ms().is_some_and(|ahead| (ahead - two_days).abs() < 1000));
    }
}
