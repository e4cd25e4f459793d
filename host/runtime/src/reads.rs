//! What a call read of the repositories that it was handed: it says what its answer is good for.

use std::collections::BTreeMap;

use packhouse_store::{Dependencies, RepositoryId};

/// See the module. A repository of which nothing was read is not in it.
#[derive(Clone, Debug, Default)]
pub struct Reads(BTreeMap<RepositoryId, Dependencies>);

impl Reads {
    /// What was read of this repository, to be added to.
    pub fn of(&mut self, repository: RepositoryId) -> &mut Dependencies {
        self.0.entry(repository).or_default()
    }

    /// Whether nothing was read but single records of this repository.
    pub(crate) fn are_records_of(&self, repository: Option<RepositoryId>) -> bool {
        self.0.iter().all(|(id, dependencies)| Some(*id) == repository && dependencies.are_single_records())
    }

    /// Adds what another read.
    pub fn extend(&mut self, other: Reads) {
        for (repository, dependencies) in other.0 {
            self.of(repository).extend(&dependencies);
        }
    }
}

impl IntoIterator for Reads {
    type Item = (RepositoryId, Dependencies);
    type IntoIter = std::collections::btree_map::IntoIter<RepositoryId, Dependencies>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
