//! What a shared fetch works with, and how it keeps its response.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use packhouse_store::{Blob, CachedAnswer, ShownFile, StoreError, now_ms};

use super::super::client::UpstreamClient;
use super::super::context::FetchContext;
use super::super::error::UpstreamError;
use super::super::fetched::FetchedResponse;
use super::super::plan::FetchPlan;
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
    /// Counts an error in the circuit breaker where it says something about the upstream's health.
    pub(super) fn note_failure(&self, error: &UpstreamError) {
        let retry_after =
            if let UpstreamError::Failing(_, retry_after) = error { *retry_after } else { None };
        if let (UpstreamError::Failing(status, _), Some(wait)) = (error, retry_after) {
            metrics::counter!("packhouse_upstream_throttled_total").increment(1);
            tracing::warn!(
                target = self.plan.target,
                status,
                seconds = wait.as_secs(),
                "an upstream asks to wait: until then what is cached is served"
            );
        }
        if error.is_failure() {
            self.client.breaker.failed(retry_after, Instant::now());
        }
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
