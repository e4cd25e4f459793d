//! A call in an instance: its turn, its limits, its clock, and what is told of it afterwards. An instance is fresh, but that a request's
//! next call may go on in the one that the request's call before has left.

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
use crate::meters::Meters;
use crate::recording::RecordedPlugin;
use crate::request::RequestHead;
use crate::said::Said;
use crate::state::HostState;

/// What runs a plugin's calls.
pub(crate) struct Runner {
    pub(crate) engine: Engine,
    pub(crate) plugin: Arc<str>,
    pub(crate) limits: Arc<Limits>,
    /// One permit for each place in the pool that is this plugin's: a full pool would be an error, not a queue.
    places: Arc<Semaphore>,
    /// One permit for each call that runs, until it waits for more than a look-up; none where calls take no turns.
    pub(crate) turns: Option<Arc<Semaphore>>,
    /// A place of calls aside.
    pub(crate) aside: Arc<Semaphore>,
    /// Calls that wait for a place or a turn.
    waiting: AtomicUsize,
    pub(crate) meters: Meters,
    /// Whose calls may be recorded; none of what is no server's plugin.
    pub(crate) recorded: Option<RecordedPlugin>,
}

/// What a call has while it runs.
type Taken<'a> = (SemaphorePermit<'a>, Option<OwnedSemaphorePermit>);

/// A call as logs and metrics name it.
pub(crate) struct CallName {
    pub(crate) function: &'static str,
    pub(crate) format: Arc<str>,
    /// The target's; none where there is none.
    pub(crate) repository: Option<Arc<str>>,
    /// The target's identifier, else that of the request's.
    pub(crate) repository_id: Option<RepositoryId>,
    /// Of the request that the call is for.
    pub(crate) head: Arc<RequestHead>,
}

impl CallName {
    fn repository(&self) -> &str {
        self.repository.as_deref().unwrap_or_default()
    }

    fn is_aside(&self) -> bool {
        self.head.aside.is_some()
    }
}

/// What came of a call, and the instance that it ran in.
pub(crate) struct Begun<'a, T> {
    pub(crate) result: T,
    pub(crate) instance: KeptInstance<'a>,
}

/// An instance between two calls of one request, with its place among the plugin's, and its turn: nothing is waited for between the two.
pub(crate) struct KeptInstance<'a> {
    // Dropped before the place is free, so that there are never more instances than places.
    store: Store<HostState>,
    instance: Instance,
    _place: SemaphorePermit<'a>,
}

impl Runner {
    /// With these places, which others of its format may share: as many as `limits` say.
    pub(crate) fn new(engine: Engine, plugin: Arc<str>, limits: Limits, places: Arc<Semaphore>) -> Runner {
        Runner {
            places,
            turns: None,
            aside: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            meters: Meters::new(&plugin),
            limits: Arc::new(limits),
            engine,
            plugin,
            recorded: None,
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
        Ok(self.begin(name, state, pre, body).await?.result)
    }

    /// Runs `body` on a fresh instance of `pre`, which is kept for the next call of the same request. It is gone after an error.
    pub(crate) async fn begin<T>(
        &self,
        name: CallName,
        state: impl FnOnce() -> HostState,
        pre: &InstancePre<HostState>,
        body: impl AsyncFnOnce(&mut Store<HostState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<Begun<'_, T>, CallError> {
        let call = async {
            let (place, turn) = match self.place(&name).await {
                Ok(taken) => taken,
                Err(busy) => {
                    self.report(&name, Some(&busy), Duration::ZERO, 0);
                    return Err(busy);
                }
            };
            let mut store = self.store(self.taped(&name, state()));
            store.data_mut().turn = turn;
            let entered = self.timed(&name, &mut store, async |store| {
                let instance = pre.instantiate_async(&mut *store).await?;
                Ok((body(store, &instance).await?, instance))
            });
            let (result, instance) = entered.await?;
            Ok(Begun { result, instance: KeptInstance { store, instance, _place: place } })
        };
        let span = self.span(&name);
        call.instrument(span).await
    }

    /// Runs `body` on an instance that an earlier call of the same request ran in. Its state becomes `next`, its time begins anew, and
    /// it is gone when this returns.
    pub(crate) async fn go_on<T>(
        &self,
        name: CallName,
        kept: KeptInstance<'_>,
        next: HostState,
        body: impl AsyncFnOnce(&mut Store<HostState>, &Instance) -> wasmtime::Result<T>,
    ) -> Result<T, CallError> {
        let KeptInstance { mut store, instance, _place } = kept;
        store.data_mut().become_next(next);
        self.limit(&mut store);
        let call = self.timed(&name, &mut store, async |store| body(store, &instance).await);
        let span = self.span(&name);
        call.instrument(span).await
    }

    /// Of whoever looks closer: a span is written as JSON whether or not a line is logged in it, which costs more than all else that
    /// surrounds a call. The lines of calls name plugin, function and request themselves.
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

    /// Runs `call` until it ends or its time is up, and tells what came of it.
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
        if let Some(text) = store.data().said.as_ref().and_then(Said::take) {
            let (plugin, function, request_id) = (&*self.plugin, name.function, &*name.head.request_id);
            if name.is_aside() {
                tracing::debug!(target: "packhouse::plugin", plugin, function, request_id, "aside: {text}");
            } else {
                tracing::warn!(target: "packhouse::plugin", plugin, function, request_id, "it printed: {text}");
            }
        }
        result
    }

    /// Waits for a place and a turn, no longer than the configured time.
    async fn place(&self, name: &CallName) -> Result<Taken<'_>, CallError> {
        let busy = |_| CallError::Busy(self.limits.concurrency);
        if name.is_aside() {
            return Ok((self.aside.acquire().await.map_err(busy)?, None));
        }
        if let Some(taken) = self.free_place() {
            return Ok(taken);
        }
        let _waiting = Waiting::begin(&self.waiting);
        let since = Instant::now();
        let both = async {
            let place = self.places.acquire().await?;
            let turn = match self.turns.clone() {
                Some(turns) => Some(turns.acquire_owned().await?),
                None => None,
            };
            Ok::<_, AcquireError>((place, turn))
        };
        let waited = tokio::time::timeout(self.limits.queue_timeout, both).await;
        self.meters.waited(since.elapsed());
        // The semaphores are never closed, so the only other outcome is that time ran out.
        waited.ok().and_then(Result::ok).ok_or(CallError::Busy(self.limits.concurrency))
    }

