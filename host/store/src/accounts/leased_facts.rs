//! Answers of look-ups kept under a lease: what no announced change has touched since they were asked for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quick_cache::unsync::Cache;

use crate::accounts::facts::Facts;
use crate::accounts::snapshots::{CAPACITY, LookUp, Question, Revisions};
use crate::ids::RepositoryId;

/// Answers of look-ups. Whether a lease is held is for the caller to say.
pub(crate) struct LeasedFacts(Mutex<Kept>);

struct Kept {
    answers: Cache<Question, Arc<LookUp>>,
    /// What announced commits made of repositories' revisions.
    revisions: HashMap<RepositoryId, u64>,
    /// How often something was dropped.
    drops: u64,
}

/// When a question was asked: before or after something was dropped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskedAt(u64);

impl Default for LeasedFacts {
    fn default() -> LeasedFacts {
        let (answers, revisions) = (Cache::new(CAPACITY), HashMap::new());
        LeasedFacts(Mutex::new(Kept { answers, revisions, drops: 0 }))
    }
}

impl LeasedFacts {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer, with the revisions that were announced since.
    pub(super) fn get(&self, question: &Question) -> Option<Arc<LookUp>> {
        let mut kept = self.kept();
        let Kept { answers, revisions, .. } = &mut *kept;
        let mut answer = answers.get_mut(question)?;
        LookUp::move_to(&mut answer, revisions);
        Some(Arc::clone(&answer))
    }

    /// To be taken before the database is asked.
    pub(super) fn asking(&self) -> AskedAt {
        AskedAt(self.kept().drops)
    }

    /// Unless something was dropped since the question was asked: it may be what the answer says.
    pub(super) fn put(&self, asked: AskedAt, question: Question, answer: &Arc<LookUp>) {
        let mut kept = self.kept();
        if kept.drops == asked.0 {
            kept.answers.insert(question, Arc::clone(answer));
        }
    }

    /// Drops the answers that these changes touch; how many.
    pub(crate) fn drop_touched(&self, facts: &Facts) -> usize {
        if facts.is_empty() {
            return 0;
        }
        let mut kept = self.kept();
        kept.drops += 1;
        let before = kept.answers.len();
        if facts.is_everything() {
            kept.answers.clear();
        } else {
            kept.answers.retain(|question, answer| !facts.touch(question, answer));
        }
        before - kept.answers.len()
    }

    /// Drops all answers.
    pub(crate) fn clear(&self) {
        let mut kept = self.kept();
        kept.drops += 1;
        kept.answers.clear();
        kept.revisions.clear();
    }

    /// Commits of records changed these revisions and nothing else.
    pub(crate) fn move_to(&self, revisions: &Revisions) {
        let mut kept = self.kept();
        for (id, revision) in revisions {
            let known = kept.revisions.entry(*id).or_default();
            *known = (*known).max(*revision);
        }
    }
}
