//! Look-up answers, cached while the database is unchanged.

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

/// Maximum number of cached answers.
pub(super) const CAPACITY: usize = 10_000;

/// Answer of a look-up: the repository and the credential of a request.
#[derive(Clone, Default, Debug)]
pub struct LookUp {
    /// Repository with this name, with its revision.
    pub repository: Option<RepositoryRow>,
    /// True or false if the organization enabled or disabled the format; `None` if the server's
    /// settings decide.
    pub enabled: Option<bool>,
    /// Token with this hash in this organization, in any state. The look-up leaves its list of
    /// repositories empty.
    pub token: Option<TokenRow>,
    /// True if the token names the repository, or the key's owner has it.
    pub reaches: bool,
    /// Owner of the token, whose permissions bound it.
    pub owner: Option<Arc<MemberRow>>,
    /// Access key with this hash in this organization, in any state.
    pub key: Option<AccessKeyRow>,
    pub key_owner: Option<String>,
    /// Sign-in settings of the organization, as the API's JSON.
    pub sign_in: Option<String>,
    /// Quota in bytes for all visible contents of the organization's repositories together, if it
    /// has one.
    pub organization_quota: Option<u64>,
    /// Change number of the organization's version policies; each change of a policy changes it.
    /// `None` if no policy is in force.
    pub policies: Option<i64>,
    /// Existing members of a group, in order.
    pub members: Vec<Reached>,
    /// Value derived from this answer, except from the revisions.
    pub derived: Derived,
}

/// A value that a caller derives from an answer, once for all requests that get the same answer. A
/// clone of the answer may be changed, so it starts without the value.
#[derive(Default)]
pub struct Derived(OnceLock<Box<dyn Any + Send + Sync>>);

impl Derived {
    /// Returns the value, created by `make` if it is missing. All callers must use the same type.
    pub fn get_or_make<T: Clone + Send + Sync + 'static>(&self, make: impl Fn() -> T) -> T {
        let value = self.0.get_or_init(|| Box::new(make()));
        value.downcast_ref().cloned().unwrap_or_else(make)
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

/// A further repository of the look-up, and whether the same token or key reaches it.
#[derive(Clone, Debug)]
pub struct Reached {
    pub row: RepositoryRow,
    /// True if the token names it, or the key's owner was given it.
    pub reaches: bool,
}

impl LookUp {
    /// Updates the revision numbers of the repositories in this answer.
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

#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct LookUpQuery {
    pub(crate) organization: OrganizationId,
    pub(crate) repository: String,
    /// SHA-256 of the credential's secret.
    pub(crate) secret_sha256: Option<[u8; 32]>,
}

/// New revisions of repositories, ordered by identifier so that equal sets of rows give statements
/// of equal shape.
pub(crate) type Revisions = BTreeMap<RepositoryId, u64>;

/// Cache of look-up answers that are valid while the database is unchanged.
#[derive(Default)]
pub(crate) struct Snapshots {
    cache: Mutex<CachedLookUps>,
}

struct CachedLookUps {
    /// State of the database when the answers were read. Commits of this process that changed only
    /// revisions advance it without dropping the answers.
    generation: Option<Generation>,
    answers: Cache<LookUpQuery, Arc<LookUp>>,
    /// Newer revisions of repositories, from commits that changed only revisions.
    revisions: HashMap<RepositoryId, u64>,
    /// Number of commits in progress that will announce themselves here.
    expected: usize,
}

impl Default for CachedLookUps {
    fn default() -> CachedLookUps {
        CachedLookUps {
            generation: None,
            answers: Cache::new(CAPACITY),
            revisions: HashMap::new(),
            expected: 0,
        }
    }
}

impl Snapshots {
    /// Returns the cached answer if nothing was written since it was read.
    pub(super) fn get(&self, generation: Generation, question: &LookUpQuery) -> Option<Arc<LookUp>> {
        let mut cache = self.lock();
        if cache.generation != Some(generation) {
            return None;
        }
        let CachedLookUps { answers, revisions, .. } = &mut *cache;
        let mut answer = answers.get_mut(question)?;
        LookUp::move_to(&mut answer, revisions);
        Some(Arc::clone(&answer))
    }

