//! Clock that measures leases. It cannot be set, and it continues while the process is stopped or
//! the machine sleeps.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Clock of the system, because `CLOCK_MONOTONIC` does not count the time while the machine sleeps.
#[cfg(target_os = "linux")]
const CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const CLOCK: ClockId = ClockId::Monotonic;

/// A time in nanoseconds since the machine started; 0 is before all others.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Moment(pub(super) u64);

impl Moment {
    pub(super) fn now() -> Moment {
        let now = clock_gettime(CLOCK);
        let (seconds, nanos) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
        Moment(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
    }

    pub(super) fn plus(self, duration: Duration) -> Moment {
        Moment(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    pub(super) fn elapsed(self) -> Duration {
        Duration::from_nanos(Moment::now().0.saturating_sub(self.0))
    }
}
