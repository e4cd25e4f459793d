//! One plugin call's use of upstreams: the unverified responses it used, failures of upstreams, and
//! its permits to wait.
//!
//! A call that waits for an upstream holds an instance of its plugin. Therefore at most half of a
//! plugin's calls may wait, and at most a quarter may wait for one upstream. A call that needs no
//! upstream then always finds an instance. A call that gets no permit ends. The host then waits for
//! a permit without an instance, and restarts the call.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};

use packhouse_runtime::Plugin;
use packhouse_store::RepositoryId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::cache_key::CacheKey;
use super::client::UpstreamClient;
use super::error::{UpstreamError, whole_seconds};
use super::fetched::FetchedResponse;
use super::health::HealthState;
use super::plan::FetchPlan;
use super::sync::lock;
use super::unverified::UnverifiedResponse;

/// How a plugin call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CallOutcome {
    /// The call returned an answer, or a refusal caused by the client.
    Succeeded,
    /// The call failed, and a response of an upstream may be the cause.
    Suspect,
    /// The call failed for a reason unrelated to upstreams.
    Unrelated,
}

/// One plugin call's use of upstreams; see the module.
pub struct UpstreamSession {
    /// True if proxies of the plugin's format use credentials.
    presents_credentials: bool,
    /// Limits the plugin's waiting calls.
    wait_slots: Arc<Semaphore>,
    /// Maximum number of concurrent calls of the plugin.
    max_calls: usize,
    /// The plugin that compares versions with those of advisories.
    ordering: Option<Arc<Plugin>>,
    state: Mutex<SessionState>,
    /// Reports by repository. They remain available after the session has ended.
    reports: Mutex<BTreeMap<RepositoryId, UpstreamReport>>,
}

/// Behaviour of an upstream in a call, other than an answer.
#[derive(Clone, Debug)]
pub enum UpstreamReport {
    /// The upstream refused a request and has not answered another one with content since. Has a
    /// description with status and path.
    Refused(String),
    /// The upstream limits the rate of requests. Has the seconds to wait, if known.
    Throttled(Option<u64>),
}

#[derive(Default)]
struct SessionState {
    used: Vec<UsedResponse>,
    /// Responses that were discarded, and are therefore not requested again.
    discarded: HashSet<CacheKey>,
    /// Repositories whose upstream gave no response.
    failed: HashSet<RepositoryId>,
    /// Proxies that the plugin left out of its answer, and the reasons.
    left_out: HashMap<RepositoryId, String>,
    /// Repositories whose upstream refused or failed, and has not answered with content since.
    troubles: HashMap<RepositoryId, Trouble>,
    saturated: Option<SaturatedUpstream>,
    permits: Vec<WaitPermit>,
}

/// An upstream that too many calls already wait for.
pub(crate) struct SaturatedUpstream {
    pub repository: RepositoryId,
    pub client: Arc<UpstreamClient>,
}

/// A bad status of an upstream, and its description.
pub(crate) type Trouble = (HealthState, String);

pub(crate) struct SessionOutcome {
    pub used: Vec<UsedResponse>,
    /// Repositories whose upstream gave no response.
    pub failed: HashSet<RepositoryId>,
    /// Proxies that the plugin left out of its answer, and the reasons.
    pub left_out: HashMap<RepositoryId, String>,
    /// Repositories whose upstream refused or failed, and has not answered with content since.
    pub troubles: HashMap<RepositoryId, Trouble>,
    pub saturated: Option<SaturatedUpstream>,
}

/// A permit for a call to wait for one repository's upstream.
pub(crate) struct WaitPermit {
    repository: RepositoryId,
    /// Slot among the waiting calls of the plugin. Only the first permit of a call has one.
    _of_plugin: Option<OwnedSemaphorePermit>,
    _of_upstream: OwnedSemaphorePermit,
}

/// An unverified response that a call used.
#[derive(Clone)]
pub(crate) struct UsedResponse {
    pub key: CacheKey,
    pub plan: Arc<FetchPlan>,
    pub status: u16,
    pub unverified: Arc<UnverifiedResponse>,
    /// True if an older response is cached that can be served instead.
    pub has_fallback: bool,
}

/// Creates the slots for a plugin's waiting calls, given its maximum number of concurrent calls.
pub(crate) fn wait_slots(max_calls: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((max_calls / 2).max(1)))
}

impl UpstreamSession {
    /// Creates a session of a plugin with these slots for its waiting calls.
    pub(crate) fn new(
        presents_credentials: bool,
        wait_slots: Arc<Semaphore>,
        max_calls: usize,
        ordering: Option<Arc<Plugin>>,
    ) -> Arc<UpstreamSession> {
        let (state, reports) = (Mutex::default(), Mutex::default());
        Arc::new(UpstreamSession { presents_credentials, wait_slots, max_calls, ordering, state, reports })
    }

    /// Returns the plugin that compares versions with those of advisories.
    pub(crate) fn ordering(&self) -> Option<&Plugin> {
        self.ordering.as_deref()
    }

    /// Returns true if proxies of the plugin's format use credentials.
    pub(crate) fn presents_credentials(&self) -> bool {
        self.presents_credentials
    }

    /// Returns how many calls may wait for one upstream.
    pub(crate) fn max_waiting_for_one(&self) -> usize {
        (self.max_calls / 4).max(1)
    }

