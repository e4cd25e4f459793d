//! Upstreams of proxy repositories: everything between a plugin's request and another server.
//!
//! A plugin's request becomes a [`plan`]. [`answer`] decides whether a cached response can be used;
//! otherwise [`single_flight`] sends one request for all calls that need the same response. The
//! request goes through [`redirects`] and [`authentication`] to an address that [`upstream_egress`]
//! and the operator's [`egress_policy`] allow. [`body`] receives the content, compares it with the
//! expected digests and passes it to the store. Metadata are cached once a plugin has read them
//! successfully ([`unverified`]).
//!
//! A [`session`] is one plugin call's use of upstreams, with its permits to wait. [`releases`]
//! decides which versions may be offered at all. A [`client`] is one repository's upstream with its
//! limits and its [`circuit_breaker`]. Its [`health`] is the status that people see. A [`remote`]
//! is a server that the host queries for itself.
//!
//! [`Upstreams`] is the top layer: no other module depends on it.

mod answer;
mod authentication;
mod body;
mod cache_key;
mod circuit_breaker;
mod client;
mod context;
mod counts;
pub mod credentials;
pub mod destination_clients;
pub mod egress_policy;
mod error;
mod fetched;
mod headers;
mod health;
mod keyring;
mod negative_cache;
mod plan;
mod redirects;
mod releases;
pub mod remote;
mod reply;
mod request;
mod session;
mod settings;
mod single_flight;
mod sync;
#[cfg(test)]
mod tests;
mod transport;
mod unverified;
pub mod upstream_egress;

// The attribute compiles the body of an `async fn` here, and not in each crate that awaits the
// function.
use async_recursion::async_recursion as boxed;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use packhouse_advisories::Advisories;
use packhouse_config::{Config, UpstreamBounds, UpstreamNetwork};
use packhouse_identity::{SealError, Sealer};
use packhouse_runtime::{CacheUse, Fetch, Plugin, Reply, RepositoryView, ServiceError};
use packhouse_store::{RepositoryId, Store, StoreError, now_ms};
use tokio::sync::Semaphore;
use url::Url;

use self::answer::FetchTask;
use self::client::UpstreamClient;
use self::context::FetchContext;
pub use self::counts::CountsView;
use self::counts::{CacheOutcome, OutcomeCounts};
use self::credentials::Credentials;
use self::egress_policy::{EgressPolicy, SystemLookup};
pub use self::health::{HealthState, HealthView};
use self::negative_cache::NegativeCache;
use self::plan::FetchPlan;
pub use self::releases::{UnstatedTime, judge_releases};
use self::remote::{Remote, RemoteError};
use self::reply::ProxyReply;
pub use self::session::{CallOutcome, UpstreamReport, UpstreamSession};
use self::session::{SaturatedUpstream, SessionOutcome, UsedResponse};
use self::single_flight::SingleFlight;
use self::sync::lock;
use self::unverified::UnverifiedResponses;

/// The upstreams of all proxy repositories.
pub struct Upstreams {
    context: Arc<FetchContext>,
    fetches: Arc<SingleFlight>,
    policy: EgressPolicy,
    bounds: UpstreamBounds,
    /// Start time of this program, in ms since 1970.
    started_at: i64,
    /// True if metrics may contain repository names: only with a separate metrics listener, which
    /// few clients can reach.
    metrics_name_repositories: bool,
    clients: Mutex<HashMap<RepositoryId, KnownUpstream>>,
    /// Slots for waiting calls of each plugin, by its format.
    wait_slots: Mutex<HashMap<String, Arc<Semaphore>>>,
}

/// A repository's upstream. The client is replaced when its connection settings change; the counts
/// continue.
struct KnownUpstream {
    /// Hash of the settings that the client was built from. 0 means that the client must not be
    /// used again.
    connection: u64,
    client: Arc<UpstreamClient>,
    counts: Arc<OutcomeCounts>,
}

impl Upstreams {
    /// Creates upstreams that may be at public addresses and in the networks that the configuration
    /// allows.
    pub fn new(store: Store, config: &Config, advisories: Arc<Advisories>) -> Arc<Upstreams> {
        let context = Arc::new(FetchContext {
            store,
            sealer: Sealer::new(config.sealing_key.clone(), &config.data),
            negatives: NegativeCache::default(),
            unverified: UnverifiedResponses::default(),
            advisories,
        });
        Arc::new(Upstreams {
            fetches: SingleFlight::new(Arc::clone(&context)),
            context,
            policy: EgressPolicy::new(&config.upstream_allow_networks, Arc::new(SystemLookup)),
            bounds: config.upstream,
            started_at: now_ms(),
            metrics_name_repositories: config.metrics_listen.is_some(),
            clients: Mutex::default(),
            wait_slots: Mutex::default(),
        })
    }

