//! Data that a call read from its repositories. The answer is valid until a part of this data
//! changes.

use std::collections::BTreeMap;

use packhouse_store::{Dependencies, RepositoryId};

/// Dependencies by repository. A repository without reads has no entry.
#[derive(Clone, Debug, Default)]
pub struct Reads(BTreeMap<RepositoryId, Dependencies>);

impl Reads {
    /// Returns the dependencies on this repository, to be extended.
    pub fn of(&mut self, repository: RepositoryId) -> &mut Dependencies {
        self.0.entry(repository).or_default()
    }

    /// Returns true if only single records of this repository were read.
    pub(crate) fn are_records_of(&self, repository: Option<RepositoryId>) -> bool {
        self.0.iter().all(|(id, dependencies)| Some(*id) == repository && dependencies.are_single_records())
    }

    /// Adds the reads of another call.
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
