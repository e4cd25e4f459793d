//! One loaded plugin: its functions, each put to a fresh instance, but that `handle` may go on in that of `route`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use packhouse_store::{Digest, Sha256, Store};
use wasmtime::component::{Instance, InstancePre, Resource};

use crate::answer::{self, Answer, Failure};
use crate::bindings::exports::packhouse::format::{format, present, retention, upkeep, versions};
use crate::bindings::packhouse::format::http as wit;
use crate::bindings::packhouse::format::records::VersionId;
use crate::boxed;
use crate::call::{Call, VersionState};
use crate::description::{Description, DescriptionLimits};
use crate::durable::Handled;
use crate::error::CallError;
use crate::exports::FormatExports;
use crate::instance::{CallName, KeptInstance, Runner};
use crate::memos::PluginMemos;
use crate::presentation::Presentation;
use crate::request::{Action, RequestHead};
use crate::retained::{UnshownPage, VersionFacts};
use crate::state::http::RequestRep;
use crate::state::records::RepositoryRep;
use crate::state::{Access, HostState, Phase};
use crate::view::RepositoryView;

/// Versions that are compared in one call, and their bytes together.
pub const MAX_COMPARED: usize = 50_000;
const MAX_COMPARED_BYTES: usize = 1 << 20;

/// One loaded plugin.
pub struct Plugin {
    pub(crate) description: Description,
    pub(crate) format: Arc<str>,
    /// None for a component of the store.
    pub(crate) file: Option<PathBuf>,
    pub(crate) digest: Sha256,
    pub(crate) number: u64,
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
    /// As the component describes them, whatever the operator allows.
    pub(crate) described_limits: DescriptionLimits,
    pub(crate) runner: Runner,
    /// Of calls that compare versions.
    pub(crate) comparing: Runner,
    pub(crate) storage: Store,
    pub(crate) code: Code,
    pub(crate) memos: PluginMemos,
}

/// A compiled component, linked with all imports.
pub(crate) struct Code {
    pub(crate) linked: InstancePre<HostState>,
    pub(crate) format: format::GuestIndices,
    pub(crate) exports: FormatExports,
    pub(crate) upkeep: Option<upkeep::GuestIndices>,
    pub(crate) present: Option<present::GuestIndices>,
    pub(crate) retention: Option<retention::GuestIndices>,
    pub(crate) versions: Option<versions::GuestIndices>,
}

pub(crate) type Guest = wasmtime::Store<HostState>;
/// The repositories that a call is handed.
struct Handed {
    target: Option<RepositoryView>,
    others: Vec<RepositoryView>,
}

impl Handed {
    fn of(call: &mut Call) -> Handed {
        Handed { target: call.target.take(), others: std::mem::take(&mut call.others) }
    }
}

impl Plugin {
    /// What it says of itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Its own version.
    pub fn version(&self) -> &str {
        &self.description.version
    }

    /// The file it was loaded from; none for a component of the store.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Tells it from every other plugin that this process has loaded: what one answered may not be given as another's.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What it imports, as `packhouse:format/blobs@0.1.0`.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// What it exports, as `packhouse:format/format@0.1.0`.
    pub fn exports(&self) -> &[String] {
        &self.exports
    }

    /// Its bounds as it describes them; those of its [`description`](Plugin::description) may be less, where the operator says so.
    pub fn described_limits(&self) -> &DescriptionLimits {
        &self.described_limits
    }

    /// SHA-256 of the component that it is.
    pub fn digest(&self) -> Digest {
        self.digest.digest()
    }

    /// How many calls of it have ended since the server started, and how many of them failed: what callers do wrong is no failure.
    pub fn calls(&self) -> (u64, u64) {
        self.runner.meters.calls()
    }

    /// Bytes of a request's body at most: the operator's limit, else the description's.
    pub fn max_file_bytes(&self) -> Option<u64> {
        self.description.limits.max_file_bytes
    }

    /// Calls of it at one time.
    pub fn concurrency(&self) -> usize {
        self.runner.limits.concurrency
    }

    /// How many calls of it run at the moment, and how many wait for their turn.
    pub fn calls_now(&self) -> (usize, usize) {
        self.runner.calls_now()
    }

    /// Whether [`delete_version`](Plugin::delete_version) and [`mark_version`](Plugin::mark_version) are offered.
    pub fn has_upkeep(&self) -> bool {
        self.code.upkeep.is_some()
    }

