//! Time of a call: the guest's own time, the host's time for work on bulk bytes, and a limit for
//! each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::config::Limits;
use crate::error::CallError;

/// Clock of one call. It starts when the instance is created, after the body has arrived and a slot
/// is free.
pub(crate) struct CallClock {
    started: Instant,
    limit: Duration,
    host_limit: Duration,
    /// Nanoseconds of finished host work.
    host_work: AtomicU64,
    /// Start of the running host work, in nanoseconds since `started` plus one. 0 if none is
    /// running. A call has one thread of control, so at most one runs.
    host_work_since: AtomicU64,
}

impl CallClock {
    pub(crate) fn start(limits: &Limits) -> CallClock {
        CallClock {
            started: Instant::now(),
            limit: limits.call_timeout,
            host_limit: limits.host_work_timeout,
            host_work: AtomicU64::new(0),
            host_work_since: AtomicU64::new(0),
        }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Counts time as host work until the guard is dropped.
    pub(crate) fn begin_host_work(&self) -> HostWork<'_> {
        self.host_work_since.store(nanos(self.started.elapsed()) + 1, Ordering::Relaxed);
        HostWork(self)
    }

    /// Returns the time left before the call must end, or zero.
    fn remaining(&self) -> Duration {
        let elapsed = self.started.elapsed();
        let host = Duration::from_nanos(self.host_work.load(Ordering::Relaxed)) + self.under_way(elapsed);
        let own = elapsed.saturating_sub(host);
        let own_left = self.limit.saturating_sub(own);
        let host_left = self.host_limit.saturating_sub(host);
        // Only one of the two budgets shrinks at a time. The smaller one gives the time of the next
        // check.
        own_left.min(host_left)
    }

    fn under_way(&self, elapsed: Duration) -> Duration {
        match self.host_work_since.load(Ordering::Relaxed) {
            0 => Duration::ZERO,
            since => elapsed.saturating_sub(Duration::from_nanos(since - 1)),
        }
    }

    /// Returns `Deadline` when time is up.
    pub(crate) fn check(&self) -> Result<(), CallError> {
        if self.remaining().is_zero() { Err(CallError::Deadline(self.elapsed())) } else { Ok(()) }
    }

    /// Waits until time is up. This also ends host calls, which epochs do not interrupt.
    pub(crate) async fn expired(&self) -> CallError {
        while let Ok(()) = self.check() {
            tokio::time::sleep(self.remaining()).await;
        }
        CallError::Deadline(self.elapsed())
    }
}

/// Guard that counts time as host work until it is dropped.
pub(crate) struct HostWork<'a>(&'a CallClock);

impl Drop for HostWork<'_> {
    fn drop(&mut self) {
        let spent = self.0.under_way(self.0.started.elapsed());
        self.0.host_work.fetch_add(nanos(spent), Ordering::Relaxed);
        self.0.host_work_since.store(0, Ordering::Relaxed);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(limit: Duration, host_limit: Duration) -> CallClock {
        CallClock::start(&Limits { call_timeout: limit, host_work_timeout: host_limit, ..Limits::default() })
    }

    #[test]
    fn a_call_without_time_must_end() {
        assert!(clock(Duration::ZERO, Duration::MAX).check().is_err());
        assert!(clock(Duration::MAX, Duration::ZERO).check().is_err());
        assert!(clock(Duration::MAX, Duration::MAX).check().is_ok());
    }

    #[test]
    fn the_hosts_work_is_counted_apart() {
        let clock = clock(Duration::MAX, Duration::MAX);
        let host_work = clock.begin_host_work();
        let before = clock.host_work.load(Ordering::Relaxed);
        drop(host_work);
        assert!(clock.host_work.load(Ordering::Relaxed) >= before);
        assert_eq!(clock.host_work_since.load(Ordering::Relaxed), 0);
    }
}