    /// Returns a server at this address for the host's own requests, under the rules of upstreams.
    /// `patience` limits the time of a whole response.
    pub fn remote(
        &self,
        address: &Url,
        credentials: Option<Credentials>,
        patience: Duration,
    ) -> Result<Remote, RemoteError> {
        Remote::new(address, &self.policy, self.bounds, credentials, patience)
    }

    /// Replaces the allowed networks. Existing connections are not used again.
    pub fn allow(&self, networks: Vec<UpstreamNetwork>) {
        self.policy.allow(networks);
        lock(&self.clients).values_mut().for_each(|known| known.connection = 0);
    }

    /// Creates the session of a call of this plugin. `ordering` compares versions with the versions
    /// in advisories; it is the plugin that is active for the format, which may be another version
    /// of `plugin`.
    pub fn session(&self, plugin: &Plugin, ordering: Option<Arc<Plugin>>) -> Arc<UpstreamSession> {
        let (description, max_calls) = (plugin.description(), plugin.concurrency());
        let mut slots = lock(&self.wait_slots);
        let slots = slots.entry(description.format.clone()).or_insert_with(|| session::wait_slots(max_calls));
        let presents_credentials = !description.upstream_credentials.is_empty();
        UpstreamSession::new(presents_credentials, Arc::clone(slots), max_calls, ordering)
    }

    /// Starts a request to a proxy's upstream for a session's call and returns immediately.
    /// `Denied` if the repository is not a proxy, `Invalid` if the request cannot be sent.
    pub fn fetch(
        &self,
        proxy: &RepositoryView,
        fetch: Fetch,
        session: Arc<UpstreamSession>,
    ) -> Result<Box<dyn Reply>, ServiceError> {
        let expected = fetch.expect.clone();
        let plan = FetchPlan::new(proxy, fetch, session.presents_credentials())?;
        let (client, counts) = self.client(proxy, &plan, session.max_waiting_for_one())?;
        let fetches = Arc::clone(&self.fetches);
        let task = FetchTask { fetches, client, plan: Arc::new(plan), expected, session };
        Ok(Box::new(ProxyReply::start(task, counts)))
    }

    /// Ends the session of a call. If the call succeeded, the responses that it used are cached.
    /// They are discarded if the call failed because of them, or if the plugin left their proxy out
    /// of its answer. `reason` is the error in words. Returns a session for a retry if a retry may
    /// succeed.
    #[boxed]
    pub async fn end(
        &self,
        session: &UpstreamSession,
        outcome: CallOutcome,
        reason: Option<&str>,
    ) -> Option<Arc<UpstreamSession>> {
        let SessionOutcome { used, failed, mut left_out, troubles, saturated } = session.end();
        for (repository, (state, detail)) in troubles {
            self.note_health(repository, state, &detail);
        }
        let missed = |it: &SaturatedUpstream| left_out.contains_key(&it.repository);
        if let Some(saturated) = saturated.filter(|it| outcome != CallOutcome::Succeeded || missed(it)) {
            let permit = session.wait_for_permit(&saturated).await?;
            return Some(session.retry_with(permit));
        }
        match outcome {
            CallOutcome::Succeeded => {
                let (suspect, good): (Vec<_>, Vec<_>) =
                    used.into_iter().partition(|it| left_out.contains_key(&it.key.repository));
                self.accept(&good).await;
                let (doubtful, bad) = suspect.into_iter().partition(|it| failed.contains(&it.key.repository));
                self.doubt(doubtful);
                self.discard(session, bad, &left_out).await
            }
            CallOutcome::Suspect if failed.is_empty() => {
                let reason = reason.unwrap_or("the plugin's call failed");
                for it in &used {
                    left_out.entry(it.key.repository).or_insert_with(|| reason.to_owned());
                }
                self.discard(session, used, &left_out).await
            }
            // The failed upstream may be the cause as well. Responses are rejected only if nothing
            // else can be the cause.
            CallOutcome::Suspect => {
                self.doubt(used);
                None
            }
            CallOutcome::Unrelated => None,
        }
    }

    fn doubt(&self, used: Vec<UsedResponse>) {
        used.iter().for_each(|it| self.context.unverified.doubt(&it.unverified));
    }

    fn note_health(&self, repository: RepositoryId, state: HealthState, detail: &str) {
        if let Some(known) = lock(&self.clients).get(&repository) {
            known.client.health.note(state, Some(detail.to_owned()));
        }
    }

    async fn accept(&self, used: &[UsedResponse]) {
        let FetchContext { store, unverified, .. } = &*self.context;
        // A call may have used dozens of responses. They are cached concurrently, so that their
        // commits share a flush.
        let accepted = used.iter().map(|used| async move {
            if let Err(error) = unverified.accept(store, used.key, &used.unverified).await {
                tracing::warn!(%error, repository = %used.key.repository, "caching an upstream response failed");
            }
        });
        futures::future::join_all(accepted).await;
    }

