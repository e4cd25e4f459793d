//! What a credential reaches that trusted publishers stand behind: some packages of a repository. What a request names is judged before
//! its body; what only the body names, in the commit.

use packhouse_identity::grants::Grants;
use packhouse_runtime::{Action, Intent, PackageBounds};
use packhouse_store::RepositoryRow;

use crate::error_response::{HttpError, other_package};
use crate::repository_request::RepositoryRequest;

/// Covers every package.
const ANY: &str = "*";

/// Refuses a request about other packages, and a read that is about none or many, unless it is part of a publish: whoever may read some
/// packages is not to learn of the others.
pub(crate) fn judge(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    intent: &Intent,
    grants: &Grants,
) -> Result<(), HttpError> {
    let writes = intent.action.writes();
    let patterns = grants.patterns(row.id, writes);
    let open = intent.action == Action::Open || patterns.iter().any(|pattern| pattern == ANY);
    let judged_later = intent.packages.is_empty() && (writes || intent.for_publish);
    if open || judged_later || covers_one(request, &patterns, intent) {
        Ok(())
    } else {
        Err(other_package(&intent.packages))
    }
}

/// An address may be that of several packages; that it is one of those will do, since the commit is judged too.
fn covers_one(request: &RepositoryRequest<'_>, patterns: &[String], intent: &Intent) -> bool {
    let folding = request.description().name_folding;
    intent.packages.iter().any(|name| folding.covers(patterns, name))
}

/// Which packages the commits of a call may be about; none where any.
pub(crate) fn bounds(request: &RepositoryRequest<'_>, intent: &Intent) -> Option<PackageBounds> {
    let (row, grants) = (request.found()?, request.principal.grants.as_ref()?);
    let patterns = grants.patterns(row.id, true);
    if !intent.action.writes() || patterns.iter().any(|pattern| pattern == ANY) {
        return None;
    }
    let named = covers_one(request, &patterns, intent);
    let folding = request.description().name_folding;
    Some(PackageBounds { patterns: patterns.into(), folding, named })
}
