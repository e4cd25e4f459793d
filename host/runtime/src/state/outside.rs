//! WASI's clocks and random numbers of one call: what a guest asks of them is noted like the contract's `host.now`, for an answer that used
//! them is not kept. Before the request is served, in `describe` and `route`, whose answers may depend on nothing but their
//! arguments, clocks stand still and chance is always the same.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _, TryRng};
use wasmtime_wasi::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, WasiCtxBuilder};

use super::Phase;

/// Seeds guests' hash tables: no stranger can guess it, and all calls of a server have the same, so that the order of a table's entries
/// is no chance that an answer depends on.
static TABLES: LazyLock<u128> = LazyLock::new(rand::random);

/// What a guest has asked of clocks and chance. Cheap to clone; all clones are one.
#[derive(Clone)]
pub(crate) struct Outside(Arc<Asked>);

struct Asked {
    /// Whether the request is served: before that the answers are fixed.
    serves: AtomicBool,
    was_asked: AtomicBool,
}

/// Where clocks and random numbers come from while a request is served.
pub(crate) struct Sources {
    pub(crate) random: StdRng,
    pub(crate) insecure_random: StdRng,
    pub(crate) table_seed: u128,
    pub(crate) wall_clock: Box<dyn HostWallClock>,
    pub(crate) monotonic_clock: Box<dyn HostMonotonicClock>,
}

impl Sources {
    /// This machine's.
    pub(crate) fn of_machine() -> Sources {
        Sources {
            random: rand::make_rng(),
            insecure_random: rand::make_rng(),
            table_seed: *TABLES,
            wall_clock: wall_clock(),
            monotonic_clock: monotonic_clock(),
        }
    }
}

impl Outside {
    pub(crate) fn in_phase(phase: Phase) -> Outside {
        let serves = AtomicBool::new(phase == Phase::Serve);
        Outside(Arc::new(Asked { serves, was_asked: AtomicBool::new(false) }))
    }

    /// The same guest's next call is of this phase.
    pub(crate) fn go_on_in(&self, phase: Phase) {
        self.0.serves.store(phase == Phase::Serve, Ordering::Relaxed);
    }

    /// Whether anything was asked since this was asked last.
    pub(crate) fn take(&self) -> bool {
        self.0.was_asked.swap(false, Ordering::Relaxed)
    }

    /// Gives a guest these sources.
    pub(crate) fn watch(&self, builder: &mut WasiCtxBuilder, sources: Sources) {
        builder
            .secure_random(Watched::of(self, sources.random))
            .insecure_random(Watched::of(self, sources.insecure_random))
            .insecure_random_seed(sources.table_seed)
            .wall_clock(Watched::of(self, sources.wall_clock))
            .monotonic_clock(Watched::of(self, sources.monotonic_clock));
    }

    fn is_served(&self) -> bool {
        let serves = self.0.serves.load(Ordering::Relaxed);
        if serves {
            self.0.was_asked.store(true, Ordering::Relaxed);
        }
        serves
    }
}

/// A source that tells when it is asked.
struct Watched<T> {
    outside: Outside,
    source: T,
    /// What is told in its place before the request is served.
    fixed: StdRng,
}

impl<T> Watched<T> {
    fn of(outside: &Outside, source: T) -> Watched<T> {
        Watched { outside: outside.clone(), source, fixed: StdRng::seed_from_u64(0) }
    }
}

impl Watched<StdRng> {
    fn random(&mut self) -> &mut StdRng {
        if self.outside.is_served() { &mut self.source } else { &mut self.fixed }
    }
}

impl TryRng for Watched<StdRng> {
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

impl HostWallClock for Watched<Box<dyn HostWallClock>> {
    fn resolution(&self) -> Duration {
        self.source.resolution()
    }

    fn now(&self) -> Duration {
        if self.outside.is_served() { self.source.now() } else { Duration::ZERO }
    }
}

impl HostMonotonicClock for Watched<Box<dyn HostMonotonicClock>> {
    fn resolution(&self) -> u64 {
        self.source.resolution()
    }

    fn now(&self) -> u64 {
        if self.outside.is_served() { self.source.now() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_while_a_request_is_served_is_noted_and_before_it_is_fixed() {
        let outside = Outside::in_phase(Phase::Route);
        let mut chance = Watched::of(&outside, rand::make_rng::<StdRng>());
        let time = Watched::of(&outside, wall_clock() as Box<dyn HostWallClock>);
        let mut again = Watched::of(&outside, rand::make_rng::<StdRng>());
        assert_eq!(chance.next_u64(), again.next_u64());
        assert_eq!((time.now(), outside.take()), (Duration::ZERO, false));
        outside.go_on_in(Phase::Serve);
        assert!(time.now() > Duration::ZERO);
        assert!(outside.take() && !outside.take(), "it is told once");
        assert_ne!(chance.next_u64(), again.next_u64());
        assert!(outside.take());
    }
}
