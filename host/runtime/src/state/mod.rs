//! Host-side state of one call: its handles, input and uses, and the blobs that are not durable
//! yet.

pub(crate) mod blobs;
pub(crate) mod host;
pub(crate) mod http;
pub(crate) mod memo;
pub(crate) mod phase;
pub(crate) mod records;
pub(crate) mod transaction;
pub(crate) mod upstream;
pub(crate) mod wasi_clock_random;

use std::collections::HashSet;
use std::sync::Arc;

use packhouse_store::{Algorithm, AuditEvent, Blob, RepositoryId, Store, TrashId};
use tokio::sync::OwnedSemaphorePermit;
use wasmtime::component::{Resource, ResourceTable, ResourceTableError};
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::call::{Appended, Call, Part};
use crate::clock::CallClock;
use crate::config::Limits;
use crate::description::TagKeys;
use crate::error::CallError;
use crate::guest_stdio::GuestOutput;
use crate::limits::MemoryLimiter;
use crate::memos::PluginMemos;
use crate::package_bounds::PackageBounds;
use crate::reads::Reads;
use crate::recording::Tape;
use crate::request::{Action, Looked, RequestHead};
use crate::services::Services;
use crate::view::RepositoryView;

use blobs::Volume;
use host::LogAndClock;
use memo::Making;
pub(crate) use phase::Phase;
pub(crate) use records::Access;
use records::RepositoryRep;
use upstream::UsedReplies;
use wasi_clock_random::{ClockAndRandom, WasiSources};

/// Most blobs of a publish that the host remembers for a repair, in case the publish stores
/// nothing.
const MOST_SENT: usize = 100;
/// Most remembered blobs outside memory. Each takes space in the storage until the call ends.
const MOST_SENT_STORED: usize = 4;
/// Most bytes of remembered blobs in memory, all together. A publish can decode far more bytes than
/// it sends.
const MOST_SENT_IN_MEMORY: usize = 16 << 20;

/// Data of one wasmtime store, dropped with the instance.
pub(crate) struct HostState {
    pub(crate) phase: Phase,
    /// Returned when the call waits for more than a look-up.
    pub(crate) turn: Option<OwnedSemaphorePermit>,
    pub(crate) table: ResourceTable,
    pub(crate) memory: MemoryLimiter,
    pub(crate) limits: Arc<Limits>,
    pub(crate) clock: Arc<CallClock>,
    pub(crate) plugin: Arc<str>,
    pub(crate) access: Access,
    pub(crate) head: Arc<RequestHead>,
    pub(crate) body: Option<Blob>,
    pub(crate) parts: Vec<Part>,
    pub(crate) appended: Option<Appended>,
    pub(crate) services: Services,
    /// True if a publish relies on the blobs that are found.
    pub(crate) for_publish: bool,
    /// Packages that commits may concern.
    pub(crate) packages: Option<PackageBounds>,
    /// Audit event stored with each commit.
    pub(crate) audit: Option<AuditEvent>,
    /// Keys of records that hold tags.
    pub(crate) tags: Vec<TagKeys>,
    /// Trash entry that holds what each commit changes.
    pub(crate) trash: Option<TrashId>,
    /// Original publication time, if it was published elsewhere before.
    pub(crate) published_at: Option<u64>,
    /// True if the call publishes something that another server served before.
    pub(crate) is_moved: bool,
    /// Blobs that the guest kept and no commit has taken yet.
    pub(crate) blobs_to_keep: Vec<(RepositoryId, Blob)>,
    /// Bytes of a publish whose SHA-256 the guest knows.
    pub(crate) sent: Vec<Blob>,
    /// True if the answer may depend on more than the request, the settings and reads of
    /// repositories.
    pub(crate) uncacheable: bool,
    /// True if a requested blob was missing.
    pub(crate) blob_missing: bool,
    /// Parts of the request that were read.
    pub(crate) looked: Looked,
    pub(crate) reads: Reads,
    /// Newest revision of the records that were read from the database. It is 0 before the first
    /// read, and none if a record was missing.
    pub(crate) newest_found: Option<u64>,
    /// True if the call began to change records. From then on it reads from the database.
    pub(crate) changes: bool,
    /// True if the call committed something.
    pub(crate) committed: bool,
    /// The first moment at which the passing of time may change the answer, in ms since 1970. At
    /// that moment, an upstream's reply stops being fresh, or a withheld release becomes old
    /// enough. None if time changes nothing.
    pub(crate) until: Option<i64>,
    pub(crate) replies: UsedReplies,
    /// Pieces that the plugin made earlier. None if nothing is memoized.
    pub(crate) memos: Option<PluginMemos>,
    pub(crate) making: Option<Making>,
    pub(crate) host: LogAndClock,
    pub(crate) volume: Volume,
    /// The target repository, which staged bytes are counted for.
    pub(crate) repository: Option<RepositoryId>,
    storage: Option<Store>,
    wasi: Option<WasiCtx>,
    /// Tracks the use of WASI's clocks and random numbers.
    clock_and_random: Option<ClockAndRandom>,
    /// Output of the guest through WASI.
    pub(crate) output: Option<GuestOutput>,
    /// Tape of a recorded or replayed call.
    pub(crate) tape: Option<Tape>,
}

