//! Policies that apply to a call.

use packhouse_store::{RepositoryId, SignedStatement, Version};

use super::error::ServiceFuture;

/// Server side of policies, for one call and its caller. By default no policy applies.
pub trait PolicyService: Send + Sync + 'static {
    /// Judges versions that a publish is about to show, together with their statements. A denied or
    /// held version ends the call with `PolicyDenied`.
    fn judge_publish<'a>(
        &'a self,
        _repository: RepositoryId,
        _versions: Vec<&'a Version>,
        _statements: Vec<&'a SignedStatement>,
    ) -> ServiceFuture<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Returns true if policies apply to this repository. Otherwise `judge_publish` is not called.
    fn has_policies(&self, _repository: RepositoryId) -> bool {
        false
    }
}
