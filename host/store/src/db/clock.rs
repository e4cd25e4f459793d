//! Clock of the database, by which servers that share it compare their times. Between queries, the
//! time advances by this machine's monotonic clock, so reading it costs no statement.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::ids::now_ms;

/// Interval of the queries for the database's time.
pub(super) const EVERY: Duration = Duration::from_secs(5);
/// Maximum duration of a useful query. A slower answer is too inaccurate, unless it is the first
/// one.
const PROMPT: Duration = Duration::from_millis(500);
/// Clock difference in ms from which a warning is logged, and the interval of the warnings.
const WARN_FROM: u64 = 1000;
const WARN_EVERY: Duration = Duration::from_mins(10);

/// Last known time of the database. It stays empty with SQLite, where the process's own clock is
/// used.
#[derive(Default)]
pub(super) struct Clock(Mutex<ClockState>);

#[derive(Default)]
struct ClockState {
    reading: Option<ClockReading>,
    warned: Option<Instant>,
}

#[derive(Clone, Copy)]
struct ClockReading {
    /// Monotonic time of this reading.
    at: Instant,
    /// Time of the database's clock, in ms since 1970.
    database_ms: i64,
    /// Lead of this machine's clock over the database's, in ms.
    ahead_ms: i64,
}

impl Clock {
    /// Returns the time in ms since 1970 by the database's clock, or by this machine's if no other
    /// is known.
    pub(super) fn now_ms(&self) -> i64 {
        let reading = self.0.lock().unwrap_or_else(PoisonError::into_inner).reading;
        reading
            .map_or_else(now_ms, |reading| reading.database_ms.saturating_add(millis(reading.at.elapsed())))
    }

    /// Returns the lead of this machine's clock over the database's in ms. It is negative if this
    /// clock is behind.
    pub(super) fn ahead_ms(&self) -> Option<i64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).reading.map(|reading| reading.ahead_ms)
    }

    /// Records the database's answer to a query that began at `started`.
    pub(super) fn observe(&self, database_ms: i64, started: Instant) {
        let took = started.elapsed();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if took > PROMPT && state.reading.is_some() {
            return;
        }
        // Half the round trip passed on the way back.
        let database_ms = database_ms.saturating_add(millis(took / 2));
        let ahead_ms = now_ms().saturating_sub(database_ms);
        state.reading = Some(ClockReading { at: Instant::now(), database_ms, ahead_ms });
        if ahead_ms.unsigned_abs() <= WARN_FROM {
            state.warned = None;
        } else if state.warned.is_none_or(|warned| warned.elapsed() >= WARN_EVERY) {
            state.warned = Some(Instant::now());
            tracing::warn!(
                ahead_ms,
                "this machine's clock differs from the database's: synchronize the clocks (NTP). \
                 Credentials, uploads, leases and garbage collection use the database's clock; cached \
                 upstream responses and the log use this machine's"
            );
        }
    }
}

/// Returns the duration in ms, the database's unit of time.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_time_advances_and_the_difference_is_known() {
        let clock = Clock::default();
        assert!(clock.ahead_ms().is_none());
        assert!((clock.now_ms() - now_ms()).abs() < 1000);
        let two_days = 2 * 24 * 60 * 60 * 1000;
        clock.observe(now_ms() - two_days, Instant::now());
        assert!((clock.now_ms() - (now_ms() - two_days)).abs() < 1000);
        assert!(clock.ahead_ms().is_some_and(|ahead| (ahead - two_days).abs() < 1000));
    }
}
