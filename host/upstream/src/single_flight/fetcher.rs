//! What a shared fetch works with, and how it keeps its response.

use std::sync::Arc;
use std::time::Instant;

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
}

impl Fetcher {
    /// Counts an error in the circuit breaker where it says something about the upstream's health.
    pub(super) fn note_failure(&self, error: &UpstreamError) {
        let retry_after =
            if let UpstreamError::Failing(_, retry_after) = error { *retry_after } else { None };
        if error.is_failure() {
            self.client.breaker.failed(retry_after, Instant::now());
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
