//! Executor of a shared fetch: records the upstream's behaviour, coordinates with other servers,
//! and caches the response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use packhouse_store::{Blob, CachedAnswer, CatalogFile, StoreError, now_ms};

use super::super::authentication::CredentialProblem;
use super::super::circuit_breaker::{Pause, UpstreamFailure};
use super::super::client::UpstreamClient;
use super::super::context::FetchContext;
use super::super::error::{UpstreamError, whole_seconds};
use super::super::fetched::{FetchedResponse, UpstreamRefusal};
use super::super::health::HealthState;
use super::super::plan::FetchPlan;
use super::super::redirects::Redirected;
use super::super::request::same_origin;
use super::super::unverified::CompleteResponse;
use super::shared_fetch::SharedFetch;

pub(crate) struct Fetcher {
    pub context: Arc<FetchContext>,
    pub client: Arc<UpstreamClient>,
    pub plan: Arc<FetchPlan>,
    pub shared: Arc<SharedFetch>,
    /// True once this server has announced the fetch to other servers.
    pub claimed: AtomicBool,
}

/// How long to wait for another server's fetch of the same response, and how often to check for it.
const OTHERS: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);

impl Fetcher {
    /// Records an answer with any status for the circuit breaker and the upstream's health.
    pub(super) fn note_answer(&self, redirected: &Redirected) {
        if self.asks_upstream_itself() {
            self.client.breaker.succeeded();
        }
        let problem = redirected.problem.as_ref().map(ToString::to_string);
        if let (Some(CredentialProblem::NotSent(_)), Some(problem)) = (&redirected.problem, &problem) {
            self.client.health.note_hint(problem);
        }
        match self.refusal(redirected) {
            Some(refusal) => {
                tracing::warn!(
                    repository = &*self.plan.repository_name,
                    path = self.plan.path(),
                    status = redirected.response.status().as_u16(),
                    problem,
                    "upstream refused a request"
                );
                let detail = refusal.at(self.plan.path());
                self.client.health.note(HealthState::Refused, Some(detail));
            }
            None => self.client.health.note(HealthState::Ok, None),
        }
    }

    /// Records an error for the circuit breaker and the upstream's health, if it concerns the
    /// upstream.
    pub(super) fn note_failure(&self, error: &UpstreamError) {
        let (status, retry_after) = match error {
            UpstreamError::Failing(status, retry_after) => (*status, *retry_after),
            UpstreamError::Throttled(retry_after) => (429, *retry_after),
            _ => (0, None),
        };
        if let Some(wait) = retry_after {
            metrics::counter!("packhouse_upstream_throttled_total").increment(1);
            tracing::warn!(
                repository = &*self.plan.repository_name,
                path = self.plan.path(),
                status,
                seconds = wait.as_secs(),
                "the upstream asks to wait; cached responses are served until then"
            );
        }
        if error.is_failure() && self.asks_upstream_itself() {
            let is_throttled = status == 429;
            self.client.breaker.failed(UpstreamFailure { retry_after, is_throttled }, Instant::now());
        }
        if error.is_failure() || matches!(error, UpstreamError::Refused(_)) {
            let detail = format!("{error}, for {}", self.plan.path());
            self.client.health.note(HealthState::Unreachable, Some(detail));
        }
    }

    /// Returns true if the request goes to the upstream's own host. Metadata may link to archives
    /// on other hosts. Failures of these hosts must not stop requests to the upstream.
    pub(super) fn asks_upstream_itself(&self) -> bool {
        same_origin(&self.plan.request.url, &self.client.upstream)
    }

    /// Returns the error while the circuit breaker blocks requests.
    pub(super) fn paused(&self, pause: Pause) -> UpstreamError {
        if pause.is_throttled {
            return UpstreamError::Throttled(Some(pause.wait));
        }
        let reason = self.client.health.view().detail.unwrap_or_default();
        UpstreamError::CircuitOpen { seconds: whole_seconds(pause.wait), reason }
    }

    /// Returns the refusal in a response. None for any other response, and for a response to a
    /// `POST`, which names no package or file.
    pub(super) fn refusal(&self, redirected: &Redirected) -> Option<UpstreamRefusal> {
        let status = redirected.response.status().as_u16();
        let refuses = self.plan.is_cacheable() && matches!(status, 401 | 402 | 403 | 405 | 409 | 451);
        refuses.then(|| UpstreamRefusal { status, problem: redirected.problem.clone() })
    }

    /// Waits briefly if another server is fetching the same response. Returns true if the caller
    /// should check the cache again.
    pub(super) async fn has_waited(&self, begun: Instant) -> bool {
        let FetchPlan { settings, repository, name, freshness, .. } = &*self.plan;
        let claimed = self.claimed.load(Ordering::Relaxed);
        let waits = self.plan.is_cacheable() && settings.keeps(*freshness);
        if claimed || !waits || begun.elapsed() >= OTHERS {
            return false;
        }
        // If the database cannot tell whether another server is fetching the response, this server
        // fetches it.
        if self.context.store.claim_fetch(*repository, name).await.unwrap_or(true) {
            self.claimed.store(true, Ordering::Relaxed);
            // After a wait, the other server may have cached the response since the last check.
            return begun.elapsed() >= LOOK;
        }
        tokio::time::sleep(LOOK).await;
        true
    }

    /// Announces the end of the fetch to other servers. Does nothing for metadata: they are cached
    /// only after a plugin has read them, and `unverified` announces the end then.
    pub(super) async fn release(&self) {
        let FetchPlan { repository, name, .. } = &*self.plan;
        if self.claimed.load(Ordering::Relaxed) && !self.plan.needs_verification() {
            let _ = self.context.store.release_fetch(*repository, name).await;
        }
    }

    /// Caches a response, or stores it until a plugin has read it.
    pub(super) async fn cache(&self, head: &FetchedResponse, blob: Option<Blob>) -> Result<(), StoreError> {
        let FetchPlan { repository, name, request, target, show_as, .. } = &*self.plan;
        let shown = match (&blob, show_as) {
            (Some(blob), Some((name, version, path))) => {
                Some(CatalogFile::of(blob, name, version, path).await?)
            }
            _ => None,
        };
        let now = now_ms();
        let answer = CachedAnswer {
            name: *name,
            method: request.method.to_string(),
            target: target.clone(),
            status: head.status,
            headers: head.headers.to_vec(),
            address: head.address.clone(),
            blob,
            fetched_at: now,
            validated_at: now,
        };
        let store = &self.context.store;
        if self.plan.needs_verification() {
            let response = CompleteResponse { answer, shown };
            let unverified = &self.shared.unverified;
            return self.context.unverified.complete(store, self.plan.key(), unverified, response).await;
        }
        store.cache(*repository, &answer, shown).await
    }
}
