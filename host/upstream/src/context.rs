//! Shared state of all requests to upstreams: the store, the caches in memory, and the sealing key
//! of credentials.

use std::sync::Arc;

use packhouse_advisories::Advisories;
use packhouse_identity::{SealError, Sealer};
use packhouse_store::{RepositoryId, Store};

use super::client::UpstreamClient;
use super::credentials::{Credentials, UpstreamAuth};
use super::error::UpstreamError;
use super::negative_cache::NegativeCache;
use super::plan::FetchPlan;
use super::unverified::UnverifiedResponses;

/// Shared state of all requests; see the module.
pub(crate) struct FetchContext {
    pub advisories: Arc<Advisories>,
    pub store: Store,
    pub sealer: Sealer,
    pub negatives: NegativeCache,
    pub unverified: UnverifiedResponses,
}

impl FetchContext {
    /// Seals credentials for this repository's upstream. The result cannot be opened for another
    /// repository.
    pub(crate) fn seal(
        &self,
        repository: RepositoryId,
        credentials: &Credentials,
    ) -> Result<String, SealError> {
        self.sealer.seal(&seal_purpose(repository), &credentials.to_secret())
    }

    /// Returns how a request authenticates at the upstream. `Unavailable` if the credentials cannot
    /// be decrypted, `Store` if they cannot be read.
    pub(crate) async fn auth(
        &self,
        client: &UpstreamClient,
        plan: &FetchPlan,
    ) -> Result<UpstreamAuth, UpstreamError> {
        if !plan.presents_credentials {
            return Ok(UpstreamAuth::None);
        }
        let read = async {
            let Some(sealed) = self.store.upstream_credentials(plan.repository).await? else {
                return Ok(None);
            };
            let opened = self
                .sealer
                .open(&seal_purpose(plan.repository), &sealed)
                .map_err(UpstreamError::unavailable)?;
            Ok(Credentials::of_secret(&opened))
        };
        Ok(UpstreamAuth::OnChallenge(client.keyring.credentials(read).await?))
    }

    /// Shrinks a repository's cache to its limit. Returns immediately if another task is already
    /// shrinking the cache.
    pub(crate) async fn shrink_cache(&self, client: &UpstreamClient, plan: &FetchPlan) {
        let Some(most) = plan.settings.cache_max_bytes else { return };
        let Ok(_shrinking) = client.shrinking.try_lock() else { return };
        if let Err(error) = self.store.shrink_cache(plan.repository, most).await {
            tracing::warn!(%error, repository = %plan.repository, "shrinking the cache failed");
        }
    }
}

/// Purpose for which credentials are sealed. The purpose is part of the sealed data, so it must not
/// change.
fn seal_purpose(repository: RepositoryId) -> String {
    format!("upstream {repository}")
}