    /// Asks whether the request can succeed, as far as can be told without its body. All handles are read-only. Any [`CallError`].
    #[boxed]
    pub async fn check(&self, mut call: Call) -> Result<Result<(), Failure>, CallError> {
        (call.body, call.parts, call.appended) = (None, Vec::new(), None);
        let name = self.name("check", &call.head, Some(&call));
        let handed = Handed::of(&mut call);
        let state = || self.state(Access::ReadOnly, call, Some(self.storage.clone()));
        let body = async |guest: &mut Guest, instance: &Instance| {
            let request = guest.data_mut().push(RequestRep)?;
            let target = guest.data_mut().target(handed.target)?;
            let others = guest.data_mut().others(handed.others)?;
            let asked = (borrow(&request), target, others.as_slice());
            refused(self.code.exports.check(guest, instance, asked).await?)
        };
        self.runner.run(name, state, &self.code.linked, body).await
    }

    /// Answers the request. What was kept is durable when this returns an [`Answer`]; of a [`Failure`] and of an error nothing is
    /// left but what was committed before. Any [`CallError`].
    #[boxed]
    pub async fn handle(&self, mut call: Call) -> Result<Result<Answer, Failure>, CallError> {
        let name = self.name("handle", &call.head, Some(&call));
        let handed = Handed::of(&mut call);
        let state = || self.handling(call);
        let body = async |guest: &mut Guest, instance: &Instance| self.answer(guest, instance, handed).await;
        let handled = self.runner.run(name, state, &self.code.linked, body).await?;
        self.kept_durable(handled).await
    }

    /// The same in the instance that the request's `route` ran in.
    pub(crate) async fn handle_in(
        &self,
        kept: KeptInstance<'_>,
        mut call: Call,
    ) -> Result<Result<Answer, Failure>, CallError> {
        let name = self.name("handle", &call.head, Some(&call));
        let handed = Handed::of(&mut call);
        let body = async |guest: &mut Guest, instance: &Instance| self.answer(guest, instance, handed).await;
        let handled = self.runner.go_on(name, kept, self.handling(call), body).await?;
        self.kept_durable(handled).await
    }

    fn handling(&self, call: Call) -> HostState {
        let access = if call.head.aside.is_some() { Access::Aside } else { Access::Intent(call.action) };
        self.state(access, call, Some(self.storage.clone()))
    }

    async fn answer(
        &self,
        guest: &mut Guest,
        instance: &Instance,
        handed: Handed,
    ) -> wasmtime::Result<Handled> {
        let request = guest.data_mut().push(RequestRep)?;
        let target = guest.data_mut().target(handed.target)?;
        let others = guest.data_mut().others(handed.others)?;
        let asked = (borrow(&request), target, others.as_slice());
        let answered = match self.code.exports.handle(guest, instance, asked).await? {
            Ok(response) => {
                let answer = answer::answer(guest.data_mut(), response)?;
                Ok((answer, std::mem::take(&mut guest.data_mut().kept)))
            }
            Err(failure) => {
                let failure = answer::failure(failure)?;
                let torn = guest.data().blob_missing && failure.status >= 500;
                Err(Failure { torn, ..failure })
            }
        };
        Ok(Handled { answered, sent: guest.data_mut().take_sent() })
    }

    /// Removes a version of the call's target. `NotOffered` without the ability; else any [`CallError`].
    #[boxed]
    pub async fn delete_version(
        &self,
        call: Call,
        name: &str,
        version: &str,
    ) -> Result<Result<(), Failure>, CallError> {
        let id = VersionId { name: name.to_owned(), version: version.to_owned() };
        let call = Call { action: Action::Delete, ..call };
        self.upkeep("delete_version", call, async |guest, upkeep, target| {
            guest.data_mut().note_arguments(&[&id]);
            upkeep.call_delete_version(guest, target, &id).await
        })
        .await
    }

    /// Marks a version of the call's target. `NotOffered` without the ability; else any [`CallError`].
    #[boxed]
    pub async fn mark_version(
        &self,
        call: Call,
        name: &str,
        version: &str,
        state: VersionState,
    ) -> Result<Result<(), Failure>, CallError> {
        let id = VersionId { name: name.to_owned(), version: version.to_owned() };
        let call = Call { action: Action::Publish, ..call };
        self.upkeep("mark_version", call, async |guest, upkeep, target| {
            guest.data_mut().note_arguments(&[&id, &state.state, &state.reason]);
            upkeep.call_mark_version(guest, target, &id, &state.state, &state.reason).await
        })
        .await
    }

    /// Whether [`present_version`](Plugin::present_version) is offered.
    pub fn has_present(&self) -> bool {
        self.code.present.is_some()
    }

