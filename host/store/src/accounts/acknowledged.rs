//! Newest revision of each repository that, as far as this server knows, every server sees. Once a
//! commit is acknowledged, every server sees that commit and all earlier ones. A server that
//! receives a notice also reads the notices that it missed (docs/explanation/leases.md).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::ids::RepositoryId;

/// Upper bound of remembered repositories. When it is reached, the table is cleared.
const MOST: usize = 100_000;

/// Newest acknowledged revision by repository.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged(RwLock<HashMap<RepositoryId, u64>>);

impl Acknowledged {
    /// Returns whether every server knows all commits up to this revision.
    pub(crate) fn reaches(&self, repository: RepositoryId, revision: u64) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        revision <= known.get(&repository).copied().unwrap_or_default()
    }

    /// Records that a commit of this revision was acknowledged.
    pub(crate) fn raise(&self, repository: RepositoryId, revision: u64) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST && !known.contains_key(&repository) {
            known.clear();
        }
        let last = known.entry(repository).or_default();
        *last = revision.max(*last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revisions_up_to_an_acknowledged_one_are_known_and_later_ones_are_not() {
        let (one, other) = (RepositoryId(1), RepositoryId(2));
        let acknowledged = Acknowledged::default();
        assert!(acknowledged.reaches(one, 0), "nothing was ever committed");
        assert!(!acknowledged.reaches(one, 1));
        acknowledged.raise(one, 7);
        acknowledged.raise(one, 5);
        assert!(acknowledged.reaches(one, 7) && acknowledged.reaches(one, 3));
        assert!(!acknowledged.reaches(one, 8) && !acknowledged.reaches(other, 1));
    }
}
