//! One loaded plugin and its functions. Each call runs in a fresh instance, except that `handle`
//! may continue in the instance of `route`.

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
use crate::instance::{CallName, ReusableInstance, Runner};
use crate::memos::PluginMemos;
use crate::presentation::Presentation;
use crate::request::{Action, RequestHead};
use crate::retained::{UnshownPage, VersionFacts};
use crate::state::http::RequestRep;
use crate::state::records::RepositoryRep;
use crate::state::{Access, HostState, Phase};
use crate::view::RepositoryView;

/// Most versions that one call compares, and most bytes of all of them together.
pub const MAX_COMPARED: usize = 50_000;
const MAX_COMPARED_BYTES: usize = 1 << 20;

pub struct Plugin {
    pub(crate) description: Description,
    pub(crate) format: Arc<str>,
    /// The plugin's file. None for a component from the store.
    pub(crate) file: Option<PathBuf>,
    pub(crate) digest: Sha256,
    pub(crate) number: u64,
    pub(crate) imports: Vec<String>,
    pub(crate) exports: Vec<String>,
    /// Limits as the component describes them, without the operator's settings.
    pub(crate) described_limits: DescriptionLimits,
    pub(crate) runner: Runner,
    /// Runner of calls that compare versions.
    pub(crate) comparing: Runner,
    pub(crate) storage: Store,
    pub(crate) code: LinkedComponent,
    pub(crate) memos: PluginMemos,
}

/// A compiled component, linked with all imports.
pub(crate) struct LinkedComponent {
    pub(crate) linked: InstancePre<HostState>,
    pub(crate) format: format::GuestIndices,
    pub(crate) exports: FormatExports,
    pub(crate) upkeep: Option<upkeep::GuestIndices>,
    pub(crate) present: Option<present::GuestIndices>,
    pub(crate) retention: Option<retention::GuestIndices>,
    pub(crate) versions: Option<versions::GuestIndices>,
}

pub(crate) type Guest = wasmtime::Store<HostState>;
/// Repositories that a call receives.
struct CallRepositories {
    target: Option<RepositoryView>,
    others: Vec<RepositoryView>,
}

impl CallRepositories {
    fn of(call: &mut Call) -> CallRepositories {
        CallRepositories { target: call.target.take(), others: std::mem::take(&mut call.others) }
    }
}

impl Plugin {
    pub fn description(&self) -> &Description {
        &self.description
    }

    pub fn version(&self) -> &str {
        &self.description.version
    }

    /// The file that it was loaded from. None for a component from the store.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Number that no other plugin of this process has. An answer of one plugin must not be served
    /// as another's.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Imported interfaces, such as `packhouse:format/blobs@0.1.0`.
    pub fn imports(&self) -> &[String] {
        &self.imports
    }

    /// Exported interfaces, such as `packhouse:format/format@0.1.0`.
    pub fn exports(&self) -> &[String] {
        &self.exports
    }

    /// Limits as the plugin describes them. The limits in its [`description`](Plugin::description)
    /// may be lower because of the operator's settings.
    pub fn described_limits(&self) -> &DescriptionLimits {
        &self.described_limits
    }

    /// SHA-256 digest of the component's bytes.
    pub fn digest(&self) -> Digest {
        self.digest.digest()
    }

    /// Number of calls that ended since the server started, and of failed ones among them. Errors
    /// of callers do not count as failures.
    pub fn calls(&self) -> (u64, u64) {
        self.runner.meters.calls()
    }

    /// Most bytes of a request body: the operator's limit, or else the description's.
    pub fn max_file_bytes(&self) -> Option<u64> {
        self.description.limits.max_file_bytes
    }

    /// Highest number of concurrent calls.
    pub fn concurrency(&self) -> usize {
        self.runner.limits.concurrency
    }

    /// Number of running calls, and of calls that wait for their turn.
    pub fn calls_now(&self) -> (usize, usize) {
        self.runner.calls_now()
    }

    /// Returns true if [`delete_version`](Plugin::delete_version) and
    /// [`mark_version`](Plugin::mark_version) are available.
    pub fn has_upkeep(&self) -> bool {
        self.code.upkeep.is_some()
    }