impl HostState {
    /// Creates the state of a call that may use all imports. Without `storage`, an import that
    /// needs it ends the call.
    pub(crate) fn new(
        plugin: Arc<str>,
        limits: Arc<Limits>,
        storage: Option<Store>,
        access: Access,
        call: Call,
    ) -> HostState {
        let mut table = ResourceTable::new();
        table.set_max_capacity(limits.handles);
        let published_at = call.moved.and_then(|moved| moved.published_at);
        HostState {
            phase: Phase::Serve,
            turn: None,
            table,
            memory: MemoryLimiter::new(Arc::clone(&plugin), limits.memory_bytes),
            clock: Arc::new(CallClock::start(&limits)),
            limits,
            plugin,
            access,
            head: call.head,
            body: call.body,
            parts: call.parts,
            appended: call.appended,
            services: call.services,
            for_publish: call.for_publish,
            packages: call.packages,
            audit: call.audit,
            tags: Vec::new(),
            trash: call.trash,
            blobs_to_keep: Vec::new(),
            sent: Vec::new(),
            uncacheable: false,
            blob_missing: false,
            looked: Looked::default(),
            reads: Reads::default(),
            newest_found: Some(0),
            changes: false,
            committed: false,
            until: None,
            replies: UsedReplies::default(),
            memos: None,
            making: None,
            host: LogAndClock::at(published_at),
            published_at,
            is_moved: call.moved.is_some(),
            volume: Volume::default(),
            repository: call.target.as_ref().map(|view| view.id),
            storage,
            wasi: None,
            clock_and_random: None,
            output: None,
            tape: None,
        }
    }

    /// Creates the state of a call that is limited to `phase`, without storage, services or
    /// repositories.
    pub(crate) fn within(
        phase: Phase,
        plugin: Arc<str>,
        limits: Arc<Limits>,
        head: Arc<RequestHead>,
    ) -> HostState {
        let call = Call::new(head, Action::Open);
        HostState { phase, ..HostState::new(plugin, limits, None, Access::ReadOnly, call) }
    }

    /// Turns this state into the state of the request's next call in the same instance. Time and
    /// counts start again. The guest may still use its handles and its memory, so they stay, as do
    /// the parts of the request that it read.
    pub(crate) fn become_next(&mut self, next: HostState) {
        let before = std::mem::replace(self, next);
        (self.turn, self.table) = (before.turn, before.table);
        self.memory.continue_from(&before.memory);
        self.uncacheable |= before.uncacheable;
        self.looked = self.looked.max(before.looked);
        // The guest still has the streams of its first call.
        (self.wasi, self.output, self.clock_and_random) =
            (before.wasi, before.output, before.clock_and_random);
        if let Some(tracker) = &self.clock_and_random {
            tracker.continue_in(self.phase);
        }
        self.tape = before.tape;
    }

    /// Adds the pieces that the plugin made earlier.
    pub(crate) fn with_memos(self, memos: PluginMemos) -> HostState {
        HostState { memos: Some(memos), ..self }
    }