    /// What people are shown of a version of the call's target. All handles are read-only. `NotOffered` without the ability,
    /// `Unreadable` for what is not as the contract says; else any [`CallError`].
    #[boxed]
    pub async fn present_version(
        &self,
        mut call: Call,
        name: &str,
        version: &str,
    ) -> Result<Result<Presentation, Failure>, CallError> {
        let Some(indices) = &self.code.present else { return Err(CallError::NotOffered("present")) };
        let id = VersionId { name: name.to_owned(), version: version.to_owned() };
        let called = self.name("present_version", &call.head, Some(&call));
        let Some(target) = call.target.take() else {
            return Err(CallError::Host("present_version needs a repository".to_owned()));
        };
        let state = || self.state(Access::ReadOnly, call, Some(self.storage.clone()));
        let body = async |guest: &mut Guest, instance: &Instance| {
            let present = indices.load(&mut *guest, instance)?;
            let target = guest.data_mut().repository(target)?;
            guest.data_mut().note_arguments(&[&id]);
            let answer = present.call_present_version(&mut *guest, target, &id).await?;
            guest.data_mut().note_answer(&answer);
            Ok(match answer {
                Ok(text) => Ok(text),
                Err(failure) => Err(answer::failure(failure)?),
            })
        };
        let presented = self.runner.run(called, state, &self.code.linked, body).await?;
        presented
            .map(|text| Presentation::parse(&text).map_err(CallError::Host))
            .map_or_else(|failure| Ok(Err(failure)), |read| read.map(Ok))
    }