    /// Checks if the request can succeed, as far as this is possible without its body. All handles
    /// are read-only. Returns any [`CallError`].
    #[boxed]
    pub async fn check(&self, mut call: Call) -> Result<Result<(), Failure>, CallError> {
        (call.body, call.parts, call.appended) = (None, Vec::new(), None);
        let name = self.name("check", &call.head, Some(&call));
        let repositories = CallRepositories::of(&mut call);
        let state = || self.state(Access::ReadOnly, call, Some(self.storage.clone()));
        let body = async |guest: &mut Guest, instance: &Instance| {
            let request = guest.data_mut().push(RequestRep)?;
            let target = guest.data_mut().target(repositories.target)?;
            let others = guest.data_mut().others(repositories.others)?;
            let arguments = (borrow(&request), target, others.as_slice());
            refused(self.code.exports.check(guest, instance, arguments).await?)
        };
        self.runner.run(name, state, &self.code.linked, body).await
    }

    /// Answers the request. Blobs that the call kept are durable when this returns an [`Answer`].
    /// After a [`Failure`] or an error, only earlier commits remain. Returns any [`CallError`].
    #[boxed]
    pub async fn handle(&self, mut call: Call) -> Result<Result<Answer, Failure>, CallError> {
        let name = self.name("handle", &call.head, Some(&call));
        let repositories = CallRepositories::of(&mut call);
        let state = || self.handling(call);
        let body =
            async |guest: &mut Guest, instance: &Instance| self.answer(guest, instance, repositories).await;
        let handled = self.runner.run(name, state, &self.code.linked, body).await?;
        self.make_result_durable(handled).await
    }

    /// Runs `handle` in the instance of the request's `route`.
    pub(crate) async fn handle_in(
        &self,
        reused: ReusableInstance<'_>,
        mut call: Call,
    ) -> Result<Result<Answer, Failure>, CallError> {
        let name = self.name("handle", &call.head, Some(&call));
        let repositories = CallRepositories::of(&mut call);
        let body =
            async |guest: &mut Guest, instance: &Instance| self.answer(guest, instance, repositories).await;
        let handled = self.runner.resume(name, reused, self.handling(call), body).await?;
        self.make_result_durable(handled).await
    }

    fn handling(&self, call: Call) -> HostState {
        self.state(Access::Intent(call.action), call, Some(self.storage.clone()))
    }

    async fn answer(
        &self,
        guest: &mut Guest,
        instance: &Instance,
        repositories: CallRepositories,
    ) -> wasmtime::Result<Handled> {
        let request = guest.data_mut().push(RequestRep)?;
        let target = guest.data_mut().target(repositories.target)?;
        let others = guest.data_mut().others(repositories.others)?;
        let arguments = (borrow(&request), target, others.as_slice());
        let answered = match self.code.exports.handle(guest, instance, arguments).await? {
            Ok(response) => {
                let answer = answer::answer(guest.data_mut(), response)?;
                Ok((answer, std::mem::take(&mut guest.data_mut().blobs_to_keep)))
            }
            Err(failure) => {
                let failure = answer::failure(failure)?;
                let torn = guest.data().blob_missing && failure.status >= 500;
                Err(Failure { torn, ..failure })
            }
        };
        Ok(Handled { answered, sent: guest.data_mut().take_sent() })
    }

    /// Removes a version of the call's target. Returns `NotOffered` if the plugin lacks the
    /// function, or any other [`CallError`].
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

    /// Marks a version of the call's target. Returns `NotOffered` if the plugin lacks the function,
    /// or any other [`CallError`].
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

    /// Returns true if [`present_version`](Plugin::present_version) is available.
    pub fn has_present(&self) -> bool {
        self.code.present.is_some()
    }