    async fn discard(
        &self,
        session: &UpstreamSession,
        used: Vec<UsedResponse>,
        reasons: &HashMap<RepositoryId, String>,
    ) -> Option<Arc<UpstreamSession>> {
        let mut replaced = HashSet::new();
        for UsedResponse { key, plan, status, unverified, has_fallback } in used {
            let (repository, path) = (&*plan.repository_name, plan.path());
            let reason = reasons.get(&key.repository).map(String::as_str).unwrap_or_default();
            tracing::warn!(
                repository,
                path,
                status,
                reason,
                older = has_fallback,
                "discarded an unreadable upstream response"
            );
            self.context.unverified.reject(key, &unverified, plan.settings.metadata_ms()).await;
            if let Some(known) = lock(&self.clients).get(&key.repository) {
                known.counts.count(CacheOutcome::Error);
            }
            if status == 200 {
                self.note_health(key.repository, HealthState::Unreachable, reason);
            }
            if has_fallback {
                replaced.insert(key);
            }
        }
        (!replaced.is_empty()).then(|| session.retry_without(replaced))
    }

    /// Records further uses of cached responses, so that they are not evicted first. The caller has
    /// repeated a plugin's answer that depends on them, without calling the plugin.
    pub fn used_again(&self, uses: &[CacheUse]) {
        if uses.is_empty() {
            return;
        }
        let clients = lock(&self.clients);
        for CacheUse { repository, name, stale } in uses {
            if let Some(known) = clients.get(repository) {
                known.counts.count(if *stale { CacheOutcome::Stale } else { CacheOutcome::Hit });
            }
            if let Some(name) = name {
                self.context.store.cache_used(*repository, name);
            }
        }
    }

    /// Returns how a repository's requests were answered since this program started.
    pub fn counts(&self, repository: RepositoryId) -> CountsView {
        lock(&self.clients).get(&repository).map(|known| known.counts.view()).unwrap_or_default()
    }

    /// Returns the health of a proxy's upstream, as this server last observed it. The state is `Ok`
    /// if no request was sent since the upstream was set up.
    pub fn health(&self, repository: RepositoryId) -> HealthView {
        let clients = lock(&self.clients);
        let known = clients.get(&repository).filter(|known| known.connection != 0);
        known.map_or_else(
            || HealthView { state: HealthState::Ok, since: self.started_at, detail: None },
            |known| known.client.health.view(),
        )
    }

    /// Returns the proxies whose upstreams do not work, as this server last observed them, the
    /// longest failure first.
    pub fn unhealthy(&self) -> Vec<(RepositoryId, HealthView)> {
        let clients = lock(&self.clients);
        let used = clients.iter().filter(|(_, known)| known.connection != 0);
        let views = used.map(|(id, known)| (*id, known.client.health.view()));
        let mut unhealthy: Vec<_> = views.filter(|(_, view)| view.state != HealthState::Ok).collect();
        drop(clients);
        unhealthy.sort_unstable_by_key(|(id, view)| (view.since, *id));
        unhealthy
    }

    /// Removes the cached responses whose target begins with `prefix`. Returns their number.
    #[boxed]
    pub async fn purge(&self, repository: RepositoryId, prefix: &str) -> Result<u64, StoreError> {
        self.context.negatives.purge(repository, prefix);
        self.context.unverified.purge(repository, prefix);
        self.context.store.purge_cache(repository, prefix).await
    }

    /// Discards the state of a repository whose credentials or upstream have changed. The client
    /// and its tokens are not used again, and cached 404 responses and refusals are dropped.
    pub fn forget(&self, repository: RepositoryId) {
        self.context.negatives.purge(repository, "");
        if let Some(known) = lock(&self.clients).get_mut(&repository) {
            known.connection = 0;
        }
    }

    /// Seals credentials for this repository's upstream. The result cannot be opened for another
    /// repository.
    pub fn seal(&self, repository: RepositoryId, credentials: &Credentials) -> Result<String, SealError> {
        self.context.seal(repository, credentials)
    }

    fn client(
        &self,
        proxy: &RepositoryView,
        plan: &FetchPlan,
        max_waiting: usize,
    ) -> Result<(Arc<UpstreamClient>, Arc<OutcomeCounts>), ServiceError> {
        let connection = plan.settings.connection().max(1);
        let mut clients = lock(&self.clients);
        let known = clients.get(&proxy.id);
        if let Some(known) = known.filter(|known| known.connection == connection) {
            return Ok((Arc::clone(&known.client), Arc::clone(&known.counts)));
        }
        let counts = known.map_or_else(
            || OutcomeCounts::new(self.metrics_name_repositories.then_some(&*proxy.name)),
            |known| Arc::clone(&known.counts),
        );
        let client = Arc::new(UpstreamClient::new(&plan.settings, &self.policy, self.bounds, max_waiting)?);
        let known = KnownUpstream { connection, client: Arc::clone(&client), counts: Arc::clone(&counts) };
        clients.insert(proxy.id, known);
        Ok((client, counts))
    }
}
