//! Metadata that no plugin has read yet. A new response replaces the cached one once a plugin has
//! read it successfully.
//!
//! The host can tell that a body is complete, but not that it is valid metadata. So a response that
//! a plugin reads, and every response to a `HEAD`, is stored outside the cache until a call that
//! used it succeeds. If a call fails because of the response, the host discards it and keeps using
//! the cached one. Unverified responses are in memory and in unnamed files, so a restart only costs
//! another request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use packhouse_store::{CachedAnswer, CatalogFile, RepositoryId, Store, StoreError, now_ms};
use quick_cache::sync::Cache;

use super::cache_key::CacheKey;
use super::sync::lock;

/// Maximum number of unverified responses.
const MOST: usize = 1_000;
/// How long (ms) a response waits for a call that uses it.
const PATIENCE: i64 = 10 * 60 * 1000;
/// Longest time (ms) without new requests after a response was rejected, while an older one is
/// cached.
const BACKOFF: i64 = 30_000;

/// A response that no successful call has used yet.
#[derive(Default)]
pub(crate) struct UnverifiedResponse {
    state: tokio::sync::Mutex<VerificationState>,
    rejected: AtomicBool,
    received: Mutex<Option<ReceivedResponse>>,
}

/// A complete response, and the file that it is listed as once it is cached.
#[derive(Clone)]
pub(crate) struct CompleteResponse {
    pub answer: CachedAnswer,
    pub shown: Option<CatalogFile>,
}

struct ReceivedResponse {
    response: CompleteResponse,
    /// Time from which no further call gets the response (ms since 1970).
    expires_at: i64,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum VerificationState {
    /// No call that used the response has ended.
    #[default]
    Pending,
    /// A call that used the response succeeded.
    Accepted,
    /// The response is in the cache.
    Cached,
    /// A call failed because of the response.
    Rejected,
}

impl UnverifiedResponse {
    /// Returns the response, once it is complete and until it expires.
    fn answer(&self, now: i64) -> Option<CachedAnswer> {
        let received = lock(&self.received);
        received.as_ref().filter(|it| now < it.expires_at).map(|it| it.response.answer.clone())
    }

    /// Returns true if a call failed because of the response. Other calls must not use it, even if
    /// its fetch has not ended yet.
    pub(crate) fn is_rejected(&self) -> bool {
        self.rejected.load(Ordering::Acquire)
    }

    fn target_begins_with(&self, prefix: &str) -> bool {
        lock(&self.received).as_ref().is_some_and(|it| it.response.answer.target.starts_with(prefix))
    }
}

/// The unverified responses of all repositories.
pub(crate) struct UnverifiedResponses {
    pending: Cache<CacheKey, Arc<UnverifiedResponse>>,
    /// End of the pause after a rejected response (ms since 1970).
    backoff: Cache<CacheKey, i64>,
}

impl Default for UnverifiedResponses {
    fn default() -> UnverifiedResponses {
        UnverifiedResponses { pending: Cache::new(MOST), backoff: Cache::new(MOST) }
    }
}

impl UnverifiedResponses {
    /// Returns the latest response, if it is complete and still pending.
    pub(crate) fn get(&self, key: CacheKey) -> Option<(Arc<UnverifiedResponse>, CachedAnswer)> {
        let latest = self.pending.get(&key)?;
        let answer = latest.answer(now_ms())?;
        Some((latest, answer))
    }

    /// Stores a complete response. If a call that only passed the response on has already
    /// succeeded, the response is cached immediately.
    pub(crate) async fn complete(
        &self,
        store: &Store,
        key: CacheKey,
        unverified: &Arc<UnverifiedResponse>,
        response: CompleteResponse,
    ) -> Result<(), StoreError> {
        let mut state = unverified.state.lock().await;
        match *state {
            VerificationState::Accepted => {
                cache(store, key, response).await?;
                *state = VerificationState::Cached;
                self.backoff.remove(&key);
            }
            VerificationState::Pending => {
                let expires_at = response.answer.fetched_at.saturating_add(PATIENCE);
                *lock(&unverified.received) = Some(ReceivedResponse { response, expires_at });
                self.pending.insert(key, Arc::clone(unverified));
            }
            VerificationState::Cached | VerificationState::Rejected => {}
        }
        Ok(())
    }

    /// Records a successful call: the response is cached now, or as soon as it is complete.
    pub(crate) async fn accept(
        &self,
        store: &Store,
        key: CacheKey,
        unverified: &Arc<UnverifiedResponse>,
    ) -> Result<(), StoreError> {
        let mut state = unverified.state.lock().await;
        if *state != VerificationState::Pending {
            return Ok(());
        }
        let received = lock(&unverified.received).as_ref().map(|it| it.response.clone());
        let Some(response) = received else {
            *state = VerificationState::Accepted;
            return Ok(());
        };
        cache(store, key, response).await?;
        *state = VerificationState::Cached;
        // The upstream sends readable responses again, so requests may resume.
        self.backoff.remove(&key);
        self.remove(key, unverified);
        Ok(())
    }

