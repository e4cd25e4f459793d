//! What a shared fetch works with, and how it keeps its response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use packhouse_store::{Blob, CachedAnswer, ShownFile, StoreError, now_ms};

use super::super::authentication::CredentialProblem;
use super::super::circuit_breaker::{Pause, UpstreamFailure};
use super::super::client::UpstreamClient;
use super::super::context::FetchContext;
use super::super::error::{UpstreamError, whole_seconds};
use super::super::fetched::{FetchedResponse, Refusal};
use super::super::health::HealthState;
use super::super::plan::FetchPlan;
use super::super::redirects::Redirected;
use super::super::request::same_origin;
use super::super::unverified::CompleteResponse;
use super::shared_fetch::SharedFetch;

/// See the module.
pub(crate) struct Fetcher {
    pub context: Arc<FetchContext>,
    pub client: Arc<UpstreamClient>,
    pub plan: Arc<FetchPlan>,
    pub shared: Arc<SharedFetch>,
    /// This server has said to the others that it fetches this.
    pub claimed: AtomicBool,
}

/// How long another server that fetches the same is waited for, and how often it is looked whether it has it.
const OTHERS: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);

impl Fetcher {
    /// Notes an answer for the circuit breaker and the upstream's health, whatever its status.
    pub(super) fn note_answer(&self, redirected: &Redirected) {
        if self.asks_upstream_itself() {
            self.client.breaker.succeeded();
        }
        let problem = redirected.problem.as_ref().map(ToString::to_string);
        if let (Some(CredentialProblem::NotShown(_)), Some(problem)) = (&redirected.problem, &problem) {
            self.client.health.note_hint(problem);
        }
        match self.refusal(redirected) {
            Some(refusal) => {
                tracing::warn!(
                    repository = &*self.plan.repository_name,
                    path = self.plan.path(),
                    status = redirected.response.status().as_u16(),
                    problem,
                    "an upstream refuses a request"
                );
                let detail = refusal.at(self.plan.path());
                self.client.health.note(HealthState::Refused, Some(detail));
            }
            None => self.client.health.note(HealthState::Ok, None),
        }
    }

    /// Notes an error for the circuit breaker and the upstream's health where it says something
    /// about the upstream.
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
                "an upstream asks to wait: until then what is cached is served"
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

    /// Returns whether the request goes to the upstream's own host. Metadata may name archives on
    /// other hosts: their failures must not stop requests to the upstream.
    pub(super) fn asks_upstream_itself(&self) -> bool {
        same_origin(&self.plan.request.url, &self.client.upstream)
    }

    /// The error while the circuit breaker sends nothing.
    pub(super) fn paused(&self, pause: Pause) -> UpstreamError {
        if pause.is_throttled {
            return UpstreamError::Throttled(Some(pause.wait));
        }
        let reason = self.client.health.view().detail.unwrap_or_default();
        UpstreamError::CircuitOpen { seconds: whole_seconds(pause.wait), reason }
    }

    /// How the upstream refuses to say what it has; none for any other answer, and for one to a
    /// `POST`, which names no package or file.
    pub(super) fn refusal(&self, redirected: &Redirected) -> Option<Refusal> {
        let status = redirected.response.status().as_u16();
        let refuses = self.plan.is_cacheable() && matches!(status, 401 | 402 | 403 | 405 | 409 | 451);
        refuses.then(|| Refusal { status, problem: redirected.problem.clone() })
    }

    /// Whether another server's fetch of the same is to be waited for, which this has done once more when it returns.
    pub(super) async fn has_waited(&self, begun: Instant) -> bool {
        let FetchPlan { settings, repository, name, freshness, .. } = &*self.plan;
        let claimed = self.claimed.load(Ordering::Relaxed);
        let waits = self.plan.is_cacheable() && settings.keeps(*freshness);
        if claimed || !waits || begun.elapsed() >= OTHERS {
            return false;
        }
        // Where it cannot be told this server fetches.
        if self.context.store.claim_fetch(*repository, name).await.unwrap_or(true) {
            self.claimed.store(true, Ordering::Relaxed);
            // Whom it waited for may have cached it since it was looked for.
            return begun.elapsed() >= LOOK;
        }
        tokio::time::sleep(LOOK).await;
        true
    }

    /// Says that the fetch has ended. Metadata that no plugin has read is not cached yet: others wait on for it.
    pub(super) async fn release(&self) {
        let FetchPlan { repository, name, .. } = &*self.plan;
        if self.claimed.load(Ordering::Relaxed) && !self.plan.needs_verification() {
            let _ = self.context.store.release_fetch(*repository, name).await;
        }
    }

    /// Caches a response, or keeps it until a plugin has read it.
    pub(super) async fn cache(&self, head: &FetchedResponse, blob: Option<Blob>) -> Result<(), StoreError> {
        let FetchPlan { repository, name, request, target, show_as, .. } = &*self.plan;
        let shown = match (&blob, show_as) {
            (Some(blob), Some((name, version, path))) => {
                Some(ShownFile::of(blob, name, version, path).await?)
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
