//! A package's revision: clients read it with the package, and send it back with what they change.

use crate::name::Name;
use crate::records::Package;
use packhouse_sdk::{Entry, Failure, Response};
use serde_json::json;

/// What clients read of a change that was made.
pub(crate) fn answer(name: &Name, revision: u64) -> Result<Response, Failure> {
    let body = json!({"ok": true, "success": true, "id": name.as_str(), "rev": revision.to_string()});
    Ok(Response { status: 201, ..Response::json(&body)? })
}

/// 409 unless the package is still as the client read it.
pub(crate) fn check(name: &Name, package: &Entry<Package>, revision: &str) -> Result<(), Failure> {
    if package.revision.to_string() == revision { Ok(()) } else { Err(stale(name)) }
}

/// 409 for a package that others have changed meanwhile.
pub(crate) fn stale(name: &Name) -> Failure {
    Failure::conflict(format!("{name} was changed after it was read; read it again and repeat the command"))
}