    /// Caches an answer. The caller must read `generation` before the query, so that a write in
    /// between makes the answer newer than its generation, never older.
    pub(super) fn put(&self, generation: Generation, question: LookUpQuery, answer: &Arc<LookUp>) {
        let mut cache = self.lock();
        if let Some(now) = cache.generation.filter(|now| *now != generation) {
            // The database has one newer commit. If one is expected, it probably is that commit,
            // which keeps the answers valid and is about to announce that.
            let may_be_announced = cache.expected > 0 && generation.follows(&now);
            if may_be_announced || generation.is_older_than(&now) {
                return;
            }
        }
        if cache.generation != Some(generation) {
            cache.generation = Some(generation);
            cache.answers.clear();
            cache.revisions.clear();
        }
        cache.answers.insert(question, Arc::clone(answer));
    }

    /// Registers a commit that will announce its only effect on look-ups. Call this inside the
    /// transaction; `before` is the generation read under the write lock. Readers can see the
    /// commit before its announcement, and must not treat it as a commit of another process.
    pub(crate) fn expect(&self, before: Option<Generation>) -> ExpectedCommit<'_> {
        self.lock().expected += 1;
        ExpectedCommit { snapshots: self, before }
    }

    fn lock(&self) -> MutexGuard<'_, CachedLookUps> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A commit in progress that keeps the answers valid. The expectation ends when this is dropped.
pub(crate) struct ExpectedCommit<'a> {
    snapshots: &'a Snapshots,
    before: Option<Generation>,
}

impl ExpectedCommit<'_> {
    /// Announces that the commit succeeded and changed these revisions. The answers stay valid,
    /// apart from the revisions, if nothing else was written up to `after`.
    pub(crate) fn carry(self, after: Option<Generation>, revisions: &Revisions) {
        let (Some(before), Some(after)) = (self.before, after) else { return };
        let mut cache = self.snapshots.lock();
        if cache.generation == Some(before) && after.is_next_after(&before) {
            cache.generation = Some(after);
            cache.revisions.extend(revisions.iter().map(|(id, revision)| (*id, *revision)));
        }
    }

    /// Announces that the commit succeeded and did not affect any answer.
    pub(crate) fn carry_unchanged(self, after: Option<Generation>) {
        self.carry(after, &Revisions::new());
    }
}

impl Drop for ExpectedCommit<'_> {
    fn drop(&mut self) {
        let mut cache = self.snapshots.lock();
        cache.expected = cache.expected.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(name: &str) -> LookUpQuery {
        LookUpQuery { organization: OrganizationId(1), repository: name.to_owned(), secret_sha256: None }
    }

    /// A cache with one answer of this generation.
    fn cached_at(generation: Generation) -> Snapshots {
        let snapshots = Snapshots::default();
        snapshots.put(generation, question("known"), &Arc::default());
        snapshots
    }

    #[test]
    fn a_reader_that_sees_a_commit_before_its_announcement_displaces_no_answers() {
        let [before, first, after] =
            [(1, 1), (2, 1), (2, 2)].map(|(changes, commits)| Generation::of(changes, commits));
        let snapshots = cached_at(before);
        let expected = snapshots.expect(Some(before));
        snapshots.put(first, question("first"), &Arc::default());
        snapshots.put(after, question("after"), &Arc::default());
        assert!(snapshots.get(first, &question("first")).is_none());
        expected.carry_unchanged(Some(after));
        assert!(snapshots.get(after, &question("known")).is_some());
        snapshots.put(after, question("later"), &Arc::default());
        assert!(snapshots.get(after, &question("later")).is_some());
    }

    #[test]
    fn an_unannounced_commit_displaces_the_answers() {
        let before = Generation::of(1, 1);
        let snapshots = cached_at(before);
        drop(snapshots.expect(Some(before)));
        let another = Generation::of(2, 1);
        snapshots.put(another, question("another"), &Arc::default());
        assert!(snapshots.get(another, &question("known")).is_none());
        assert!(snapshots.get(another, &question("another")).is_some());
        // Two newer commits cannot both be the expected one, so the cache must not keep its
        // answers.
        let _expected = snapshots.expect(Some(another));
        let two = Generation::of(4, 1);
        snapshots.put(two, question("two"), &Arc::default());
        assert!(snapshots.get(two, &question("two")).is_some());
    }
}
