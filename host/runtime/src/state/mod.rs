//! What one call holds on the host's side: its handles, what it was given, what it used, and what it has yet to make durable.

pub(crate) mod blobs;
pub(crate) mod host;
pub(crate) mod http;
pub(crate) mod memo;
pub(crate) mod outside;
pub(crate) mod phase;
pub(crate) mod records;
pub(crate) mod transaction;
pub(crate) mod upstream;

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
use crate::limits::MemoryLimiter;
use crate::memos::PluginMemos;
use crate::package_bounds::PackageBounds;
use crate::reads::Reads;
use crate::recording::Tape;
use crate::request::{Action, Looked, RequestHead};
use crate::said::Said;
use crate::services::Services;
use crate::view::RepositoryView;

use blobs::Volume;
use host::LogAndClock;
use memo::Making;
use outside::{Outside, Sources};
pub(crate) use phase::Phase;
pub(crate) use records::Access;
use records::RepositoryRep;
use upstream::UsedReplies;

/// Blobs of a publish that are remembered, for the case that it stores nothing.
const MOST_SENT: usize = 100;
/// Those of them that are not in memory: each takes room in the storage until the call has ended.
const MOST_SENT_STORED: usize = 4;
/// Bytes that these may hold in memory together: a publish can decode far more than it sends.
const MOST_SENT_IN_MEMORY: usize = 16 << 20;

/// The data of one store; dropped with the instance.
pub(crate) struct HostState {
    pub(crate) phase: Phase,
    /// Given back when the call waits for more than a look-up.
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
    /// Whether a publish relies on the blobs that are found.
    pub(crate) for_publish: bool,
    /// Which packages commits may be about.
    pub(crate) packages: Option<PackageBounds>,
    /// What is remembered with each commit.
    pub(crate) audit: Option<AuditEvent>,
    /// Which of the records that a commit changes hold tags.
    pub(crate) tags: Vec<TagKeys>,
    /// What keeps what each commit changes.
    pub(crate) trash: Option<TrashId>,
    /// When what is shown came into the world, where that was not now.
    pub(crate) published_at: Option<u64>,
    /// Whether the call publishes something that another server served before.
    pub(crate) is_moved: bool,
    /// Kept by the guest and not yet handed to a commit.
    pub(crate) kept: Vec<(RepositoryId, Blob)>,
    /// Bytes that came with a publish and whose SHA-256 the guest knows.
    pub(crate) sent: Vec<Blob>,
    /// Whether the answer may depend on more than the request, the settings and what was read of repositories.
    pub(crate) uncacheable: bool,
    /// Whether a blob was asked for that is not there.
    pub(crate) blob_missing: bool,
    /// What of the request was looked at.
    pub(crate) looked: Looked,
    /// What was read of repositories.
    pub(crate) reads: Reads,
    /// The newest revision of the records that were read from the database; 0 where none was, none where one was not there.
    pub(crate) newest_found: Option<u64>,
    /// Whether the call began to change records: what it reads from then on is read from the database.
    pub(crate) changes: bool,
    /// Whether the call has committed something.
    pub(crate) committed: bool,
    /// The first moment at which the answer may be another because time has passed: what it used of an upstream is no longer
    /// fresh then, or a release that was withheld from it is old enough. In ms since 1970; none where time changes nothing of it.
    pub(crate) until: Option<i64>,
    pub(crate) replies: UsedReplies,
    /// What the plugin made before; none where nothing is to be remembered.
    pub(crate) memos: Option<PluginMemos>,
    /// The piece that it makes.
    pub(crate) making: Option<Making>,
    pub(crate) host: LogAndClock,
    pub(crate) volume: Volume,
    /// The target, among whose bytes counts what is staged.
    pub(crate) repository: Option<RepositoryId>,
    storage: Option<Store>,
    wasi: Option<WasiCtx>,
    /// What was asked of its clocks and of chance.
    outside: Option<Outside>,
    /// What is printed by it.
    pub(crate) said: Option<Said>,
    /// Where the call is recorded or replayed.
    pub(crate) tape: Option<Tape>,
}

