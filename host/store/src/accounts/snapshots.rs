//! Answers of look-ups, kept while the database is unchanged.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use quick_cache::unsync::Cache;

use crate::accounts::rows::access_key::AccessKeyRow;
use crate::accounts::rows::member::MemberRow;
use crate::accounts::rows::repository::RepositoryRow;
use crate::accounts::rows::token::TokenRow;
use crate::db::Generation;
use crate::ids::{OrganizationId, RepositoryId};

/// How many answers are kept.
pub(super) const CAPACITY: usize = 10_000;

/// What is known of a request's repository and credential.
#[derive(Clone, Default, Debug)]
pub struct LookUp {
    /// The repository of this name, with its revision.
    pub repository: Option<RepositoryRow>,
    /// Whether its organization has switched its format on or off; none: as the settings have it.
    pub enabled: Option<bool>,
    /// The token of this hash in this organization, whatever its state; its list of repositories is not filled in.
    pub token: Option<TokenRow>,
    /// Whether the token names the repository, or the key's owner has it.
    pub reaches: bool,
    /// The token's owner, whose permissions bound it.
    pub owner: Option<Arc<MemberRow>>,
    /// The access key of this hash in this organization, whatever its state.
    pub key: Option<AccessKeyRow>,
    /// The name of the key's owner.
    pub key_owner: Option<String>,
    /// How members of the organization sign in, as the API's JSON.
    pub sign_in: Option<String>,
    /// Bytes that all repositories of the organization may show together, where that is bounded.
    pub organization_quota: Option<u64>,
    /// The number of the organization's rules over versions, another with each change of them; none where none holds.
    pub policies: Option<i64>,
    /// Of a group: its members that are there, in order.
    pub members: Vec<Reached>,
    /// What is worked out of all this but the revisions.
    pub derived: Derived,
}

/// A value that a caller works out of a look-up's answer, once for all requests that get the same answer. It is forgotten where the
/// answer is copied to be changed.
#[derive(Default)]
pub struct Derived(OnceLock<Box<dyn Any + Send + Sync>>);

impl Derived {
    /// The value, made by `make` if there is none yet. All callers ask for a value of the same type.
    pub fn get_or_make<T: Clone + Send + Sync + 'static>(&self, make: impl Fn() -> T) -> T {
        let kept = self.0.get_or_init(|| Box::new(make()));
        kept.downcast_ref().cloned().unwrap_or_else(make)
    }
}

impl Clone for Derived {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Derived")
    }
}

/// A repository beside the one that was looked up, and whether the same token or key reaches it.
#[derive(Clone, Debug)]
pub struct Reached {
    /// The repository, with its revision.
    pub row: RepositoryRow,
    /// Whether the token names it, or the key's owner was given it.
    pub reaches: bool,
}

impl LookUp {
    /// Gives the repositories in it the revisions that commits have made of theirs.
    pub(super) fn move_to(answer: &mut Arc<LookUp>, revisions: &HashMap<RepositoryId, u64>) {
        let newer = |row: &RepositoryRow| revisions.get(&row.id).copied().filter(|now| *now > row.revision);
        if answer.repositories().any(|row| newer(row).is_some()) {
            for row in Arc::make_mut(answer).repositories_mut() {
                row.revision = newer(row).unwrap_or(row.revision);
            }
        }
    }

    fn repositories(&self) -> impl Iterator<Item = &RepositoryRow> {
        self.repository.iter().chain(self.members.iter().map(|member| &member.row))
    }

    fn repositories_mut(&mut self) -> impl Iterator<Item = &mut RepositoryRow> {
        self.repository.iter_mut().chain(self.members.iter_mut().map(|member| &mut member.row))
    }
}

/// What a look-up is about.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Question {
    pub(crate) organization: OrganizationId,
    /// The repository's name.
    pub(crate) repository: String,
    /// Of the credential.
    pub(crate) secret_sha256: Option<[u8; 32]>,
}

/// Repositories with their new revisions, in the order of their identifiers: statements of one shape for one set of rows.
pub(crate) type Revisions = BTreeMap<RepositoryId, u64>;

/// Answers kept while the database is unchanged.
#[derive(Default)]
pub(crate) struct Snapshots {
    kept: Mutex<Kept>,
}

struct Kept {
    /// Of the database when they were asked for, or after commits of this process that changed no more than `revisions`.
    generation: Option<Generation>,
    answers: Cache<Question, Arc<LookUp>>,
    /// What those commits made of repositories' revisions.
    revisions: HashMap<RepositoryId, u64>,
    /// How many commits are on their way that are to be taken in here.
    expected: usize,
}

