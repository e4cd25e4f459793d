//! Revisions of packages: clients read the revision with the package, and send it back with a
//! change.

use crate::name::PackageName;
use crate::records::PackageRecord;
use packhouse_sdk::{Entry, Failure, Response};
use serde_json::json;

/// Returns the response to a change, with the new revision.
pub(crate) fn answer(name: &PackageName, revision: u64) -> Result<Response, Failure> {
    let body = json!({"ok": true, "success": true, "id": name.as_str(), "rev": revision.to_string()});
    Ok(Response { status: 201, ..Response::json(&body)? })
}

/// Checks that the package still has the revision that the client read.
///
/// # Errors
/// 409 if the package was changed after the client read it.
pub(crate) fn check(
    name: &PackageName,
    package: &Entry<PackageRecord>,
    revision: &str,
) -> Result<(), Failure> {
    if package.revision.to_string() == revision { Ok(()) } else { Err(stale(name)) }
}

/// Returns the 409 for a package that another request changed.
pub(crate) fn stale(name: &PackageName) -> Failure {
    Failure::conflict(format!("{name} was changed after it was read; read it again and repeat the command"))
}