    /// Creates a handle. Returns `Handles` if the call has too many.
    pub(crate) fn push<T: Send + 'static>(&mut self, value: T) -> Result<Resource<T>, CallError> {
        self.table.push(value).map_err(|error| self.table_error(&error))
    }

    pub(crate) fn held<T: 'static>(&self, handle: &Resource<T>) -> Result<&T, CallError> {
        self.table.get(handle).map_err(|error| self.table_error(&error))
    }

    pub(crate) fn held_mut<T: 'static>(&mut self, handle: &Resource<T>) -> Result<&mut T, CallError> {
        let limit = self.limits.handles;
        self.table.get_mut(handle).map_err(|error| table_error(&error, limit))
    }

    /// Takes back a handle with its object.
    pub(crate) fn take<T: 'static>(&mut self, handle: Resource<T>) -> Result<T, CallError> {
        self.table.delete(handle).map_err(|error| self.table_error(&error))
    }

    fn table_error(&self, error: &ResourceTableError) -> CallError {
        table_error(error, self.limits.handles)
    }

    /// Remembers the bytes of a publish when the guest learns their SHA-256. If the publish stores
    /// nothing, these bytes may replace lost stored bytes.
    pub(crate) fn note_sent(&mut self, blob: &Blob) {
        let was_sent = self.access == Access::Intent(Action::Publish) && blob.origin().is_none();
        if !was_sent || self.sent.len() >= MOST_SENT || blob.known(Algorithm::Sha256).is_none() {
            return;
        }
        let stored = self.sent.iter().filter(|sent| sent.in_memory().is_none()).count();
        if blob.in_memory().is_none() && stored >= MOST_SENT_STORED {
            return;
        }
        let in_memory = |blob: &Blob| blob.in_memory().map_or(0, |bytes| bytes.len());
        let held: usize = self.sent.iter().map(in_memory).sum();
        if held.saturating_add(in_memory(blob)) <= MOST_SENT_IN_MEMORY {
            self.sent.push(blob.clone());
        }
    }

    /// Returns the bytes of a publish that stored nothing, each once, and the repository that they
    /// were sent to.
    pub(crate) fn take_sent(&mut self) -> Option<(RepositoryId, Vec<Blob>)> {
        let mut digests = HashSet::new();
        let mut sent = std::mem::take(&mut self.sent);
        sent.retain(|blob| blob.known(Algorithm::Sha256).is_some_and(|digest| digests.insert(digest.bytes)));
        self.repository.filter(|_| !self.committed && !sent.is_empty()).map(|id| (id, sent))
    }

    pub(crate) fn storage(&self) -> Result<Store, CallError> {
        self.storage.clone().ok_or_else(|| CallError::Trap("this call has no storage".to_owned()))
    }

    /// Notes the use of WASI's clocks and random numbers. Call it before `uncacheable` is read.
    pub(crate) fn note_clock_and_random(&mut self) {
        self.uncacheable |= self.clock_and_random.as_ref().is_some_and(ClockAndRandom::take);
    }

    /// Notes a time, in ms since 1970, at which the answer may change. None means never.
    pub(crate) fn note_until(&mut self, at: Option<i64>) {
        let Some(at) = at else { return };
        self.until = Some(self.until.map_or(at, |until| until.min(at)));
    }

    /// Creates the handle of the call's optional target for `handle` and `check`.
    pub(crate) fn target(
        &mut self,
        view: Option<RepositoryView>,
    ) -> Result<Option<Resource<RepositoryRep>>, CallError> {
        view.map(|view| self.repository(view)).transpose()
    }

    /// Creates the handle of a required target. From now on, staged bytes of the call count for
    /// this repository.
    pub(crate) fn repository(&mut self, view: RepositoryView) -> Result<Resource<RepositoryRep>, CallError> {
        self.repository = Some(view.id);
        self.given(RepositoryRep { view, target: true })
    }

    /// Handles of the other repositories of the call.
    pub(crate) fn others(
        &mut self,
        views: Vec<RepositoryView>,
    ) -> Result<Vec<Resource<RepositoryRep>>, CallError> {
        views.into_iter().map(|view| self.given(RepositoryRep { view, target: false })).collect()
    }

    fn given(&mut self, repository: RepositoryRep) -> Result<Resource<RepositoryRep>, CallError> {
        let view = self.tape.is_some().then(|| repository.view.clone());
        let is_target = repository.target;
        let handle = self.push(repository)?;
        if let Some(view) = view {
            self.note_repository(handle.rep(), &view, is_target);
        }
        Ok(handle)
    }
}

