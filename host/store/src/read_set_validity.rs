//! Validity of a read set: the content that a result depends on.

use crate::changes::Dependencies;
use crate::ids::RepositoryId;
use crate::store::Store;

impl Store {
    /// True if commits after the revision `since`, up to and including `now`, changed none of the
    /// dependencies. False if that is unknown.
    #[must_use]
    pub fn unchanged(
        &self,
        repository: RepositoryId,
        since: u64,
        now: u64,
        dependencies: &Dependencies,
    ) -> bool {
        since == now || self.inner.changes.unchanged(repository, since, now, dependencies)
    }
}
