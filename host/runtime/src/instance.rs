//! A call in an instance: its slot, turn, limits and clock, and the report at its end. Instances
//! are fresh, except that the next call of a request may continue in the instance of the previous
//! one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use packhouse_store::RepositoryId;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tracing::Instrument;
use wasmtime::component::{Instance, InstancePre};
use wasmtime::{Engine, Store, Trap, UpdateDeadline};

use crate::clock::CallClock;
use crate::config::Limits;
use crate::error::CallError;
use crate::guest_stdio::GuestOutput;
use crate::meters::Meters;
use crate::recording::RecordedPlugin;
use crate::request::RequestHead;
use crate::state::HostState;

/// Runner of a plugin's calls.
pub(crate) struct Runner {
    pub(crate) engine: Engine,
    pub(crate) plugin: Arc<str>,
    pub(crate) limits: Arc<Limits>,
    /// One permit for each slot in the pool that belongs to this plugin. A call waits for a permit,
    /// because wasmtime fails at once if the pool is full.
    slots: Arc<Semaphore>,
    /// Turns: a running call holds one permit until it waits for more than a look-up. None if calls
    /// take no turns.
    pub(crate) turns: Option<Arc<Semaphore>>,
    /// Number of calls that wait for a slot or a turn.
    waiting: AtomicUsize,
    pub(crate) meters: Meters,
    /// Recorder of this plugin's calls. None if the plugin does not belong to a server.
    pub(crate) recorded: Option<RecordedPlugin>,
}

/// Permits that a call holds while it runs.
type CallPermits<'a> = (SemaphorePermit<'a>, Option<OwnedSemaphorePermit>);

/// Names of a call for logs and metrics.
pub(crate) struct CallName {
    pub(crate) function: &'static str,
    pub(crate) format: Arc<str>,
    /// Name of the target, if there is one.
    pub(crate) repository: Option<Arc<str>>,
    /// Identifier of the target, or else of the request's repository.
    pub(crate) repository_id: Option<RepositoryId>,
    /// Head of the request that the call belongs to.
    pub(crate) head: Arc<RequestHead>,
}

impl CallName {
    fn repository(&self) -> &str {
        self.repository.as_deref().unwrap_or_default()
    }
}

/// Result of a call, and the instance that it ran in.
pub(crate) struct FinishedCall<'a, T> {
    pub(crate) result: T,
    pub(crate) instance: ReusableInstance<'a>,
}

/// An instance between two calls of one request, with its slot. The call keeps its turn as well,
/// because nothing waits between the two.
pub(crate) struct ReusableInstance<'a> {
    // The fields drop in this order: the store before the slot, so that there are never more
    // instances than slots.
    store: Store<HostState>,
    instance: Instance,
    _slot: SemaphorePermit<'a>,
}

impl Runner {
    /// Creates a runner with these slots, as many as `limits` allows. Other versions of the format
    /// may share them.
    pub(crate) fn new(engine: Engine, plugin: Arc<str>, limits: Limits, slots: Arc<Semaphore>) -> Runner {
        Runner {
            slots,
            turns: None,
            waiting: AtomicUsize::new(0),
            meters: Meters::new(&plugin),
            limits: Arc::new(limits),
            engine,
            plugin,
            recorded: None,
        }
    }

