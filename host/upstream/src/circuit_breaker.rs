//! A circuit breaker: no requests are sent for a while to an upstream that fails again and again, or that asked to wait.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of failures in a row that opens it.
const FAILURES: u32 = 5;
/// For how long it is open at first, and at most. Each further failure doubles the time.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_mins(1);
/// The longest `Retry-After` of an upstream that counts.
const LONGEST_ASKED: Duration = Duration::from_mins(10);
/// For how long all other requests go on failing while one finds out whether the upstream answers again.
const TRIAL: Duration = Duration::from_secs(30);

/// The breaker of one upstream.
#[derive(Default)]
pub(crate) struct CircuitBreaker {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    failures: u32,
    open_until: Option<Instant>,
}

impl CircuitBreaker {
    /// Whether a request may be sent now; otherwise how long to wait.
    pub(crate) fn admit(&self, now: Instant) -> Result<(), Duration> {
        let mut state = self.state();
        match state.open_until {
            Some(until) if until > now => Err(until - now),
            Some(_) => {
                state.open_until = Some(now + TRIAL);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The upstream answered.
    pub(crate) fn succeeded(&self) {
        *self.state() = State::default();
    }

    /// The upstream failed. `retry_after` is how long it asked to wait.
    pub(crate) fn failed(&self, retry_after: Option<Duration>, now: Instant) {
        let mut state = self.state();
        state.failures = state.failures.saturating_add(1);
        let beyond = state.failures.checked_sub(FAILURES);
        let own = beyond.map(|beyond| SHORTEST.saturating_mul(1 << beyond.min(8)).min(LONGEST));
        let asked = retry_after.map(|wait| wait.min(LONGEST_ASKED));
        state.open_until = own.max(asked).map(|wait| now + wait);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_open_it_and_one_request_tries_again() {
        let (breaker, start) = (CircuitBreaker::default(), Instant::now());
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
        breaker.succeeded();
        assert!(breaker.admit(later).is_ok() && breaker.admit(later).is_ok());
    }

    #[test]
    fn what_the_upstream_asks_for_counts_up_to_a_bound() {
        let (breaker, start) = (CircuitBreaker::default(), Instant::now());
        breaker.failed(Some(Duration::from_secs(30)), start);
        assert_eq!(breaker.admit(start), Err(Duration::from_secs(30)));
        breaker.failed(Some(Duration::from_secs(1_000_000)), start);
        assert_eq!(breaker.admit(start), Err(LONGEST_ASKED));
    }
}
