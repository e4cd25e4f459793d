//! WASI's clocks and random numbers of one call. The host notes their use like that of the
//! contract's `host.now`, because an answer that used them is not cacheable. Results of `describe`
//! and `route` may depend only on their arguments. So in these two calls, clocks stand still and
//! random numbers are always the same.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _, TryRng};
use wasmtime_wasi::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use super::Phase;

/// Seed of guests' hash tables. Clients cannot guess it. All calls of a server share it, so that
/// the order of a table's entries does not vary between answers.
static TABLES: LazyLock<u128> = LazyLock::new(rand::random);

/// Tracker of a guest's use of clocks and random numbers. Cheap to clone; all clones share one
/// state.
#[derive(Clone)]
pub(crate) struct ClockAndRandom(Arc<UseState>);

struct UseState {
    /// True if the request is being served. Before, the values are fixed.
    serves: AtomicBool,
    was_used: AtomicBool,
}

/// Sources of time and random numbers while a request is served.
pub(crate) struct WasiSources {
    pub(crate) random: StdRng,
    pub(crate) insecure_random: StdRng,
    pub(crate) table_seed: u128,
    pub(crate) wall_clock: Box<dyn HostWallClock>,
    pub(crate) monotonic_clock: Box<dyn HostMonotonicClock>,
}

impl WasiSources {
    pub(crate) fn of_machine() -> WasiSources {
        WasiSources {
            random: rand::make_rng(),
            insecure_random: rand::make_rng(),
            table_seed: *TABLES,
            wall_clock: wall_clock(),
            monotonic_clock: monotonic_clock(),
        }
    }
}

impl ClockAndRandom {
    pub(crate) fn in_phase(phase: Phase) -> ClockAndRandom {
        let serves = AtomicBool::new(phase == Phase::Serve);
        ClockAndRandom(Arc::new(UseState { serves, was_used: AtomicBool::new(false) }))
    }

    /// Continues with the guest's next call, which has this phase.
    pub(crate) fn continue_in(&self, phase: Phase) {
        self.0.serves.store(phase == Phase::Serve, Ordering::Relaxed);
    }

    /// Returns true if anything was used since the previous call.
    pub(crate) fn take(&self) -> bool {
        self.0.was_used.swap(false, Ordering::Relaxed)
    }

    /// Gives these sources to a guest and tracks their use.
    pub(crate) fn watch(&self, builder: &mut WasiCtxBuilder, sources: WasiSources) {
        builder
            .secure_random(TrackedSource::of(self, sources.random))
            .insecure_random(TrackedSource::of(self, sources.insecure_random))
            .insecure_random_seed(sources.table_seed)
            .wall_clock(TrackedSource::of(self, sources.wall_clock))
            .monotonic_clock(TrackedSource::of(self, sources.monotonic_clock));
    }

    fn is_served(&self) -> bool {
        let serves = self.0.serves.load(Ordering::Relaxed);
        if serves {
            self.0.was_used.store(true, Ordering::Relaxed);
        }
        serves
    }
}

/// A source whose use is tracked.
struct TrackedSource<T> {
    tracker: ClockAndRandom,
    source: T,
    /// Fixed values that replace the source before the request is served.
    fixed: StdRng,
}

impl<T> TrackedSource<T> {
    fn of(tracker: &ClockAndRandom, source: T) -> TrackedSource<T> {
        TrackedSource { tracker: tracker.clone(), source, fixed: StdRng::seed_from_u64(0) }
    }
}

impl TrackedSource<StdRng> {
    fn random(&mut self) -> &mut StdRng {
        if self.tracker.is_served() { &mut self.source } else { &mut self.fixed }
    }
}

impl TryRng for TrackedSource<StdRng> {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.random().next_u32())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.random().next_u64())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.random().fill_bytes(bytes);
        Ok(())
    }
}

impl HostWallClock for TrackedSource<Box<dyn HostWallClock>> {
    fn resolution(&self) -> Duration {
        self.source.resolution()
    }

    fn now(&self) -> Duration {
        if self.tracker.is_served() { self.source.now() } else { Duration::ZERO }
    }
}

impl HostMonotonicClock for TrackedSource<Box<dyn HostMonotonicClock>> {
    fn resolution(&self) -> u64 {
        self.source.resolution()
    }

    fn now(&self) -> u64 {
        if self.tracker.is_served() { self.source.now() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn use_while_serving_is_tracked_and_values_before_are_fixed() {
        let tracker = ClockAndRandom::in_phase(Phase::Route);
        let mut chance = TrackedSource::of(&tracker, rand::make_rng::<StdRng>());
        let time = TrackedSource::of(&tracker, wall_clock() as Box<dyn HostWallClock>);
        let mut again = TrackedSource::of(&tracker, rand::make_rng::<StdRng>());
        assert_eq!(chance.next_u64(), again.next_u64());
        assert_eq!((time.now(), tracker.take()), (Duration::ZERO, false));
        tracker.continue_in(Phase::Serve);
        assert!(time.now() > Duration::ZERO);
        assert!(tracker.take() && !tracker.take(), "it is reported once");
        assert_ne!(chance.next_u64(), again.next_u64());
        assert!(tracker.take());
    }
}
