//! Access for credentials of trusted publishers, which reach only some packages of a repository.
//! The host checks packages in a request's path before it reads the body. It checks packages in the
//! body when the plugin commits.

use packhouse_identity::grants::Grants;
use packhouse_runtime::{Action, Intent, PackageBounds};
use packhouse_store::RepositoryRow;

use crate::error_response::{HttpError, other_package};
use crate::repository_request::RepositoryRequest;

/// Pattern that matches every package.
const ANY: &str = "*";

/// Refuses a request for packages that are not granted. Also refuses a read that names no package,
/// unless the read is part of a publish. Otherwise, a credential for some packages would reveal the
/// others.
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

/// Reports whether a granted pattern matches a package of the path. A path can stand for several
/// packages. One match is enough here, because the host checks the commit again.
fn covers_one(request: &RepositoryRequest<'_>, patterns: &[String], intent: &Intent) -> bool {
    let folding = request.description().name_folding;
    intent.packages.iter().any(|name| folding.covers(patterns, name))
}

/// Returns the packages that the commits of a call may change. Returns `None` if they may change
/// every package.
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
