//! Up to which revision of each repository every server is known to see what is in it: an acknowledged commit is seen, and so are those
//! before it, since whoever hears of it reads what is missing in between (docs/LEASES.md).

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use crate::ids::RepositoryId;

/// Repositories of which it is remembered at most; then it begins anew.
const MOST: usize = 100_000;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged(RwLock<HashMap<RepositoryId, u64>>);

impl Acknowledged {
    /// Whether all that was committed up to this revision is known to every server.
    pub(crate) fn reaches(&self, repository: RepositoryId, revision: u64) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        revision <= known.get(&repository).copied().unwrap_or_default()
    }

    /// A commit of this revision was acknowledged.
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
    fn what_comes_before_an_acknowledged_revision_is_known_and_nothing_after_it() {
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
