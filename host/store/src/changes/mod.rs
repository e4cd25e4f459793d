//! What commits changed, remembered for a while: what was made of other records stays good.
//!
//! A reader collects what it relied on as [`Dependencies`]. Whether any of that was changed between two revisions of a repository is
//! answered from memory, without a statement. What is not known, such as the commits of another process, counts as changed.

mod dependencies;
mod log;
#[cfg(test)]
mod tests;

pub use dependencies::Dependencies;
pub(crate) use log::{ChangeLog, Touched, TouchedRange};

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