impl HostState {
    /// For one call of the plugin, from which all can be called. Without `storage`, whatever needs it ends the call.
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
            kept: Vec::new(),
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
            host: LogAndClock::at(published_at.or(call.now)),
            published_at,
            is_moved: call.moved.is_some(),
            volume: Volume::default(),
            repository: call.target.as_ref().map(|view| view.id),
            storage,
            wasi: None,
            outside: None,
            said: None,
            tape: None,
        }
    }

    /// For a call that can reach no further than `phase`: with no storage, no services and no repository.
    pub(crate) fn within(
        phase: Phase,
        plugin: Arc<str>,
        limits: Arc<Limits>,
        head: Arc<RequestHead>,
    ) -> HostState {
        let call = Call::new(head, Action::Open);
        HostState { phase, ..HostState::new(plugin, limits, None, Access::ReadOnly, call) }
    }

    /// Becomes the state of the request's next call in the same instance. Time, counts and what is held begin anew. What the guest
    /// can still have from before stays: its handles, its memory, and that it looked at what not all other requests share.
    pub(crate) fn become_next(&mut self, next: HostState) {
        let before = std::mem::replace(self, next);
        (self.turn, self.table) = (before.turn, before.table);
        self.memory.go_on_from(&before.memory);
        self.uncacheable |= before.uncacheable;
        self.looked = self.looked.max(before.looked);
        // The guest's streams are those of its first call.
        (self.wasi, self.said, self.outside) = (before.wasi, before.said, before.outside);
        if let Some(outside) = &self.outside {
            outside.go_on_in(self.phase);
        }
        self.tape = before.tape;
    }

    /// With what the plugin made before.
    pub(crate) fn remembering(self, memos: PluginMemos) -> HostState {
        HostState { memos: Some(memos), ..self }
    }

    /// Gives a handle out. `Handles` when the call has too many already.
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

    /// Takes a handle back, with what stands behind it.
    pub(crate) fn take<T: 'static>(&mut self, handle: Resource<T>) -> Result<T, CallError> {
        self.table.delete(handle).map_err(|error| self.table_error(&error))
    }

    fn table_error(&self, error: &ResourceTableError) -> CallError {
        table_error(error, self.limits.handles)
    }

    /// Remembers bytes that a publish brought, as the guest was told their SHA-256: those of which
    /// it keeps none may be what replaces stored bytes that were lost.
    pub(crate) fn note_sent(&mut self, blob: &Blob) {
        let came = self.access == Access::Intent(Action::Publish) && blob.origin().is_none();
        if !came || self.sent.len() >= MOST_SENT || blob.known(Algorithm::Sha256).is_none() {
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

    /// Bytes that came with a publish which stored nothing, each once, and the repository that they
    /// were sent to.
    pub(crate) fn take_sent(&mut self) -> Option<(RepositoryId, Vec<Blob>)> {
        let mut seen = HashSet::new();
        let mut sent = std::mem::take(&mut self.sent);
        sent.retain(|blob| blob.known(Algorithm::Sha256).is_some_and(|digest| seen.insert(digest.bytes)));
        self.repository.filter(|_| !self.committed && !sent.is_empty()).map(|id| (id, sent))
    }

    /// The store, cheap to clone.
    pub(crate) fn storage(&self) -> Result<Store, CallError> {
        self.storage.clone().ok_or_else(|| CallError::Trap("there is no storage in this call".to_owned()))
    }

    /// Takes in what the guest asked of WASI's clocks and of chance: to be called before `uncacheable` is judged.
    pub(crate) fn settle_outside(&mut self) {
        self.uncacheable |= self.outside.as_ref().is_some_and(Outside::take);
    }

    /// The answer depends on what changes at this moment, in ms since 1970, of itself; none is never.
    pub(crate) fn note_until(&mut self, at: Option<i64>) {
        let Some(at) = at else { return };
        self.until = Some(self.until.map_or(at, |until| until.min(at)));
    }

    /// A handle on the call's target, as `handle` and `check` are given it.
    pub(crate) fn target(
        &mut self,
        view: Option<RepositoryView>,
    ) -> Result<Option<Resource<RepositoryRep>>, CallError> {
        view.map(|view| self.repository(view)).transpose()
    }

    /// A handle on the target where there must be one. What the call stages counts for it from now on.
    pub(crate) fn repository(&mut self, view: RepositoryView) -> Result<Resource<RepositoryRep>, CallError> {
        // What a call aside stages is nobody's.
        self.repository = (self.access != Access::Aside).then_some(view.id);
        self.given(RepositoryRep { view, target: true })
    }

    /// Handles on the other repositories of the call.
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
        other => CallError::Trap(format!("a handle that is none: {other}")),
    }
}

/// Only plugins that the configuration names link WASI, so the context is made when it is first asked for: with no files, no
/// network, no environment and no arguments.
impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let said = self.said.get_or_insert_default();
        WasiCtxView {
            ctx: self.wasi.get_or_insert_with(|| {
                let mut builder = WasiCtxBuilder::new();
                builder.stdout(said.clone()).stderr(said.clone());
                builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
                let outside = self.outside.get_or_insert_with(|| Outside::in_phase(self.phase));
                let sources = self.tape.as_ref().map_or_else(Sources::of_machine, Tape::sources);
                outside.watch(&mut builder, sources);
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
    fn the_next_call_begins_anew_but_for_what_the_guest_still_has() {
        let limits = Arc::new(Limits::default());
        let head = Arc::new(RequestHead::default());
        let mut state = HostState::within(Phase::Route, "x".into(), Arc::clone(&limits), Arc::clone(&head));
        let held = state.push(IntentRep::default()).unwrap();
        (state.uncacheable, state.looked) = (true, Looked::AtQuery);
        let call = Call { for_publish: true, ..Call::new(head, Action::Read) };
        let next = HostState::new("x".into(), limits, None, Access::Intent(Action::Read), call);
        let clock = Arc::clone(&next.clock);
        state.become_next(next);
        assert!(Arc::ptr_eq(&state.clock, &clock), "its time began anew");
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
    fn what_a_call_stages_counts_for_its_target() {
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
        assert_eq!(state.repository, None, "none but the target counts");
        assert!(state.target(Some(view(1))).is_ok());
        assert_eq!(state.repository, Some(RepositoryId(1)));
    }
}
