//! Metadata that no plugin has read yet. A new response replaces the cached one once a plugin could make sense of it.
//!
//! The host can tell that a body is complete, but not that it is metadata. So a response that a plugin reads, and every response to
//! a `HEAD`, stays beside the cache until a call that used it succeeds. When the call fails because of it, the response is
//! discarded, and the cached one is served further. Unverified responses live in memory and in files without a name: a restart
//! loses nothing but a request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use packhouse_store::{CachedAnswer, RepositoryId, ShownFile, Store, StoreError, now_ms};
use quick_cache::sync::Cache;

use super::cache_key::CacheKey;
use super::sync::lock;

/// The number of responses that wait for verification.
const MOST: usize = 1_000;
/// The time (ms) for which a response waits for a call that uses it.
const PATIENCE: i64 = 10 * 60 * 1000;
/// The longest time (ms) for which an upstream is not asked again after a response was rejected, as long as an older one is cached.
const BACKOFF: i64 = 30_000;

/// See the module.
#[derive(Default)]
pub(crate) struct UnverifiedResponse {
    state: tokio::sync::Mutex<State>,
    rejected: AtomicBool,
    received: Mutex<Option<Received>>,
}

/// A complete response, and as which file it is shown once it is cached.
#[derive(Clone)]
pub(crate) struct CompleteResponse {
    pub answer: CachedAnswer,
    pub shown: Option<ShownFile>,
}

struct Received {
    response: CompleteResponse,
    /// Until when (ms since 1970) it is handed to further calls.
    expires_at: i64,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    /// No call that used it has ended.
    #[default]
    Pending,
    /// A call that used it succeeded.
    Accepted,
    /// It is in the cache.
    Cached,
    /// A call failed because of it.
    Rejected,
}

impl UnverifiedResponse {
    /// The response, once it is complete and until it expires.
    fn answer(&self, now: i64) -> Option<CachedAnswer> {
        let received = lock(&self.received);
        received.as_ref().filter(|it| now < it.expires_at).map(|it| it.response.answer.clone())
    }

    /// Whether a call failed because of it, so that no other is to have it, though its fetch may not have ended yet.
    pub(crate) fn is_rejected(&self) -> bool {
        self.rejected.load(Ordering::Acquire)
    }

    fn target_begins_with(&self, prefix: &str) -> bool {
        lock(&self.received).as_ref().is_some_and(|it| it.response.answer.target.starts_with(prefix))
    }
}

/// All unverified responses.
pub(crate) struct UnverifiedResponses {
    pending: Cache<CacheKey, Arc<UnverifiedResponse>>,
    /// Until when (ms since 1970) the upstream is not asked again, by what was rejected.
    backoff: Cache<CacheKey, i64>,
}

impl Default for UnverifiedResponses {
    fn default() -> UnverifiedResponses {
        UnverifiedResponses { pending: Cache::new(MOST), backoff: Cache::new(MOST) }
    }
}

impl UnverifiedResponses {
    /// The latest response, if it is complete and still pending.
    pub(crate) fn get(&self, key: CacheKey) -> Option<(Arc<UnverifiedResponse>, CachedAnswer)> {
        let latest = self.pending.get(&key)?;
        let answer = latest.answer(now_ms())?;
        Some((latest, answer))
    }

    /// A response is complete. A call that passed it on without reading it may have succeeded by now: then it is cached.
    pub(crate) async fn complete(
        &self,
        store: &Store,
        key: CacheKey,
        unverified: &Arc<UnverifiedResponse>,
        response: CompleteResponse,
    ) -> Result<(), StoreError> {
        let mut state = unverified.state.lock().await;
        match *state {
            State::Accepted => {
                cache(store, key, response).await?;
                *state = State::Cached;
                self.backoff.remove(&key);
            }
            State::Pending => {
                let expires_at = response.answer.fetched_at.saturating_add(PATIENCE);
                *lock(&unverified.received) = Some(Received { response, expires_at });
                self.pending.insert(key, Arc::clone(unverified));
            }
            State::Cached | State::Rejected => {}
        }
        Ok(())
    }