    /// Creates a session for a retry of the call without these discarded responses.
    pub(crate) fn retry_without(&self, discarded: HashSet<CacheKey>) -> Arc<UpstreamSession> {
        self.retry(SessionState { discarded, ..SessionState::default() })
    }

    /// Creates a session for a retry of the call with a permit to wait.
    pub(crate) fn retry_with(&self, permit: WaitPermit) -> Arc<UpstreamSession> {
        self.retry(SessionState { permits: vec![permit], ..SessionState::default() })
    }

    fn retry(&self, state: SessionState) -> Arc<UpstreamSession> {
        Arc::new(UpstreamSession {
            presents_credentials: self.presents_credentials,
            wait_slots: Arc::clone(&self.wait_slots),
            max_calls: self.max_calls,
            ordering: self.ordering.clone(),
            state: Mutex::new(state),
            reports: Mutex::default(),
        })
    }

    /// Takes a permit to wait for this upstream, which the session holds until its end.
    /// `TooManyWaiting` if no permit is free.
    pub(crate) fn enter(
        &self,
        repository: RepositoryId,
        client: &Arc<UpstreamClient>,
    ) -> Result<(), UpstreamError> {
        let mut state = lock(&self.state);
        if state.permits.iter().any(|permit| permit.repository == repository) {
            return Ok(());
        }
        let of_plugin = if state.permits.is_empty() {
            Arc::clone(&self.wait_slots).try_acquire_owned().map(Some)
        } else {
            Ok(None)
        };
        match (of_plugin, Arc::clone(&client.wait_slots).try_acquire_owned()) {
            (Ok(_of_plugin), Ok(_of_upstream)) => {
                state.permits.push(WaitPermit { repository, _of_plugin, _of_upstream });
                Ok(())
            }
            _ => {
                state.saturated = Some(SaturatedUpstream { repository, client: Arc::clone(client) });
                Err(UpstreamError::TooManyWaiting)
            }
        }
    }

    /// Waits for a permit on behalf of a call that holds no instance. None if no permit becomes
    /// free within the idle limit.
    pub(crate) async fn wait_for_permit(&self, saturated: &SaturatedUpstream) -> Option<WaitPermit> {
        let SaturatedUpstream { repository, client } = saturated;
        let both = async {
            let of_upstream = Arc::clone(&client.wait_slots).acquire_owned().await.ok()?;
            let of_plugin = Arc::clone(&self.wait_slots).acquire_owned().await.ok()?;
            Some(WaitPermit {
                repository: *repository,
                _of_plugin: Some(of_plugin),
                _of_upstream: of_upstream,
            })
        };
        tokio::time::timeout(client.bounds.idle, both).await.ok().flatten()
    }

    /// Records that the call uses an unverified response.
    pub(crate) fn note_used(&self, used: UsedResponse) {
        lock(&self.state).used.push(used);
    }

    /// Records that an upstream gave no response.
    pub(crate) fn note_failure(&self, plan: &FetchPlan, error: &UpstreamError) {
        let repository = plan.repository;
        let mut state = lock(&self.state);
        state.failed.insert(repository);
        if error.is_failure() {
            let trouble = (HealthState::Unreachable, format!("{error}, for {}", plan.path()));
            state.troubles.insert(repository, trouble);
        }
        drop(state);
        if let UpstreamError::Throttled(wait) = error {
            let report = UpstreamReport::Throttled(wait.map(whole_seconds));
            lock(&self.reports).insert(repository, report);
        }
    }

    /// Records an upstream's answer. An upstream that answers any address with content after a
    /// refusal no longer counts as refusing. `is_new` is false for a cached refusal.
    pub(crate) fn note_answer(&self, plan: &FetchPlan, fetched: &FetchedResponse, is_new: bool) {
        let repository = plan.repository;
        let mut reports = lock(&self.reports);
        match &fetched.refusal {
            Some(refusal) => {
                reports.insert(repository, UpstreamReport::Refused(refusal.at(plan.public_path())));
                if is_new {
                    let trouble = (HealthState::Refused, refusal.at(plan.path()));
                    lock(&self.state).troubles.insert(repository, trouble);
                }
            }
            None if fetched.status < 400 => {
                reports.remove(&repository);
                lock(&self.state).troubles.remove(&repository);
            }
            None => {}
        }
    }

    /// Records that the plugin left a proxy out of its answer, and the reason.
    pub fn leave_out(&self, repository: RepositoryId, reason: String) {
        lock(&self.state).left_out.insert(repository, reason);
    }

    /// Returns the behaviour of upstreams in the call, other than answers.
    pub fn reports(&self) -> Vec<(RepositoryId, UpstreamReport)> {
        lock(&self.reports).iter().map(|(repository, report)| (*repository, report.clone())).collect()
    }

    /// Returns true if the upstream's response was discarded before the call was restarted.
    pub(crate) fn has_discarded(&self, key: CacheKey) -> bool {
        lock(&self.state).discarded.contains(&key)
    }

    /// Ends the session and releases its permits.
    pub(crate) fn end(&self) -> SessionOutcome {
        let SessionState { used, failed, left_out, troubles, saturated, .. } =
            std::mem::take(&mut *lock(&self.state));
        SessionOutcome { used, failed, left_out, troubles, saturated }
    }
}
