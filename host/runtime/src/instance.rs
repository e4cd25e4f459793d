//! One call in one fresh instance: its turn, its limits, its clock, and what is told of it afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tracing::Instrument;
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Engine, Store, Trap, UpdateDeadline};

use crate::clock::CallClock;
use crate::config::Limits;
use crate::error::CallError;
use crate::meters::Meters;
use crate::state::HostState;

/// What runs a plugin's calls.
pub(crate) struct Runner {
    pub(crate) engine: Engine,
    pub(crate) plugin: Arc<str>,
    pub(crate) limits: Arc<Limits>,
    /// One permit for each place in the pool that is this plugin's: a full pool would be an error, not a queue.
    places: Semaphore,
    /// Calls that wait for a place.
    waiting: AtomicUsize,
    pub(crate) meters: Meters,
}

/// A call as logs and metrics name it.
pub(crate) struct CallName {
    pub(crate) function: &'static str,
    pub(crate) format: Arc<str>,
    pub(crate) repository: String,
    pub(crate) request_id: String,
}

impl Runner {
    pub(crate) fn new(engine: Engine, plugin: Arc<str>, limits: Limits) -> Runner {
        Runner {
            places: Semaphore::new(limits.concurrency),
            waiting: AtomicUsize::new(0),
            meters: Meters::new(&plugin),
            limits: Arc::new(limits),
            engine,
            plugin,
        }
    }

    /// Runs `body` on a fresh instance of `pre`. The instance is gone when this returns.
    pub(crate) async fn run<T>(
        &self,
        name: CallName,
        state: impl FnOnce() -> HostState,
        pre: &InstancePre<HostState>,
        body: impl AsyncFnOnce(&mut Store<HostState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<T, CallError> {
        let span = tracing::info_span!(
            "plugin.call",
            plugin = %self.plugin,
            format = %name.format,
            function = name.function,
            repository = %name.repository,
            request_id = %name.request_id,
            duration_ms = tracing::field::Empty,
            memory_bytes = tracing::field::Empty,
            outcome = tracing::field::Empty,
        );
        self.run_within(name.function, state, pre, body).instrument(span).await
    }

    async fn run_within<T>(
        &self,
        function: &'static str,
        state: impl FnOnce() -> HostState,
        pre: &InstancePre<HostState>,
        body: impl AsyncFnOnce(&mut Store<HostState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<T, CallError> {
        let place = self.place().await;
        let (result, spent, memory) = match place {
            Err(busy) => (Err(busy), Duration::ZERO, 0),
            Ok(_place) => {
                let mut store = self.store(state());
                let clock = Arc::clone(&store.data().clock);
                let result = timed(&clock, enter(&mut store, pre, body)).await;
                let result = result.map_err(|error| classify(error, &store));
                (result, clock.elapsed(), store.data().memory.peak())
            }
        };
        self.report(function, result.as_ref().err(), spent, memory);
        result
    }

    /// Waits for a place, no longer than the configured time.
    async fn place(&self) -> Result<SemaphorePermit<'_>, CallError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let _waiting = Waiting::begin(&self.waiting);
        let waited = tokio::time::timeout(self.limits.queue_timeout, self.places.acquire()).await;
        // The semaphore is never closed, so the only other outcome is that time ran out.
        waited.ok().and_then(Result::ok).ok_or(CallError::Busy(self.limits.concurrency))
    }

    /// How many calls run, and how many wait for a place.
    pub(crate) fn calls_now(&self) -> (usize, usize) {
        let running = self.limits.concurrency.saturating_sub(self.places.available_permits());
        (running, self.waiting.load(Ordering::Relaxed))
    }

    fn store(&self, state: HostState) -> Store<HostState> {
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.memory);
        store.set_hostcall_fuel(self.limits.hostcall_bytes);
        store.set_max_component_handles(self.limits.handles);
        let clock = Arc::clone(&store.data().clock);
        store.epoch_deadline_callback(move |_| {
            clock.check().map(|()| UpdateDeadline::Yield(1)).map_err(Into::into)
        });
        store.set_epoch_deadline(1);
        store
    }

    fn report(&self, function: &'static str, error: Option<&CallError>, spent: Duration, memory: usize) {
        let outcome = error.map_or("ok", CallError::kind);
        let span = tracing::Span::current();
        span.record("duration_ms", spent.as_secs_f64() * 1e3);
        span.record("memory_bytes", memory);
        span.record("outcome", outcome);
        self.meters.count(function, outcome, spent, memory);
        match error {
            // Of the second a stranger can make as many as he likes.
            None | Some(CallError::TooMany { .. }) => {}
            Some(error) if error.is_temporary() => {
                tracing::error!(plugin = %self.plugin, function, outcome, "a plugin's call was not served: {error}");
            }
            Some(error) => {
                tracing::error!(plugin = %self.plugin, function, outcome, "a plugin's call failed: {error}");
            }
        }
    }
}

/// Counts a call as one that waits until it is dropped, as it is when its client goes away.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(waiting: &'a AtomicUsize) -> Waiting<'a> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(waiting)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Epochs do not reach a call that waits in the host, so a timer runs beside it.
async fn timed<T>(clock: &CallClock, call: impl Future<Output = wasmtime::Result<T>>) -> wasmtime::Result<T> {
    tokio::select! {
        biased;
        result = call => result,
        expired = clock.expired() => Err(expired.into()),
    }
}

async fn enter<T>(
    store: &mut Store<HostState>,
    pre: &InstancePre<HostState>,
    body: impl AsyncFnOnce(&mut Store<HostState>, &Instance) -> wasmtime::Result<T>,
) -> wasmtime::Result<T> {
    let instance = pre.instantiate_async(&mut *store).await?;
    body(store, &instance).await
}

/// Tells a failure that the host raised itself from one of the guest's.
fn classify(error: wasmtime::Error, store: &Store<HostState>) -> CallError {
    let error = match error.downcast::<CallError>() {
        Ok(raised) => return raised,
        Err(error) => error,
    };
    let said = error.root_cause().to_string();
    tracing::debug!("how the guest ended: {error:?}");
    let state = store.data();
    // wasmtime has no type of its own for these two.
    if said.contains("fuel allocated for hostcalls has been exhausted") {
        return CallError::HostcallBytes(state.limits.hostcall_bytes);
    }
    if said.contains("store handle limit exceeded") {
        return CallError::Handles(state.limits.handles);
    }
    match (error.downcast_ref::<Trap>(), state.memory.refused()) {
        (Some(Trap::UnreachableCodeReached), Some((wanted, limit))) => {
            CallError::Memory { wanted, limit, trap: said }
        }
        _ => CallError::Trap(said),
    }
}
