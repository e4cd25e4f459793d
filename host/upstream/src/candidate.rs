//! New metadata on trial: what an upstream sends takes the place of what is kept once a plugin could make sense of it.
//!
//! The host can tell that bytes are whole, but not that they are metadata. So an answer that a plugin reads, and every head, stays
//! beside the cache until a call that used it ends well. When the call fails for it, it is thrown away, and what was kept
//! before serves on. It lies in memory and in files without a name: a restart loses nothing but a question.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use packhouse_store::{CachedAnswer, RepositoryId, ShownFile, Store, StoreError, now_ms};

use super::lock;
use super::negative::Key;

/// As many are on trial at one time; what comes beyond that is not kept.
const MOST: usize = 1_000;
/// For how long (ms) one waits for a call that uses it.
const PATIENCE: i64 = 10 * 60 * 1000;
/// For how long at most (ms) an upstream is not asked again for what was thrown away, as long as something older is kept.
const HELD: i64 = 30_000;

/// An answer on trial.
#[derive(Default)]
pub struct Candidate {
    state: tokio::sync::Mutex<State>,
    arrived: Mutex<Option<Arrived>>,
}

/// All of an answer, and as which file it is shown once it is kept.
struct Arrived {
    answer: CachedAnswer,
    shown: Option<ShownFile>,
    /// Until when (ms since 1970) it serves whoever comes to judge it.
    until: i64,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum State {
    /// Nothing was said of it yet.
    #[default]
    OnTrial,
    /// A call ended well that used it.
    Proven,
    /// It is in the cache.
    Kept,
    /// A call failed for it.
    Refused,
}

impl Candidate {
    /// The answer, once all of it has come and as long as it waits.
    fn answer(&self, now: i64) -> Option<CachedAnswer> {
        lock(&self.arrived).as_ref().filter(|arrived| now < arrived.until).map(|it| it.answer.clone())
    }
}

/// All that are on trial, by what was asked.
#[derive(Default)]
pub(crate) struct Candidates {
    waiting: Mutex<HashMap<Key, Arc<Candidate>>>,
    held: Mutex<HashMap<Key, i64>>,
}

impl Candidates {
    /// The one that came last and that nobody has judged yet.
    pub(crate) fn get(&self, key: Key) -> Option<(Arc<Candidate>, CachedAnswer)> {
        let candidate = lock(&self.waiting).get(&key).cloned()?;
        let answer = candidate.answer(now_ms())?;
        Some((candidate, answer))
    }

    /// All of it has come. A call that passed it on without looking may have ended well by now.
    pub(crate) async fn came(
        &self,
        store: &Store,
        key: Key,
        candidate: &Arc<Candidate>,
        (answer, shown): (CachedAnswer, Option<ShownFile>),
    ) -> Result<(), StoreError> {
        let mut state = candidate.state.lock().await;
        match *state {
            State::Proven => {
                store.cache(key.0, &answer, shown).await?;
                *state = State::Kept;
                lock(&self.held).remove(&key);
            }
            State::OnTrial => {
                let until = answer.fetched_at.saturating_add(PATIENCE);
                *lock(&candidate.arrived) = Some(Arrived { answer, shown, until });
                self.put(key, candidate);
            }
            State::Kept | State::Refused => {}
        }
        Ok(())
    }

    /// A call ended well that used it: from now on it is what is kept.
    pub(crate) async fn prove(
        &self,
        store: &Store,
        key: Key,
        candidate: &Arc<Candidate>,
    ) -> Result<(), StoreError> {
        let mut state = candidate.state.lock().await;
        if *state != State::OnTrial {
            return Ok(());
        }
        let arrived = lock(&candidate.arrived).as_ref().map(|it| (it.answer.clone(), it.shown.clone()));
        let Some((answer, shown)) = arrived else {
            *state = State::Proven;
            return Ok(());
        };
        store.cache(key.0, &answer, shown).await?;
        *state = State::Kept;
        // The upstream is mended: the next time its turn comes, it is asked.
        lock(&self.held).remove(&key);
        self.remove(key, candidate);
        Ok(())
    }

    /// A call failed for it. For `ttl` (ms), and not for long, the upstream is not asked again where something older will do.
    pub(crate) async fn refuse(&self, key: Key, candidate: &Arc<Candidate>, ttl: i64) {
        let mut state = candidate.state.lock().await;
        if *state == State::OnTrial {
            *state = State::Refused;
            self.remove(key, candidate);
            bounded(&mut lock(&self.held)).insert(key, now_ms().saturating_add(ttl.min(HELD)));
        }
    }

