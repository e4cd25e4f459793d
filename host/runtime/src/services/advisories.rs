//! Known problems of package versions.

use super::error::{ServiceFuture, not_available};
use crate::view::RepositoryView;

/// Most bytes of advisories that a plugin receives at once.
pub const MAX_ADVISORY_BYTES: usize = 8 << 20;

/// Server side of the interface `advisories`, and check of versions that a commit is about to show.
/// By default no problem is known.
pub trait AdvisoryService: Send + Sync + 'static {
    /// Returns the advisories about these packages of the repository's format, as the contract's
    /// JSON object.
    fn find<'a>(&'a self, _of: &'a RepositoryView, _names: Vec<String>) -> ServiceFuture<'a, String> {
        not_available("advisories")
    }

    /// Checks whether the repository may accept these versions (package and version). Returns the
    /// reason against one of them, as a sentence for the publisher, or none.
    fn refusal<'a>(
        &'a self,
        _repository: packhouse_store::RepositoryId,
        _versions: Vec<(String, String)>,
    ) -> ServiceFuture<'a, Option<String>> {
        Box::pin(async { Ok(None) })
    }
}
