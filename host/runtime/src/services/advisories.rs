//! What is known to be wrong with versions of packages.

use super::error::{ServiceFuture, not_available};
use crate::view::RepositoryView;

/// Bytes of what a plugin is told of advisories at once.
pub const MAX_TOLD_BYTES: usize = 8 << 20;

/// The server's side of the interface `advisories`, and what it says of versions that are about to be shown. A host without it knows of
/// nothing.
pub trait AdvisoryService: Send + Sync + 'static {
    /// The advisories about these packages of the repository's format, as the contract's JSON object.
    fn find<'a>(&'a self, _of: &'a RepositoryView, _names: Vec<String>) -> ServiceFuture<'a, String> {
        not_available("advisories")
    }

    /// Why the repository may not take in one of these versions (package and version), in a sentence for whoever publishes it; none where
    /// it may take in all.
    fn refusal<'a>(
        &'a self,
        _repository: packhouse_store::RepositoryId,
        _versions: Vec<(String, String)>,
    ) -> ServiceFuture<'a, Option<String>> {
        Box::pin(async { Ok(None) })
    }
}