    /// Presentation of a version of the call's target for people. All handles are read-only.
    /// Returns `NotOffered` if the plugin lacks the function, `Host` if the result breaks the
    /// contract, or any other [`CallError`].
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
            return Err(CallError::Host("present_version requires a repository".to_owned()));
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
            return Err(CallError::Host(format!("{function} requires a repository")));
        };
        let access = Access::Intent(call.action);
        let state = || self.state(access, call, Some(self.storage.clone()));
        let body = async |guest: &mut Guest, instance: &Instance| {
            let upkeep = indices.load(&mut *guest, instance)?;
            let target = guest.data_mut().repository(target)?;
            let answer = ask(guest, &upkeep, target).await?;
            guest.data_mut().note_answer(&answer);
            let done = refused(answer)?;
            Ok(done.map(|()| std::mem::take(&mut guest.data_mut().blobs_to_keep)))
        };
        match self.runner.run(name, state, &self.code.linked, body).await? {
            Ok(blobs) => {
                self.make_durable(blobs).await?;
                Ok(Ok(()))
            }
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Returns true if [`judge_versions`](Plugin::judge_versions) and
    /// [`list_unshown`](Plugin::list_unshown) are available.
    pub fn has_retention(&self) -> bool {
        self.code.retention.is_some()
    }

    /// Facts about at most 1,000 versions of the call's target for retention. The fact is `None`
    /// for a version that does not exist. All handles are read-only. Returns `NotOffered` if the
    /// plugin lacks the function, `Host` if the result breaks the contract, or any other
    /// [`CallError`].
    #[boxed]
    pub async fn judge_versions(
        &self,
        call: Call,
        ids: &[(String, String)],
    ) -> Result<Result<Vec<Option<VersionFacts>>, Failure>, CallError> {
        let named =
            |(name, version): &(String, String)| VersionId { name: name.clone(), version: version.clone() };
        let named: Vec<VersionId> = ids.iter().map(named).collect();
        let answered = self.call_retention("judge_versions", call, async |guest, retention, target| {
            guest.data_mut().note_arguments(&[&named]);
            retention.call_judge_versions(guest, target, &named).await
        });
        match answered.await? {
            Ok(text) => VersionFacts::parse(&text, ids.len()).map(Ok).map_err(CallError::Host),
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// A page of stored data that the call's target does not show. `after` is empty, or the value
    /// that the previous page returned. Handles and errors are those of
    /// [`judge_versions`](Plugin::judge_versions).
    #[boxed]
    pub async fn list_unshown(
        &self,
        call: Call,
        after: &str,
    ) -> Result<Result<UnshownPage, Failure>, CallError> {
        let answered = self.call_retention("list_unshown", call, async |guest, retention, target| {
            guest.data_mut().note_arguments(&[&after]);
            retention.call_list_unshown(guest, target, after).await
        });
        match answered.await? {
            Ok(text) => UnshownPage::parse(&text).map(Ok).map_err(CallError::Host),
            Err(failure) => Ok(Err(failure)),
        }
    }

    async fn call_retention(
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
            return Err(CallError::Host(format!("{function} requires a repository")));
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

    /// Returns true if [`compare_versions`](Plugin::compare_versions) is available.
    pub fn has_versions(&self) -> bool {
        self.code.versions.is_some()
    }

    /// Position of each version in the format's order: 0 is the lowest, equal versions share a
    /// position, and invalid ones have none. The call can use no imports, so it waits for nothing,
    /// and another call may wait for it. Returns `NotOffered` if the plugin lacks the function,
    /// `BadAnswer` if the result breaks the contract, or any other [`CallError`].
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
        let positions = self.comparing.run(name, state, &self.code.linked, async |guest, instance| {
            let order = indices.load(&mut *guest, instance)?;
            order.call_compare_versions(&mut *guest, versions).await
        });
        let positions = positions.await?;
        if positions.len() == versions.len() {
            Ok(positions)
        } else {
            let (found, expected) = (positions.len(), versions.len());
            Err(CallError::BadAnswer(format!("{found} positions for {expected} versions")))
        }
    }

    fn state(&self, access: Access, call: Call, storage: Option<Store>) -> HostState {
        let limits = Arc::clone(&self.runner.limits);
        let writes = matches!(&access, Access::Intent(action) if action.writes());
        let mut state = HostState::new(Arc::clone(&self.runner.plugin), limits, storage, access, call);
        if writes {
            state.tags.clone_from(&self.description.tags);
        }
        state.with_memos(self.memos.clone())
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

/// Borrowed handle for the guest; the host keeps the handle itself.
pub(crate) fn borrow<T: 'static>(handle: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(handle.rep())
}

fn refused(result: Result<(), wit::Failure>) -> wasmtime::Result<Result<(), Failure>> {
    Ok(match result {
        Ok(()) => Ok(()),
        Err(failure) => Err(answer::failure(failure)?),
    })
}
