//! Leaves an upstream alone that fails again and again, or that asked to be left alone.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures in a row after which it is left alone.
const FAILURES: u32 = 5;
/// For how long at first, and at most; each failure after that doubles it.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_mins(1);
/// The longest time for which an upstream's own `Retry-After` counts.
const LONGEST_ASKED: Duration = Duration::from_mins(10);
/// While one request finds out whether it answers again, all others go on failing for this long.
const TRIAL: Duration = Duration::from_secs(30);

/// One upstream's state.
#[derive(Default)]
pub struct Breaker {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failures: u32,
    closed_until: Option<Instant>,
}

impl Breaker {
    /// Whether a request may go out now; else how long to wait.
    pub fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.state();
        match state.closed_until {
            Some(until) if until > now => Err(until - now),
            Some(_) => {
                state.closed_until = Some(now + TRIAL);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The upstream answered.
    pub fn answered(&self) {
        *self.state() = State::default();
    }

    /// It failed; `wait` is what it asked for itself.
    pub fn failed(&self, wait: Option<Duration>, now: Instant) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        let beyond = state.failures.checked_sub(FAILURES);
        let own = beyond.map(|beyond| SHORTEST.saturating_mul(1 << beyond.min(8)).min(LONGEST));
        let asked = wait.map(|wait| wait.min(LONGEST_ASKED));
        state.closed_until = own.max(asked).map(|wait| now + wait);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_close_it_and_one_request_tries_again() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        for _ in 0..FAILURES {
            assert!(breaker.admit(start).is_ok());
            breaker.failed(None, start);
        }
        assert_eq!(breaker.admit(start), Err(SHORTEST));
        let later = start + SHORTEST;
        assert!(breaker.admit(later).is_ok(), "one tries");
        assert_eq!(breaker.admit(later), Err(TRIAL), "and no other");
        breaker.failed(None, later);
        assert_eq!(breaker.admit(later), Err(SHORTEST * 2));
        breaker.answered();
        assert!(breaker.admit(later).is_ok() && breaker.admit(later).is_ok());
    }

    #[test]
    fn what_the_upstream_asks_for_counts_up_to_a_bound() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        breaker.failed(Some(Duration::from_secs(30)), start);
        assert_eq!(breaker.admit(start), Err(Duration::from_secs(30)));
        breaker.failed(Some(Duration::from_secs(1_000_000)), start);
        assert_eq!(breaker.admit(start), Err(LONGEST_ASKED));
    }
}
