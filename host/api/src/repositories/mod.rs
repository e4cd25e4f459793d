//! Repositories: making, listing, changing and deleting them.

mod change;
mod check;
mod create;
mod list;
mod view;

pub use change::{__path_change, __path_remove, change, remove};
pub use check::PROXY;
pub use create::{__path_create, create, wanted};
pub use list::{__path_list, __path_show, list, show};

use packhouse_store::{RepositoryId, RepositoryRow};

use super::call::Call;
use super::error::ApiError;
use packhouse_identity::access::Rights;
use packhouse_identity::permissions::Permission;
use packhouse_wire::catalogue;

/// The repository of the path's `{id}`, where the caller may know of it: 404 otherwise. Before that, 403 without the permission
/// that the route's row names.
pub async fn find(call: &Call) -> Result<RepositoryRow, ApiError> {
    call.judge_permission_of_organization()?;
    let Ok(id) = call.path("id").parse::<RepositoryId>() else {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    };
    let row = call.app.store.find_repository(call.organization()?, id).await?;
    match row {
        Some(row) if knows(call, row.id)? => Ok(row),
        _ => Err(ApiError::from(&catalogue::NOT_FOUND)),
    }
}

/// Judges whether the caller may open a repository to everyone: nobody gives what they may not read themselves, and who manages
/// repositories does not thereby read them. 403 `role_mismatch`.
fn may_open(call: &Call, rights: Rights) -> Result<(), ApiError> {
    call.judge(rights.read, &catalogue::ROLE_MISMATCH)
}

/// Whether the caller may know of the repository: any right in it, or managing all of them.
pub fn knows(call: &Call, id: RepositoryId) -> Result<bool, ApiError> {
    let permissions = &call.caller()?.permissions;
    let rights = permissions.rights(id);
    let any = rights.read || rights.publish || rights.delete;
    Ok(any || permissions.holds(Permission::ManageRepositories))
}
