//! Whether what a reader relied on is as it was.

use crate::changes::Dependencies;
use crate::ids::RepositoryId;
use crate::store::Store;

impl Store {
    /// Whether nothing of this was changed by the commits after the revision `since`, up to and with the revision `now`. False where
    /// that is not known.
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
