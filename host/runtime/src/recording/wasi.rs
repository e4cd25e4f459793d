//! WASI's clocks and random numbers in a call that is recorded or replayed: made of what stands in the recording.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

use super::file::RecordedWasi;
use crate::state::outside::Sources;

/// How much later it is each time that a clock is asked.
const STEP: Duration = Duration::from_micros(1);

impl RecordedWasi {
    /// A guest's clocks and random numbers, made of it.
    pub(super) fn sources(self) -> Sources {
        Sources {
            random: StdRng::seed_from_u64(self.seed),
            insecure_random: StdRng::seed_from_u64(!self.seed),
            table_seed: u128::from(self.seed),
            wall_clock: Box::new(Clock::at(Duration::from_millis(self.clock_ms))),
            monotonic_clock: Box::new(Clock::at(Duration::ZERO)),
        }
    }
}

/// A clock that goes on when it is asked.
struct Clock {
    from: Duration,
    asked: AtomicU64,
}

impl Clock {
    fn at(from: Duration) -> Clock {
        Clock { from, asked: AtomicU64::new(0) }
    }

    fn tell(&self) -> Duration {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        self.from.saturating_add(STEP.saturating_mul(u32::try_from(asked).unwrap_or(u32::MAX)))
    }
}

impl HostWallClock for Clock {
    fn resolution(&self) -> Duration {
        STEP
    }

    fn now(&self) -> Duration {
        self.tell()
    }
}

impl HostMonotonicClock for Clock {
    fn resolution(&self) -> u64 {
        u64::try_from(STEP.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.tell().as_nanos()).unwrap_or(u64::MAX)
    }
}
