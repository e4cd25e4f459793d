//! Reads with credentials of trusted publishers, which reach only some packages of a repository.
//! `package_limits` judges their writes, as those of other credentials.

use packhouse_identity::grants::Grants;
use packhouse_runtime::{Action, Intent};
use packhouse_store::RepositoryRow;

use crate::error_response::HttpError;
use crate::package_refusal::other_package;
use crate::repository_request::RepositoryRequest;

/// Pattern that matches every package.
const ANY: &str = "*";

/// Refuses a read of packages that are not granted. Also refuses a read that names no package,
/// unless the read is part of a publish. Otherwise, a credential for some packages would reveal the
/// others.
pub(crate) fn judge_read(
    request: &RepositoryRequest<'_>,
    row: &RepositoryRow,
    intent: &Intent,
    grants: &Grants,
) -> Result<(), HttpError> {
    if intent.action != Action::Read {
        return Ok(());
    }
    let patterns = grants.patterns(row.id, false);
    let folding = request.description().name_folding;
    let reads_all = patterns.iter().any(|pattern| pattern == ANY);
    let names_none_for_publish = intent.packages.is_empty() && intent.for_publish;
    // A path can stand for several packages. One match is enough.
    let covers_one = || intent.packages.iter().any(|name| folding.covers(&patterns, name));
    if reads_all || names_none_for_publish || covers_one() {
        Ok(())
    } else {
        Err(other_package(&intent.packages))
    }
}
