//! WASI's clocks and random numbers in a recorded or replayed call, derived from values in the
//! recording.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand::SeedableRng as _;
use rand::rngs::StdRng;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock};

use super::file::RecordedWasi;
use crate::state::wasi_clock_random::WasiSources;

/// Step of a clock at each reading.
const STEP: Duration = Duration::from_micros(1);

impl RecordedWasi {
    /// Returns a guest's clocks and random numbers.
    pub(super) fn sources(self) -> WasiSources {
        WasiSources {
            random: StdRng::seed_from_u64(self.seed),
            insecure_random: StdRng::seed_from_u64(!self.seed),
            table_seed: u128::from(self.seed),
            wall_clock: Box::new(SteppingClock::at(Duration::from_millis(self.clock_ms))),
            monotonic_clock: Box::new(SteppingClock::at(Duration::ZERO)),
        }
    }
}

/// A clock that advances at each reading.
struct SteppingClock {
    from: Duration,
    readings: AtomicU64,
}

impl SteppingClock {
    fn at(from: Duration) -> SteppingClock {
        SteppingClock { from, readings: AtomicU64::new(0) }
    }

    fn tell(&self) -> Duration {
        let readings = self.readings.fetch_add(1, Ordering::Relaxed);
        self.from.saturating_add(STEP.saturating_mul(u32::try_from(readings).unwrap_or(u32::MAX)))
    }
}

impl HostWallClock for SteppingClock {
    fn resolution(&self) -> Duration {
        STEP
    }

    fn now(&self) -> Duration {
        self.tell()
    }
}

impl HostMonotonicClock for SteppingClock {
    fn resolution(&self) -> u64 {
        u64::try_from(STEP.as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.tell().as_nanos()).unwrap_or(u64::MAX)
    }
}