    /// A call failed that used it, and something else may be to blame. It is believed for no longer than what was thrown away is
    /// left alone: an upstream that is mended by then is asked.
    pub(crate) fn doubt(&self, candidate: &Candidate) {
        if let Some(arrived) = lock(&candidate.arrived).as_mut() {
            arrived.until = arrived.until.min(now_ms().saturating_add(HELD));
        }
    }

    /// Whether what the upstream has now was thrown away just before.
    pub(crate) fn is_held(&self, key: Key) -> bool {
        lock(&self.held).get(&key).is_some_and(|until| now_ms() < *until)
    }

    /// Forgets those of a repository whose target begins so.
    pub(crate) fn purge(&self, repository: RepositoryId, prefix: &str) {
        lock(&self.held).retain(|key, _| key.0 != repository);
        self.waiting().retain(|key, candidate| {
            let begins = |arrived: &Arrived| arrived.answer.target.starts_with(prefix);
            key.0 != repository || !lock(&candidate.arrived).as_ref().is_some_and(begins)
        });
    }

    fn put(&self, key: Key, candidate: &Arc<Candidate>) {
        let mut waiting = self.waiting();
        if waiting.len() >= MOST {
            let now = now_ms();
            waiting.retain(|_, it| lock(&it.arrived).as_ref().is_some_and(|arrived| now < arrived.until));
        }
        bounded(&mut waiting).insert(key, Arc::clone(candidate));
    }

    fn remove(&self, key: Key, candidate: &Arc<Candidate>) {
        let mut waiting = self.waiting();
        if waiting.get(&key).is_some_and(|known| Arc::ptr_eq(known, candidate)) {
            waiting.remove(&key);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Key, Arc<Candidate>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A map with room for one more.
fn bounded<T>(map: &mut HashMap<Key, T>) -> &mut HashMap<Key, T> {
    if map.len() >= MOST {
        map.clear();
    }
    map
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

    fn on_trial(candidates: &Candidates, number: i64, fetched_at: i64) -> (Key, Arc<Candidate>) {
        let (key, candidate) = (Key(RepositoryId(number), [0; 32]), Arc::new(Candidate::default()));
        let until = fetched_at + PATIENCE;
        *lock(&candidate.arrived) = Some(Arrived { answer: answer("/a/b", fetched_at), shown: None, until });
        candidates.put(key, &candidate);
        (key, candidate)
    }

    #[tokio::test]
    async fn what_is_refused_is_gone_and_not_asked_for_again_for_a_while() {
        let candidates = Candidates::default();
        let (key, candidate) = on_trial(&candidates, 1, now_ms());
        assert!(candidates.get(key).is_some() && !candidates.is_held(key));
        candidates.refuse(key, &candidate, 600_000).await;
        assert!(candidates.get(key).is_none() && candidates.is_held(key));
        let (other, candidate) = on_trial(&candidates, 2, now_ms());
        candidates.refuse(other, &candidate, 0).await;
        assert!(!candidates.is_held(other), "metadata that are always asked for are asked for again");
    }

    #[tokio::test]
    async fn a_late_refusal_does_not_touch_what_came_since() {
        let candidates = Candidates::default();
        let (key, former) = on_trial(&candidates, 1, now_ms());
        let (_, newer) = on_trial(&candidates, 1, now_ms());
        candidates.refuse(key, &former, 0).await;
        assert!(candidates.get(key).is_some_and(|(found, _)| Arc::ptr_eq(&found, &newer)));
    }

    #[test]
    fn what_is_doubted_is_believed_for_half_a_minute() {
        let candidates = Candidates::default();
        let (key, candidate) = on_trial(&candidates, 1, now_ms());
        candidates.doubt(&candidate);
        assert!(candidates.get(key).is_some());
        let now = now_ms();
        assert!(candidate.answer(now + HELD - 1_000).is_some() && candidate.answer(now + HELD).is_none());
    }

    #[test]
    fn nobody_is_served_what_waited_too_long_or_was_purged() {
        let candidates = Candidates::default();
        let (old, _) = on_trial(&candidates, 1, now_ms() - PATIENCE);
        assert!(candidates.get(old).is_none());
        let (key, _) = on_trial(&candidates, 2, now_ms());
        candidates.purge(RepositoryId(2), "/c");
        assert!(candidates.get(key).is_some());
        candidates.purge(RepositoryId(2), "/a");
        assert!(candidates.get(key).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let candidates = Candidates::default();
        for number in 0..=i64::try_from(MOST).unwrap() {
            on_trial(&candidates, number, now_ms());
        }
        assert!(candidates.waiting().len() <= MOST);
    }
}