    /// Runs `body` on a fresh instance of `pre`, and drops the instance.
    pub(crate) async fn run<T>(
        &self,
        name: CallName,
        state: impl FnOnce() -> HostState,
        pre: &InstancePre<HostState>,
        body: impl AsyncFnOnce(&mut Store<HostState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<T, CallError> {
        Ok(self.begin(name, state, pre, body).await?.result)
    }

    /// Runs `body` on a fresh instance of `pre`, and keeps it for the next call of the same
    /// request. An error drops it.
    pub(crate) async fn begin<T>(
        &self,
        name: CallName,
        state: impl FnOnce() -> HostState,
        pre: &InstancePre<HostState>,
        body: impl AsyncFnOnce(&mut Store<HostState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<FinishedCall<'_, T>, CallError> {
        let call = async {
            let (slot, turn) = match self.slot().await {
                Ok(taken) => taken,
                Err(busy) => {
                    self.report(&name, Some(&busy), Duration::ZERO, 0);
                    return Err(busy);
                }
            };
            let mut store = self.store(self.with_tape(&name, state()));
            store.data_mut().turn = turn;
            let entered = self.timed(&name, &mut store, async |store| {
                let instance = pre.instantiate_async(&mut *store).await?;
                Ok((body(store, &instance).await?, instance))
            });
            let (result, instance) = entered.await?;
            Ok(FinishedCall { result, instance: ReusableInstance { store, instance, _slot: slot } })
        };
        let span = self.span(&name);
        call.instrument(span).await
    }

    /// Runs `body` on the instance of an earlier call of the same request, and drops the instance.
    /// The state becomes `next`, and the call's time starts again.
    pub(crate) async fn resume<T>(
        &self,
        name: CallName,
        reused: ReusableInstance<'_>,
        next: HostState,
        body: impl AsyncFnOnce(&mut Store<HostState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<T, CallError> {
        let ReusableInstance { mut store, instance, _slot } = reused;
        store.data_mut().become_next(next);
        self.limit(&mut store);
        let call = self.timed(&name, &mut store, async |store| body(store, &instance).await);
        let span = self.span(&name);
        call.instrument(span).await
    }

    /// Span for debugging. Rendering a span as JSON costs more than everything else around a call,
    /// even if no line is logged in the span. So log lines of calls name plugin, function and
    /// request themselves.
    fn span(&self, name: &CallName) -> tracing::Span {
        tracing::debug_span!(
            "plugin.call",
            plugin = %self.plugin,
            format = %name.format,
            function = name.function,
            repository = name.repository(),
            request_id = &*name.head.request_id,
        )
    }

    /// Runs `call` until it ends or its time is up, and reports the outcome.
    async fn timed<T>(
        &self,
        name: &CallName,
        store: &mut Store<HostState>,
        call: impl AsyncFnOnce(&mut Store<HostState>) -> wasmtime::Result<T>,
    ) -> Result<T, CallError> {
        store.data_mut().note_call(name.function);
        let clock = Arc::clone(&store.data().clock);
        let result = until_expired(&clock, call(&mut *store)).await;
        let result = result.map_err(|error| classify(error, store));
        store.data_mut().end_call(result.as_ref().err());
        self.report(name, result.as_ref().err(), clock.elapsed(), store.data().memory.bytes());
        if let Some(text) = store.data().output.as_ref().and_then(GuestOutput::take) {
            let (plugin, function, request_id) = (&*self.plugin, name.function, &*name.head.request_id);
            tracing::warn!(target: "packhouse::plugin", plugin, function, request_id, "plugin output: {text}");
        }
        result
    }

    /// Waits for a slot and a turn, at most for the configured time.
    async fn slot(&self) -> Result<CallPermits<'_>, CallError> {
        if let Some(taken) = self.free_slot() {
            return Ok(taken);
        }
        let _waiting = WaitingCall::begin(&self.waiting);
        let since = Instant::now();
        let both = async {
            let slot = self.slots.acquire().await?;
            let turn = match self.turns.clone() {
                Some(turns) => Some(turns.acquire_owned().await?),
                None => None,
            };
            Ok::<_, AcquireError>((slot, turn))
        };
        let waited = tokio::time::timeout(self.limits.queue_timeout, both).await;
        self.meters.waited(since.elapsed());
        // The semaphores are never closed, so the only other outcome is a timeout.
        waited.ok().and_then(Result::ok).ok_or(CallError::Busy(self.limits.concurrency))
    }

    /// Returns a slot and a turn if both are free.
    fn free_slot(&self) -> Option<CallPermits<'_>> {
        let slot = self.slots.try_acquire().ok()?;
        let turn = self.turns.clone().map(Semaphore::try_acquire_owned).transpose().ok()?;
        Some((slot, turn))
    }

    /// Number of calls that have a slot, and of calls that wait for a slot or a turn. A call that
    /// waits for a turn has a slot.
    pub(crate) fn calls_now(&self) -> (usize, usize) {
        let running = self.limits.concurrency.saturating_sub(self.slots.available_permits());
        (running, self.waiting.load(Ordering::Relaxed))
    }

    fn store(&self, state: HostState) -> Store<HostState> {
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| &mut state.memory);
        store.epoch_deadline_callback(|store| {
            store.data().clock.check().map(|()| UpdateDeadline::Yield(1)).map_err(Into::into)
        });
        self.limit(&mut store);
        store
    }

    /// Adds a tape to the state of a call that is to be recorded.
    fn with_tape(&self, name: &CallName, mut state: HostState) -> HostState {
        let Some(recorded) = &self.recorded else { return state };
        if recorded.recorder.is_armed() {
            state.tape = recorded.tape(name.repository_id, &name.head, &self.limits);
        }
        state
    }

    /// Sets the limits that each call starts with.
    fn limit(&self, store: &mut Store<HostState>) {
        store.set_hostcall_fuel(self.limits.hostcall_bytes);
        store.set_max_component_handles(self.limits.handles);
        store.set_epoch_deadline(1);
    }

    fn report(&self, name: &CallName, error: Option<&CallError>, spent: Duration, memory: usize) {
        let (function, outcome) = (name.function, error.map_or("ok", CallError::kind));
        self.meters.count(function, outcome, spent, memory);
        self.meters.ended(error.is_some_and(|error| !error.is_callers()));
        let (plugin, duration_ms) = (&*self.plugin, spent.as_secs_f64() * 1e3);
        let (repository, request_id) = (name.repository(), &*name.head.request_id);
        match error {
            // Unauthenticated clients can cause any number of `TooMany`.
            None | Some(CallError::TooMany { .. } | CallError::PolicyDenied(_)) => {}
            Some(error) if error.is_temporary() => {
                tracing::error!(
                    plugin,
                    function,
                    repository,
                    request_id,
                    outcome,
                    duration_ms,
                    memory_bytes = memory,
                    "plugin call not served: {error}"
                );
            }
            Some(error) => {
                tracing::error!(
                    plugin,
                    function,
                    repository,
                    request_id,
                    outcome,
                    duration_ms,
                    memory_bytes = memory,
                    "plugin call failed: {error}"
                );
            }
        }
    }
}

/// Counts a waiting call until it is dropped, which also happens if its client disconnects.
struct WaitingCall<'a>(&'a AtomicUsize);

impl<'a> WaitingCall<'a> {
    fn begin(waiting: &'a AtomicUsize) -> WaitingCall<'a> {
        waiting.fetch_add(1, Ordering::Relaxed);
        WaitingCall(waiting)
    }
}

impl Drop for WaitingCall<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs a call next to a timer, because epochs do not interrupt a call that waits in the host.
async fn until_expired<T>(
    clock: &CallClock,
    call: impl Future<Output = wasmtime::Result<T>>,
) -> wasmtime::Result<T> {
    tokio::select! {
        biased;
        result = call => result,
        expired = clock.expired() => Err(expired.into()),
    }
}

/// Converts an error of wasmtime, and distinguishes failures that the host raised from failures of
/// the guest.
fn classify(error: wasmtime::Error, store: &Store<HostState>) -> CallError {
    let error = match error.downcast::<CallError>() {
        Ok(raised) => return raised,
        Err(error) => error,
    };
    let cause = error.root_cause().to_string();
    tracing::debug!("how the guest ended: {error:?}");
    let state = store.data();
    // wasmtime has no error types for these two limits, so their messages identify them.
    if cause.contains("fuel allocated for hostcalls has been exhausted") {
        return CallError::HostcallBytes(state.limits.hostcall_bytes);
    }
    if cause.contains("store handle limit exceeded") {
        return CallError::Handles(state.limits.handles);
    }
    match (error.downcast_ref::<Trap>(), state.memory.refused()) {
        (Some(Trap::UnreachableCodeReached), Some((requested, limit))) => {
            CallError::Memory { requested, limit, trap: cause }
        }
        _ => CallError::Trap(cause),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use tokio::sync::oneshot;
    use wasmtime::component::Component;

    use super::*;
    use crate::engine::{EngineOptions, engine};
    use crate::state::Phase;

    fn name() -> CallName {
        CallName {
            function: "handle",
            format: "turns".into(),
            repository: None,
            repository_id: None,
            head: Arc::default(),
        }
    }

    #[tokio::test]
    async fn core_instances_share_the_memory_of_a_call() {
        const PAGE: usize = 64 << 10;
        let text = r#"(component
            (core module $module
                (memory 1)
                (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))
            (core instance $a (instantiate $module))
            (core instance $b (instantiate $module))
            (func (export "a") (param "pages" u32) (result s32) (canon lift (core func $a "grow")))
            (func (export "b") (param "pages" u32) (result s32) (canon lift (core func $b "grow"))))"#;
        let engine = engine(&EngineOptions { pool: None, memory_bytes: 4 * PAGE }).unwrap();
        let component = Component::new(&engine, wat::parse_str(text).unwrap()).unwrap();
        let linked = crate::imports::linker(&engine, false).unwrap().instantiate_pre(&component).unwrap();
        let limits = Limits { memory_bytes: 4 * PAGE, ..Limits::default() };
        let runner = Runner::new(engine, "pages".into(), limits, Arc::new(Semaphore::new(1)));
        let state = || {
            let (plugin, limits) = (Arc::clone(&runner.plugin), Arc::clone(&runner.limits));
            HostState::within(Phase::Serve, plugin, limits, Arc::default())
        };
        let call = runner.run(name(), state, &linked, async |store, instance| {
            let a = instance.get_typed_func::<(u32,), (i32,)>(&mut *store, "a")?;
            let b = instance.get_typed_func::<(u32,), (i32,)>(&mut *store, "b")?;
            let (before,) = a.call_async(&mut *store, (2,)).await?;
            let (refused,) = b.call_async(&mut *store, (1,)).await?;
            Ok(([before, refused], store.data().memory.refused()))
        });
        let (grown, refused) = call.await.unwrap();
        assert_eq!(grown, [1, -1], "two initial pages and two more are all four");
        assert_eq!(refused, Some((5 * PAGE, 4 * PAGE)));
    }

    #[tokio::test]
    async fn a_call_that_gives_up_its_turn_keeps_its_slot() {
        let engine = engine(&EngineOptions { pool: None, memory_bytes: 1 << 20 }).unwrap();
        let component = Component::new(&engine, wat::parse_str("(component)").unwrap()).unwrap();
        let linked = crate::imports::linker(&engine, false).unwrap().instantiate_pre(&component).unwrap();
        let limits = Limits { concurrency: 3, ..Limits::default() };
        let mut runner = Runner::new(engine, "turns".into(), limits, Arc::new(Semaphore::new(3)));
        runner.turns = Some(Arc::new(Semaphore::new(1)));
        let state = || {
            let (plugin, limits) = (Arc::clone(&runner.plugin), Arc::clone(&runner.limits));
            HostState::within(Phase::Serve, plugin, limits, Arc::default())
        };
        let (give_up_turn, turn_given_up) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel::<()>();
        let first = runner.run(name(), state, &linked, async |store, _| {
            turn_given_up.await.unwrap();
            store.data_mut().turn = None;
            ended.await.unwrap();
            Ok(())
        });
        let second = async {
            let mut second = Box::pin(runner.run(name(), state, &linked, async |_, _| Ok(())));
            assert!(futures::poll!(&mut second).is_pending());
            assert_eq!(runner.calls_now().1, 1, "it waits");
            give_up_turn.send(()).unwrap();
            second.await.unwrap();
            assert_eq!(runner.calls_now(), (1, 0), "the first call continues");
            // The ended call has returned its turn.
            runner.run(name(), state, &linked, async |_, _| Ok(())).await.unwrap();
            end.send(()).unwrap();
        };
        let (first, ()) = tokio::join!(first, second);
        first.unwrap();
    }
}
