//! Look-up answers cached under a lease. The cache drops an answer when another server or this one
//! announces a change that affects it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quick_cache::unsync::Cache;

use crate::accounts::changed_facts::ChangedFacts;
use crate::accounts::snapshots::{CAPACITY, LookUp, LookUpQuery, Revisions};
use crate::ids::RepositoryId;

/// Cache of look-up answers. The caller must check that a lease is held.
pub(crate) struct LeasedLookUps(Mutex<CachedLookUps>);

struct CachedLookUps {
    answers: Cache<LookUpQuery, Arc<LookUp>>,
    /// Newer revisions of repositories, from announced commits.
    revisions: HashMap<RepositoryId, u64>,
    /// Number of invalidations so far.
    drops: u64,
}

/// Number of invalidations when a query began. Detects an invalidation during the query.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Invalidations(u64);

impl Default for LeasedLookUps {
    fn default() -> LeasedLookUps {
        let (answers, revisions) = (Cache::new(CAPACITY), HashMap::new());
        LeasedLookUps(Mutex::new(CachedLookUps { answers, revisions, drops: 0 }))
    }
}

impl LeasedLookUps {
    fn cache(&self) -> MutexGuard<'_, CachedLookUps> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the cached answer with the revisions announced since.
    pub(super) fn get(&self, question: &LookUpQuery) -> Option<Arc<LookUp>> {
        let mut cache = self.cache();
        let CachedLookUps { answers, revisions, .. } = &mut *cache;
        let mut answer = answers.get_mut(question)?;
        LookUp::move_to(&mut answer, revisions);
        Some(Arc::clone(&answer))
    }

    /// Returns the present number of invalidations. Call it before querying the database.
    pub(super) fn invalidations(&self) -> Invalidations {
        Invalidations(self.cache().drops)
    }

    /// Caches an answer unless an invalidation happened since the query began. Such an invalidation
    /// may have affected the answer.
    pub(super) fn put(&self, before: Invalidations, question: LookUpQuery, answer: &Arc<LookUp>) {
        let mut cache = self.cache();
        if cache.drops == before.0 {
            cache.answers.insert(question, Arc::clone(answer));
        }
    }

    /// Drops the answers that these changes affect and returns their number.
    pub(crate) fn drop_touched(&self, facts: &ChangedFacts) -> usize {
        if facts.is_empty() {
            return 0;
        }
        let mut cache = self.cache();
        cache.drops += 1;
        let before = cache.answers.len();
        if facts.is_everything() {
            cache.answers.clear();
        } else {
            cache.answers.retain(|question, answer| !facts.touch(question, answer));
        }
        before - cache.answers.len()
    }

    pub(crate) fn clear(&self) {
        let mut cache = self.cache();
        cache.drops += 1;
        cache.answers.clear();
        cache.revisions.clear();
    }

    /// Records the new revisions of commits that changed no other part of an answer.
    pub(crate) fn move_to(&self, revisions: &Revisions) {
        let mut cache = self.cache();
        for (id, revision) in revisions {
            let known = cache.revisions.entry(*id).or_default();
            *known = (*known).max(*revision);
        }
    }
}
