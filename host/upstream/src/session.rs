//! One plugin call's use of upstreams: which unverified responses it used, whether an upstream failed, and its permits to wait.
//!
//! A call that waits for an upstream holds an instance of its plugin. So at most half of a plugin's calls may wait, and a quarter
//! for one upstream: a call that needs no upstream always finds an instance. A call that gets no permit ends, waits for one while it
//! holds no instance, and is started again.

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
    /// With an answer, or with a refusal that is the caller's fault.
    Succeeded,
    /// With a failure that may be caused by what it read from an upstream.
    Suspect,
    /// With a failure that says nothing about upstreams.
    Unrelated,
}

/// See the module.
pub struct UpstreamSession {
    /// Whether proxies of the plugin's format present credentials.
    presents_credentials: bool,
    /// Limits the waiting calls of the plugin.
    wait_slots: Arc<Semaphore>,
    /// The number of the plugin's calls that may run at the same time.
    max_calls: usize,
    /// What compares versions with those of advisories.
    ordering: Option<Arc<Plugin>>,
    state: Mutex<State>,
    /// Stays when the session has ended.
    reports: Mutex<BTreeMap<RepositoryId, UpstreamReport>>,
}

/// What an upstream did in a call, other than to answer.
#[derive(Clone, Debug)]
pub enum UpstreamReport {
    /// It refused a request, and answered no other one with what it has: its status and the path,
    /// in words.
    Refused(String),
    /// It limits the rate of requests: the seconds to wait, where they are known.
    Throttled(Option<u64>),
}

#[derive(Default)]
struct State {
    used: Vec<UsedResponse>,
    /// What is not requested again, since its response was discarded.
    discarded: HashSet<CacheKey>,
    /// The repositories whose upstream gave no response.
    failed: HashSet<RepositoryId>,
    /// The proxies that the plugin left out of its answer, and why.
    left_out: HashMap<RepositoryId, String>,
    /// The repositories whose upstream was asked, refused or failed, and has answered no request
    /// since with what it has.
    troubles: HashMap<RepositoryId, Trouble>,
    saturated: Option<SaturatedUpstream>,
    permits: Vec<WaitPermit>,
}

/// An upstream for which too many calls wait.
pub(crate) struct SaturatedUpstream {
    pub repository: RepositoryId,
    pub client: Arc<UpstreamClient>,
}

/// A bad state of an upstream, and what happened in words.
pub(crate) type Trouble = (HealthState, String);

/// What a session has to report at its end.
pub(crate) struct SessionOutcome {
    pub used: Vec<UsedResponse>,
    /// The repositories whose upstream gave no response.
    pub failed: HashSet<RepositoryId>,
    /// The proxies that the plugin left out of its answer, and why.
    pub left_out: HashMap<RepositoryId, String>,
    /// The repositories whose upstream was asked, refused or failed, and has answered no request
    /// since with what it has.
    pub troubles: HashMap<RepositoryId, Trouble>,
    pub saturated: Option<SaturatedUpstream>,
}

/// Permits a call to wait for one repository's upstream.
pub(crate) struct WaitPermit {
    repository: RepositoryId,
    /// The first permit of a call counts among its plugin's waiting calls.
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
    /// Whether an older response is cached that can be served instead.
    pub has_fallback: bool,
}

/// The slots for those calls of a plugin that wait, where `max_calls` of its calls may run at the same time.
pub(crate) fn wait_slots(max_calls: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((max_calls / 2).max(1)))
}

impl UpstreamSession {
    /// A session of a plugin with these slots for its waiting calls.
    pub(crate) fn new(
        presents_credentials: bool,
        wait_slots: Arc<Semaphore>,
        max_calls: usize,
        ordering: Option<Arc<Plugin>>,
    ) -> Arc<UpstreamSession> {
        let (state, reports) = (Mutex::default(), Mutex::default());
        Arc::new(UpstreamSession { presents_credentials, wait_slots, max_calls, ordering, state, reports })
    }

    /// What compares versions with those of advisories.
    pub(crate) fn ordering(&self) -> Option<&Plugin> {
        self.ordering.as_deref()
    }

    /// Whether proxies of the plugin's format present credentials.
    pub(crate) fn presents_credentials(&self) -> bool {
        self.presents_credentials
    }

    /// The number of calls that may wait for one upstream.
    pub(crate) fn max_waiting_for_one(&self) -> usize {
        (self.max_calls / 4).max(1)
    }

    /// A session for the same call, started again after these responses were discarded.
    pub(crate) fn retry_without(&self, discarded: HashSet<CacheKey>) -> Arc<UpstreamSession> {
        self.retry(State { discarded, ..State::default() })
    }

    /// A session for the same call, started again with a permit to wait.
    pub(crate) fn retry_with(&self, permit: WaitPermit) -> Arc<UpstreamSession> {
        self.retry(State { permits: vec![permit], ..State::default() })
    }

    fn retry(&self, state: State) -> Arc<UpstreamSession> {
        Arc::new(UpstreamSession {
            presents_credentials: self.presents_credentials,
            wait_slots: Arc::clone(&self.wait_slots),
            max_calls: self.max_calls,
            ordering: self.ordering.clone(),
            state: Mutex::new(state),
            reports: Mutex::default(),
        })
    }

    /// Takes a permit to wait for this upstream, which the session holds until its end. `TooManyWaiting` when there is none.
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

    /// Waits for a permit on behalf of a call that holds no instance. None when there is none within the idle limit.
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

    /// Notes that the call uses an unverified response.
    pub(crate) fn note_used(&self, used: UsedResponse) {
        lock(&self.state).used.push(used);
    }

    /// Notes that an upstream gave no response.
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

    /// Notes what an upstream answered. An upstream that refuses one address and has what is wanted
    /// at another refuses nothing. `is_new`: the answer was not remembered.
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

    /// Notes that the plugin leaves a proxy out of its answer, and why.
    pub fn leave_out(&self, repository: RepositoryId, reason: String) {
        lock(&self.state).left_out.insert(repository, reason);
    }

    /// What upstreams did in the call, other than to answer.
    pub fn reports(&self) -> Vec<(RepositoryId, UpstreamReport)> {
        lock(&self.reports).iter().map(|(repository, report)| (*repository, report.clone())).collect()
    }

    /// Whether the upstream's response to this was discarded before the call was started again.
    pub(crate) fn has_discarded(&self, key: CacheKey) -> bool {
        lock(&self.state).discarded.contains(&key)
    }

    /// Ends the session and gives its permits back.
    pub(crate) fn end(&self) -> SessionOutcome {
        let State { used, failed, left_out, troubles, saturated, .. } =
            std::mem::take(&mut *lock(&self.state));
        SessionOutcome { used, failed, left_out, troubles, saturated }
    }
}