    /// Rejects a response because a call failed. If an older response is cached, the upstream is
    /// not asked again for `ttl` (ms), at most [`BACKOFF`].
    pub(crate) async fn reject(&self, key: CacheKey, unverified: &Arc<UnverifiedResponse>, ttl: i64) {
        let mut state = unverified.state.lock().await;
        if *state == VerificationState::Pending {
            *state = VerificationState::Rejected;
            unverified.rejected.store(true, Ordering::Release);
            self.remove(key, unverified);
            self.backoff.insert(key, now_ms().saturating_add(ttl.min(BACKOFF)));
        }
    }

    /// Records a failed call that may have another cause. The response expires within [`BACKOFF`],
    /// so that an upstream that has recovered by then is asked.
    pub(crate) fn doubt(&self, unverified: &UnverifiedResponse) {
        if let Some(received) = lock(&unverified.received).as_mut() {
            received.expires_at = received.expires_at.min(now_ms().saturating_add(BACKOFF));
        }
    }

    /// Returns true if the upstream's current response was rejected a short while ago.
    pub(crate) fn is_backed_off(&self, key: CacheKey) -> bool {
        self.backoff.get(&key).is_some_and(|until| now_ms() < until)
    }

    /// Drops the responses of a repository whose target begins with `prefix`.
    pub(crate) fn purge(&self, repository: RepositoryId, prefix: &str) {
        self.backoff.retain(|key, _| key.repository != repository);
        self.pending
            .retain(|key, unverified| key.repository != repository || !unverified.target_begins_with(prefix));
    }

    /// Removes this response, but not a later one for the same request.
    fn remove(&self, key: CacheKey, unverified: &Arc<UnverifiedResponse>) {
        self.pending.remove_if(&key, |latest| Arc::ptr_eq(latest, unverified));
    }
}

/// Caches a response and announces the end of the fetch to other servers that wait for it.
async fn cache(store: &Store, key: CacheKey, response: CompleteResponse) -> Result<(), StoreError> {
    let CompleteResponse { answer, shown } = response;
    store.cache(key.repository, &answer, shown).await?;
    // If the announcement fails, the other servers stop waiting by themselves.
    let _ = store.release_fetch(key.repository, &answer.name).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(target: &str, fetched_at: i64) -> CachedAnswer {
        CachedAnswer {
            name: [0; 32],
            method: "GET".to_owned(),
            target: target.to_owned(),
            status: 200,
            headers: Vec::new(),
            address: String::new(),
            blob: None,
            fetched_at,
            validated_at: fetched_at,
        }
    }

    fn received(
        all: &UnverifiedResponses,
        number: i64,
        fetched_at: i64,
    ) -> (CacheKey, Arc<UnverifiedResponse>) {
        let key = CacheKey { repository: RepositoryId(number), name: [0; 32] };
        let unverified = Arc::new(UnverifiedResponse::default());
        let response = CompleteResponse { answer: answer("/a/b", fetched_at), shown: None };
        *lock(&unverified.received) = Some(ReceivedResponse { response, expires_at: fetched_at + PATIENCE });
        all.pending.insert(key, Arc::clone(&unverified));
        (key, unverified)
    }

    #[tokio::test]
    async fn a_rejected_response_is_dropped_and_requests_pause() {
        let all = UnverifiedResponses::default();
        let (key, unverified) = received(&all, 1, now_ms());
        assert!(all.get(key).is_some() && !all.is_backed_off(key));
        all.reject(key, &unverified, 600_000).await;
        assert!(all.get(key).is_none() && all.is_backed_off(key));
        let (other, unverified) = received(&all, 2, now_ms());
        all.reject(other, &unverified, 0).await;
        assert!(!all.is_backed_off(other), "metadata with a lifetime of zero are requested again");
    }

    #[tokio::test]
    async fn a_late_rejection_does_not_affect_a_newer_response() {
        let all = UnverifiedResponses::default();
        let (key, former) = received(&all, 1, now_ms());
        let (_, newer) = received(&all, 1, now_ms());
        all.reject(key, &former, 0).await;
        assert!(all.get(key).is_some_and(|(found, _)| Arc::ptr_eq(&found, &newer)));
    }

    #[test]
    fn a_doubted_response_expires_after_half_a_minute() {
        let all = UnverifiedResponses::default();
        let (key, unverified) = received(&all, 1, now_ms());
        all.doubt(&unverified);
        assert!(all.get(key).is_some());
        let now = now_ms();
        assert!(
            unverified.answer(now + BACKOFF - 1_000).is_some() && unverified.answer(now + BACKOFF).is_none()
        );
    }

    #[test]
    fn expired_and_purged_responses_are_not_served() {
        let all = UnverifiedResponses::default();
        let (old, _) = received(&all, 1, now_ms() - PATIENCE);
        assert!(all.get(old).is_none());
        let (key, _) = received(&all, 2, now_ms());
        all.purge(RepositoryId(2), "/c");
        assert!(all.get(key).is_some());
        all.purge(RepositoryId(2), "/a");
        assert!(all.get(key).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let all = UnverifiedResponses::default();
        for number in 0..=2 * i64::try_from(MOST).unwrap() {
            received(&all, number, now_ms());
        }
        // Each shard of the map rounds its part of the bound up.
        assert!(all.pending.len() <= MOST + MOST / 10);
    }
}