fn table_error(error: &ResourceTableError, limit: usize) -> CallError {
    match error {
        ResourceTableError::Full => CallError::Handles(limit),
        other => CallError::Trap(format!("an invalid handle: {other}")),
    }
}

/// Creates the WASI context at its first use, because only plugins that the configuration names
/// link WASI. It has no files, no network, no environment and no arguments.
impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let output = self.output.get_or_insert_default();
        WasiCtxView {
            ctx: self.wasi.get_or_insert_with(|| {
                let mut builder = WasiCtxBuilder::new();
                builder.stdout(output.clone()).stderr(output.clone());
                builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
                let tracker =
                    self.clock_and_random.get_or_insert_with(|| ClockAndRandom::in_phase(self.phase));
                let sources = self.tape.as_ref().map_or_else(WasiSources::of_machine, Tape::sources);
                tracker.watch(&mut builder, sources);
                builder.build()
            }),
            table: &mut self.table,
        }
    }
}

#[cfg(test)]
mod tests {
    use packhouse_store::StoreConfig;

    use super::*;
    use crate::state::http::IntentRep;

    #[test]
    fn the_next_call_starts_fresh_except_for_state_of_the_guest() {
        let limits = Arc::new(Limits::default());
        let head = Arc::new(RequestHead::default());
        let mut state = HostState::within(Phase::Route, "x".into(), Arc::clone(&limits), Arc::clone(&head));
        let held = state.push(IntentRep::default()).unwrap();
        (state.uncacheable, state.looked) = (true, Looked::AtQuery);
        let call = Call { for_publish: true, ..Call::new(head, Action::Read) };
        let next = HostState::new("x".into(), limits, None, Access::Intent(Action::Read), call);
        let clock = Arc::clone(&next.clock);
        state.become_next(next);
        assert!(Arc::ptr_eq(&state.clock, &clock), "the call's time started again");
        assert_eq!((state.phase, state.access), (Phase::Serve, Access::Intent(Action::Read)));
        assert!(state.for_publish && state.uncacheable && state.held(&held).is_ok());
        assert_eq!(state.looked, Looked::AtQuery);
    }

    #[tokio::test]
    async fn bytes_of_a_publish_are_remembered_within_bounds() {
        let (head, limits) = (Arc::new(RequestHead::default()), Arc::new(Limits::default()));
        let call = Call::new(head, Action::Publish);
        let mut state = HostState::new("p".into(), limits, None, Access::Intent(Action::Publish), call);
        let size = MOST_SENT_IN_MEMORY / 4;
        for number in 0..6_u8 {
            let blob = Blob::from_bytes(vec![number; size].into());
            blob.digest(Algorithm::Sha256).await.unwrap();
            state.note_sent(&blob);
        }
        assert_eq!(state.sent.len(), 4);
        state.sent.clear();
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(StoreConfig::new(folder.path())).await.unwrap();
        for number in 0..=MOST_SENT_STORED {
            let mut staged = store.stage(&[], 1 << 20);
            let byte = u8::try_from(number).unwrap();
            staged.write(vec![byte; 1 << 19].into()).await.unwrap();
            state.note_sent(&staged.finish().await.unwrap());
        }
        assert_eq!(state.sent.len(), MOST_SENT_STORED);
        drop(state);
        store.close().await;
    }

    #[test]
    fn staged_bytes_count_for_the_target() {
        let (head, limits) = (Arc::new(RequestHead::default()), Arc::new(Limits::default()));
        let call = Call::new(head, Action::Publish);
        let mut state = HostState::new("p".into(), limits, None, Access::Intent(Action::Publish), call);
        let view = |id| RepositoryView {
            id: RepositoryId(id),
            revision: 0,
            name: "r".into(),
            kind: "group".into(),
            settings: "{}".into(),
        };
        assert!(state.others(vec![view(2)]).is_ok());
        assert_eq!(state.repository, None, "only the target counts");
        assert!(state.target(Some(view(1))).is_ok());
        assert_eq!(state.repository, Some(RepositoryId(1)));
    }
}
