//! A circuit breaker: no requests are sent for a while to an upstream that fails again and again, or that asked to wait.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of failures in a row that opens it.
const FAILURES: u32 = 5;
/// For how long it is open at first, and at most. Each further failure doubles the time.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_mins(1);
/// The longest wait that an upstream may ask for: one that fails, and one that limits the rate of
/// requests.
const LONGEST_ASKED: Duration = Duration::from_mins(10);
const LONGEST_THROTTLED: Duration = Duration::from_hours(24);
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
    /// Whether the latest failure limited the rate of requests.
    is_throttled: bool,
}

/// Why no request may be sent now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Pause {
    /// How long to wait.
    pub wait: Duration,
    /// Whether the upstream limits the rate of requests.
    pub is_throttled: bool,
}

/// A failure of an upstream, as far as it decides for how long the upstream is left alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UpstreamFailure {
    /// How long the upstream asked to wait.
    pub retry_after: Option<Duration>,
    /// Whether the upstream limits the rate of requests.
    pub is_throttled: bool,
}

impl CircuitBreaker {
    /// Whether a request may be sent now.
    pub(crate) fn admit(&self, now: Instant) -> Result<(), Pause> {
        let mut state = self.state();
        match state.open_until {
            Some(until) if until > now => Err(Pause { wait: until - now, is_throttled: state.is_throttled }),
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

    /// The upstream failed.
    pub(crate) fn failed(&self, failure: UpstreamFailure, now: Instant) {
        let UpstreamFailure { retry_after, is_throttled } = failure;
        let mut state = self.state();
        state.is_throttled = is_throttled;
        state.failures = state.failures.saturating_add(1);
        let beyond = state.failures.checked_sub(FAILURES);
        let own = beyond.map(|beyond| SHORTEST.saturating_mul(1 << beyond.min(8)).min(LONGEST));
        let longest = if is_throttled { LONGEST_THROTTLED } else { LONGEST_ASKED };
        let asked = retry_after.map(|wait| wait.min(longest));
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
            breaker.failed(UpstreamFailure::default(), start);
        }
        let pause = |wait: Duration| Err(Pause { wait, is_throttled: false });
        assert_eq!(breaker.admit(start), pause(SHORTEST));
        let later = start + SHORTEST;
        assert!(breaker.admit(later).is_ok(), "one tries");
        assert_eq!(breaker.admit(later), pause(TRIAL), "and no other");
        breaker.failed(UpstreamFailure::default(), later);
        assert_eq!(breaker.admit(later), pause(SHORTEST * 2));
        breaker.succeeded();
        assert!(breaker.admit(later).is_ok() && breaker.admit(later).is_ok());
    }

    #[test]
    fn what_the_upstream_asks_for_counts_up_to_a_bound() {
        let (breaker, start) = (CircuitBreaker::default(), Instant::now());
        let asked = |seconds: u64, is_throttled: bool| {
            let retry_after = Some(Duration::from_secs(seconds));
            breaker.failed(UpstreamFailure { retry_after, is_throttled }, start);
            breaker.admit(start).unwrap_err()
        };
        let pause = |wait: Duration, is_throttled: bool| Pause { wait, is_throttled };
        assert_eq!(asked(30, false), pause(Duration::from_secs(30), false));
        assert_eq!(asked(1_000_000, false), pause(LONGEST_ASKED, false));
        assert_eq!(asked(21_600, true), pause(Duration::from_hours(6), true), "as a hub asks");
        assert_eq!(asked(1_000_000, true), pause(LONGEST_THROTTLED, true));
    }
}
