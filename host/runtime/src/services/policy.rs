//! Policies over what a call is about to do.

use packhouse_store::{RepositoryId, SignedStatement, Version};

use super::error::ServiceFuture;

/// The server's side of policies, for one call and its caller. The default has none.
pub trait PolicyService: Send + Sync + 'static {
    /// Judges versions that a publish is about to show, with the statements that come with them: what is denied or held back ends the
    /// call with `PolicyDenied`.
    fn judge_publish<'a>(
        &'a self,
        _repository: RepositoryId,
        _versions: Vec<&'a Version>,
        _statements: Vec<&'a SignedStatement>,
    ) -> ServiceFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Whether there are any over this repository: where not, nothing is asked.
    fn has_policies(&self, _repository: RepositoryId) -> bool {
        false
    }
}