impl Default for Kept {
    fn default() -> Kept {
        Kept { generation: None, answers: Cache::new(CAPACITY), revisions: HashMap::new(), expected: 0 }
    }
}

impl Snapshots {
    /// The answer, if nothing was written since it was given.
    pub(super) fn get(&self, generation: Generation, question: &Question) -> Option<Arc<LookUp>> {
        let mut kept = self.lock();
        if kept.generation != Some(generation) {
            return None;
        }
        let Kept { answers, revisions, .. } = &mut *kept;
        let mut answer = answers.get_mut(question)?;
        LookUp::move_to(&mut answer, revisions);
        Some(Arc::clone(&answer))
    }

    /// `generation` is from before the question was asked: what was written meanwhile makes the answer newer, not older.
    pub(super) fn put(&self, generation: Generation, question: Question, answer: &Arc<LookUp>) {
        let mut kept = self.lock();
        if let Some(now) = kept.generation.filter(|now| *now != generation) {
            // One commit is seen that may be one of those that leave the answers good: it is about to say so.
            let to_be_carried = kept.expected > 0 && generation.follows(&now);
            if to_be_carried || generation.is_older_than(&now) {
                return;
            }
        }
        if kept.generation != Some(generation) {
            kept.generation = Some(generation);
            kept.answers.clear();
            kept.revisions.clear();
        }
        kept.answers.insert(question, Arc::clone(answer));
    }

    /// To be asked for in the transaction of a commit that changes nothing in the answers but what it says when it is done. `before`
    /// is of then, while nobody else can write. Readers see the commit before it can say so, and must not take it for another.
    pub(crate) fn expect(&self, before: Option<Generation>) -> Expected<'_> {
        self.lock().expected += 1;
        Expected { snapshots: self, before }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A commit on its way that leaves the answers good; no longer when this is dropped.
pub(crate) struct Expected<'a> {
    snapshots: &'a Snapshots,
    before: Option<Generation>,
}

impl Expected<'_> {
    /// It was committed and changed these revisions: where nothing else was written up to `after`, the answers stay good but for that.
    pub(crate) fn carry(self, after: Option<Generation>, revisions: &Revisions) {
        let (Some(before), Some(after)) = (self.before, after) else { return };
        let mut kept = self.snapshots.lock();
        if kept.generation == Some(before) && after.is_next_after(&before) {
            kept.generation = Some(after);
            kept.revisions.extend(revisions.iter().map(|(id, revision)| (*id, *revision)));
        }
    }

    /// It was committed and changed nothing in the answers.
    pub(crate) fn carry_unchanged(self, after: Option<Generation>) {
        self.carry(after, &Revisions::new());
    }
}

impl Drop for Expected<'_> {
    fn drop(&mut self) {
        let mut kept = self.snapshots.lock();
        kept.expected = kept.expected.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str) -> Question {
        Question { organization: OrganizationId(1), repository: name.to_owned(), secret_sha256: None }
    }

    /// Answers that were given at this generation.
    fn kept(generation: Generation) -> Snapshots {
        let snapshots = Snapshots::default();
        snapshots.put(generation, question("known"), &Arc::default());
        snapshots
    }

    #[test]
    fn who_sees_a_commit_before_it_is_carried_displaces_nothing() {
        let [before, seen, after] =
            [(1, 1), (2, 1), (2, 2)].map(|(changes, commits)| Generation::of(changes, commits));
        let snapshots = kept(before);
        let expected = snapshots.expect(Some(before));
        snapshots.put(seen, question("seen"), &Arc::default());
        snapshots.put(after, question("after"), &Arc::default());
        assert!(snapshots.get(seen, &question("seen")).is_none());
        expected.carry_unchanged(Some(after));
        assert!(snapshots.get(after, &question("known")).is_some());
        snapshots.put(after, question("later"), &Arc::default());
        assert!(snapshots.get(after, &question("later")).is_some());
    }

    #[test]
    fn what_is_not_carried_displaces_the_answers() {
        let before = Generation::of(1, 1);
        let snapshots = kept(before);
        drop(snapshots.expect(Some(before)));
        let another = Generation::of(2, 1);
        snapshots.put(another, question("another"), &Arc::default());
        assert!(snapshots.get(another, &question("known")).is_none());
        assert!(snapshots.get(another, &question("another")).is_some());
        // Nor do two commits pass for the one that is expected.
        let _expected = snapshots.expect(Some(another));
        let two = Generation::of(4, 1);
        snapshots.put(two, question("two"), &Arc::default());
        assert!(snapshots.get(two, &question("two")).is_some());
    }
}