    /// A place and a turn, where neither has to be waited for.
    fn free_place(&self) -> Option<Taken<'_>> {
        let place = self.places.try_acquire().ok()?;
        let turn = self.turns.clone().map(Semaphore::try_acquire_owned).transpose().ok()?;
        Some((place, turn))
    }

    /// How many calls have a place, and how many wait for one or for a turn; who waits for a turn has a place.
    pub(crate) fn calls_now(&self) -> (usize, usize) {
        let running = self.limits.concurrency.saturating_sub(self.places.available_permits());
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

    /// The state of a call with a tape, where that is to be recorded.
    fn taped(&self, name: &CallName, mut state: HostState) -> HostState {
        let Some(recorded) = &self.recorded else { return state };
        state.tape = match &name.head.aside {
            Some(aside) if aside.is_recorded => recorded.tape_aside(aside, &name.head, &self.limits),
            None if recorded.recorder.is_armed() => {
                recorded.tape(name.repository_id, &name.head, &self.limits)
            }
            _ => None,
        };
        state
    }

    /// What each call begins with.
    fn limit(&self, store: &mut Store<HostState>) {
        store.set_hostcall_fuel(self.limits.hostcall_bytes);
        store.set_max_component_handles(self.limits.handles);
        store.set_epoch_deadline(1);
    }

    fn report(&self, name: &CallName, error: Option<&CallError>, spent: Duration, memory: usize) {
        let (function, outcome) = (name.function, error.map_or("ok", CallError::kind));
        if name.is_aside() {
            tracing::debug!(plugin = &*self.plugin, function, outcome, ?error, "a call aside has ended");
            return;
        }
        self.meters.count(function, outcome, spent, memory);
        self.meters.ended(error.is_some_and(|error| !error.is_callers()));
        let (plugin, duration_ms) = (&*self.plugin, spent.as_secs_f64() * 1e3);
        let (repository, request_id) = (name.repository(), &*name.head.request_id);
        match error {
            // Of the second a stranger can make as many as he likes.
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
                    "a plugin's call was not served: {error}"
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
                    "a plugin's call failed: {error}"
                );
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code: to fail is how it speaks")]

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
        assert_eq!(grown, [1, -1], "two pages to begin with and two more are all four");
        assert_eq!(refused, Some((5 * PAGE, 4 * PAGE)));
    }

    #[tokio::test]
    async fn a_call_that_lets_others_have_its_turn_keeps_its_place() {
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
        let (let_others, told) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel::<()>();
        let first = runner.run(name(), state, &linked, async |store, _| {
            told.await.unwrap();
            store.data_mut().turn = None;
            ended.await.unwrap();
            Ok(())
        });
        let second = async {
            let mut second = Box::pin(runner.run(name(), state, &linked, async |_, _| Ok(())));
            assert!(futures::poll!(&mut second).is_pending());
            assert_eq!(runner.calls_now().1, 1, "it waits");
            let_others.send(()).unwrap();
            second.await.unwrap();
            assert_eq!(runner.calls_now(), (1, 0), "the first goes on");
            // What has ended has given its turn back.
            runner.run(name(), state, &linked, async |_, _| Ok(())).await.unwrap();
            end.send(()).unwrap();
        };
        let (first, ()) = tokio::join!(first, second);
        first.unwrap();
    }
}