    /// A call that used it succeeded: it is cached now, or as soon as it is complete.
    pub(crate) async fn accept(
        &self,
        store: &Store,
        key: CacheKey,
        unverified: &Arc<UnverifiedResponse>,
    ) -> Result<(), StoreError> {
        let mut state = unverified.state.lock().await;
        if *state != State::Pending {
            return Ok(());
        }
        let received = lock(&unverified.received).as_ref().map(|it| it.response.clone());
        let Some(response) = received else {
            *state = State::Accepted;
            return Ok(());
        };
        cache(store, key, response).await?;
        *state = State::Cached;
        // The upstream sends what can be read again, so it may be asked again.
        self.backoff.remove(&key);
        self.remove(key, unverified);
        Ok(())
    }

    /// A call failed because of it. The upstream is not asked again for `ttl` (ms), and for [`BACKOFF`] at most, where an older
    /// response will do.
    pub(crate) async fn reject(&self, key: CacheKey, unverified: &Arc<UnverifiedResponse>, ttl: i64) {
        let mut state = unverified.state.lock().await;
        if *state == State::Pending {
            *state = State::Rejected;
            unverified.rejected.store(true, Ordering::Release);
            self.remove(key, unverified);
            self.backoff.insert(key, now_ms().saturating_add(ttl.min(BACKOFF)));
        }
    }

    /// A call that used it failed, and something else may be the cause. It expires no later than a backoff would: an upstream that
    /// has recovered by then is asked.
    pub(crate) fn doubt(&self, unverified: &UnverifiedResponse) {
        if let Some(received) = lock(&unverified.received).as_mut() {
            received.expires_at = received.expires_at.min(now_ms().saturating_add(BACKOFF));
        }
    }

    /// Whether the upstream's present response was rejected a short while ago.
    pub(crate) fn is_backed_off(&self, key: CacheKey) -> bool {
        self.backoff.get(&key).is_some_and(|until| now_ms() < until)
    }

    /// Forgets the responses of a repository whose target begins with `prefix`.
    pub(crate) fn purge(&self, repository: RepositoryId, prefix: &str) {
        self.backoff.retain(|key, _| key.repository != repository);
        self.pending
            .retain(|key, unverified| key.repository != repository || !unverified.target_begins_with(prefix));
    }

    /// Removes this response, and not a later one for the same request.
    fn remove(&self, key: CacheKey, unverified: &Arc<UnverifiedResponse>) {
        self.pending.remove_if(&key, |latest| Arc::ptr_eq(latest, unverified));
    }
}

/// Caches it, and tells other servers that wait for this fetch that it has ended.
async fn cache(store: &Store, key: CacheKey, response: CompleteResponse) -> Result<(), StoreError> {
    let CompleteResponse { answer, shown } = response;
    store.cache(key.repository, &answer, shown).await?;
    // What is not told ends by itself.
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
        *lock(&unverified.received) = Some(Received { response, expires_at: fetched_at + PATIENCE });
        all.pending.insert(key, Arc::clone(&unverified));
        (key, unverified)
    }

    #[tokio::test]
    async fn what_is_rejected_is_gone_and_not_asked_for_again_for_a_while() {
        let all = UnverifiedResponses::default();
        let (key, unverified) = received(&all, 1, now_ms());
        assert!(all.get(key).is_some() && !all.is_backed_off(key));
        all.reject(key, &unverified, 600_000).await;
        assert!(all.get(key).is_none() && all.is_backed_off(key));
        let (other, unverified) = received(&all, 2, now_ms());
        all.reject(other, &unverified, 0).await;
        assert!(!all.is_backed_off(other), "metadata that are always asked for are asked for again");
    }

    #[tokio::test]
    async fn a_late_rejection_does_not_touch_what_came_since() {
        let all = UnverifiedResponses::default();
        let (key, former) = received(&all, 1, now_ms());
        let (_, newer) = received(&all, 1, now_ms());
        all.reject(key, &former, 0).await;
        assert!(all.get(key).is_some_and(|(found, _)| Arc::ptr_eq(&found, &newer)));
    }

    #[test]
    fn what_is_doubted_is_believed_for_half_a_minute() {
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
    fn nobody_is_served_what_waited_too_long_or_was_purged() {
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