    async fn upkeep(
        &self,
        function: &'static str,
        mut call: Call,
        ask: impl AsyncFnOnce(
            &mut Guest,
            &upkeep::Guest,
            Resource<RepositoryRep>,
        ) -> wasmtime::Result<Result<(), wit::Failure>>,
    ) -> Result<Result<(), Failure>, CallError> {
        let Some(indices) = &self.code.upkeep else { return Err(CallError::NotOffered("upkeep")) };
        let name = self.name(function, &call.head, Some(&call));
        let Some(target) = call.target.take() else {
            return Err(CallError::Host(format!("{function} needs a repository")));
        };
        let access = Access::Intent(call.action);
        let state = || self.state(access, call, Some(self.storage.clone()));
        let body = async |guest: &mut Guest, instance: &Instance| {
            let upkeep = indices.load(&mut *guest, instance)?;
            let target = guest.data_mut().repository(target)?;
            let answer = ask(guest, &upkeep, target).await?;
            guest.data_mut().note_answer(&answer);
            let done = refused(answer)?;
            Ok(done.map(|()| std::mem::take(&mut guest.data_mut().kept)))
        };
        match self.runner.run(name, state, &self.code.linked, body).await? {
            Ok(kept) => {
                self.make_durable(kept).await?;
                Ok(Ok(()))
            }
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Whether [`judge_versions`](Plugin::judge_versions) and [`list_unshown`](Plugin::list_unshown) are offered.
    pub fn has_retention(&self) -> bool {
        self.code.retention.is_some()
    }

    /// What retention has to know of these versions of the call's target, at most 1,000 of them; nothing of one that is not there. All
    /// handles are read-only. `NotOffered` without the ability, `Host` for what is not as the contract says; else any [`CallError`].
    #[boxed]
    pub async fn judge_versions(
        &self,
        call: Call,
        ids: &[(String, String)],
    ) -> Result<Result<Vec<Option<VersionFacts>>, Failure>, CallError> {
        let named =
            |(name, version): &(String, String)| VersionId { name: name.clone(), version: version.clone() };
        let named: Vec<VersionId> = ids.iter().map(named).collect();
        let answered = self.of_retention("judge_versions", call, async |guest, retention, target| {
            guest.data_mut().note_arguments(&[&named]);
            retention.call_judge_versions(guest, target, &named).await
        });
        match answered.await? {
            Ok(text) => VersionFacts::parse(&text, ids.len()).map(Ok).map_err(CallError::Host),
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// A page of what the call's target holds and nobody is shown; `after` is empty, or what the page before said. As
    /// [`judge_versions`](Plugin::judge_versions).
    #[boxed]
    pub async fn list_unshown(
        &self,
        call: Call,
        after: &str,
    ) -> Result<Result<UnshownPage, Failure>, CallError> {
        let answered = self.of_retention("list_unshown", call, async |guest, retention, target| {
            guest.data_mut().note_arguments(&[&after]);
            retention.call_list_unshown(guest, target, after).await
        });
        match answered.await? {
            Ok(text) => UnshownPage::parse(&text).map(Ok).map_err(CallError::Host),
            Err(failure) => Ok(Err(failure)),
        }
    }

    async fn of_retention(
        &self,
        function: &'static str,
        mut call: Call,
        ask: impl AsyncFnOnce(
            &mut Guest,
            &retention::Guest,
            Resource<RepositoryRep>,
        ) -> wasmtime::Result<Result<String, wit::Failure>>,
    ) -> Result<Result<String, Failure>, CallError> {
        let Some(indices) = &self.code.retention else { return Err(CallError::NotOffered("retention")) };
        let name = self.name(function, &call.head, Some(&call));
        let Some(target) = call.target.take() else {
            return Err(CallError::Host(format!("{function} needs a repository")));
        };
        let state = || self.state(Access::ReadOnly, call, Some(self.storage.clone()));
        let body = async |guest: &mut Guest, instance: &Instance| {
            let retention = indices.load(&mut *guest, instance)?;
            let target = guest.data_mut().repository(target)?;
            let answer = ask(guest, &retention, target).await?;
            guest.data_mut().note_answer(&answer);
            Ok(match answer {
                Ok(text) => Ok(text),
                Err(failure) => Err(answer::failure(failure)?),
            })
        };
        self.runner.run(name, state, &self.code.linked, body).await
    }

    /// Whether [`compare_versions`](Plugin::compare_versions) is offered.
    pub fn has_versions(&self) -> bool {
        self.code.versions.is_some()
    }

    /// Where each of these versions stands among them in the format's order, 0 the lowest, equal ones at the same place; none for what is
    /// no version. It reaches nothing, and another call may wait for it. `NotOffered` without the ability, `BadAnswer` for what is not as
    /// the contract says; else any [`CallError`].
    #[boxed]
    pub async fn compare_versions(&self, versions: &[String]) -> Result<Vec<Option<u32>>, CallError> {
        let Some(indices) = &self.code.versions else { return Err(CallError::NotOffered("versions")) };
        let bytes: usize = versions.iter().map(String::len).sum();
        if versions.len() > MAX_COMPARED || bytes > MAX_COMPARED_BYTES {
            return Err(CallError::Host(format!("{} versions of {bytes} bytes to compare", versions.len())));
        }
        let head = Arc::new(RequestHead::default());
        let name = self.name("compare_versions", &head, None);
        let state = || {
            let (plugin, limits) = (Arc::clone(&self.comparing.plugin), Arc::clone(&self.comparing.limits));
            HostState::within(Phase::Describe, plugin, limits, head)
        };
        let places = self.comparing.run(name, state, &self.code.linked, async |guest, instance| {
            let order = indices.load(&mut *guest, instance)?;
            order.call_compare_versions(&mut *guest, versions).await
        });
        let places = places.await?;
        if places.len() == versions.len() {
            Ok(places)
        } else {
            let (told, asked) = (places.len(), versions.len());
            Err(CallError::BadAnswer(format!("{told} places of {asked} versions")))
        }
    }

    fn state(&self, access: Access, call: Call, storage: Option<Store>) -> HostState {
        let limits = Arc::clone(&self.runner.limits);
        let is_recorded = call.head.aside.as_ref().is_some_and(|aside| aside.is_recorded);
        let writes = matches!(&access, Access::Intent(action) if action.writes());
        let mut state = HostState::new(Arc::clone(&self.runner.plugin), limits, storage, access, call);
        if writes {
            state.tags.clone_from(&self.description.tags);
        }
        if is_recorded { state } else { state.remembering(self.memos.clone()) }
    }

    pub(crate) fn name(
        &self,
        function: &'static str,
        head: &Arc<RequestHead>,
        call: Option<&Call>,
    ) -> CallName {
        let target = call.and_then(|call| call.target.as_ref());
        CallName {
            function,
            format: Arc::clone(&self.format),
            repository: target.map(|target| Arc::clone(&target.name)),
            repository_id: target.map(|target| target.id).or(head.repository),
            head: Arc::clone(head),
        }
    }
}

/// What the guest sees of a handle that stays the host's.
pub(crate) fn borrow<T: 'static>(handle: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(handle.rep())
}

fn refused(result: Result<(), wit::Failure>) -> wasmtime::Result<Result<(), Failure>> {
    Ok(match result {
        Ok(()) => Ok(()),
        Err(failure) => Err(answer::failure(failure)?),
    })
}
