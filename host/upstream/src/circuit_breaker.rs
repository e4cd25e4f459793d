//! A circuit breaker. It blocks requests for a while to an upstream that fails repeatedly or asked
//! to wait.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of failures in a row that opens the breaker.
const FAILURES: u32 = 5;
/// How long the breaker is open at first, and at most. Each further failure doubles the time.
const SHORTEST: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_mins(1);
/// Longest wait that a failing upstream may request, and longest wait for an upstream that limits
/// the rate of requests.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(10);
const LONGEST_THROTTLED: Duration = Duration::from_hours(24);
/// How long other requests keep failing while one request tests the upstream.
const TRIAL: Duration = Duration::from_secs(30);

/// The circuit breaker of one upstream.
#[derive(Default)]
pub(crate) struct CircuitBreaker {
    state: Mutex<BreakerState>,
}

#[derive(Default)]
struct BreakerState {
    failures: u32,
    open_until: Option<Instant>,
    /// True if the latest failure was a rate limit.
    is_throttled: bool,
}

/// The reason why no request may be sent now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Pause {
    /// Time until the next request is allowed.
    pub wait: Duration,
    /// True if the upstream limits the rate of requests.
    pub is_throttled: bool,
}

/// The parts of an upstream's failure that determine how long no requests are sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct UpstreamFailure {
    /// Wait time that the upstream requested.
    pub retry_after: Option<Duration>,
    /// True if the upstream limits the rate of requests.
    pub is_throttled: bool,
}

impl CircuitBreaker {
    /// Fails if no request may be sent now.
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

    /// Records a response of the upstream.
    pub(crate) fn succeeded(&self) {
        *self.state() = BreakerState::default();
    }

    /// Records a failure of the upstream.
    pub(crate) fn failed(&self, failure: UpstreamFailure, now: Instant) {
        let UpstreamFailure { retry_after, is_throttled } = failure;
        let mut state = self.state();
        state.is_throttled = is_throttled;
        state.failures = state.failures.saturating_add(1);
        let beyond = state.failures.checked_sub(FAILURES);
        let own = beyond.map(|beyond| SHORTEST.saturating_mul(1 << beyond.min(8)).min(LONGEST));
        let longest = if is_throttled { LONGEST_THROTTLED } else { LONGEST_RETRY_AFTER };
        let requested = retry_after.map(|wait| wait.min(longest));
        state.open_until = own.max(requested).map(|wait| now + wait);
    }

    fn state(&self) -> std::sync::MutexGuard<'_, BreakerState> {
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
    fn a_requested_wait_is_bounded() {
        let (breaker, start) = (CircuitBreaker::default(), Instant::now());
        let pause_after = |seconds: u64, is_throttled: bool| {
            let retry_after = Some(Duration::from_secs(seconds));
            breaker.failed(UpstreamFailure { retry_after, is_throttled }, start);
            breaker.admit(start).unwrap_err()
        };
        let pause = |wait: Duration, is_throttled: bool| Pause { wait, is_throttled };
        assert_eq!(pause_after(30, false), pause(Duration::from_secs(30), false));
        assert_eq!(pause_after(1_000_000, false), pause(LONGEST_RETRY_AFTER, false));
        assert_eq!(pause_after(21_600, true), pause(Duration::from_hours(6), true), "as Docker Hub requests");
        assert_eq!(pause_after(1_000_000, true), pause(LONGEST_THROTTLED, true));
    }
}
