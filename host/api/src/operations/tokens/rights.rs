//! Rights to create and manage tokens and service keys.

use packhouse_identity::permissions::Permission;
use packhouse_store::{PUBLISHER_BACKING, RepositoryId, RepositoryRow, TokenRow};
use packhouse_wire::catalogue;

use super::LEGACY;
use super::packages::{self, PackageLimits};
use super::request::{Backing, TokenRequest};
use crate::error::ApiError;
use crate::operations::{Actor, members};

/// Repositories and packages that a new token reaches.
pub(super) struct TokenReach {
    pub(super) repositories: Vec<RepositoryId>,
    /// Patterns of the packages that it may publish and delete; `None` for all.
    pub(super) packages: Option<Vec<String>>,
}

/// Checks that the actor may create the token. Returns its reach. A missing repository and an
/// inaccessible one have the same refusal. A service key has no owner whose rights limit it later,
/// so that the actor's package patterns limit it from the start.
pub(super) async fn may_create(actor: &Actor, request: &TokenRequest) -> Result<TokenReach, ApiError> {
    let ids: Option<Vec<RepositoryId>> = request.repositories.iter().map(|id| id.parse().ok()).collect();
    let ids = ids.unwrap_or_default();
    let rows = actor.app.store.find_repositories(actor.organization(), &ids).await?;
    let accessible =
        rows.len() == request.repositories.len() && rows.iter().all(|row| actor.rights_in(row).read);
    actor.judge(accessible, &catalogue::REPO_ACCESS_DENIED)?;
    let organization = request.backing == Some(Backing::Organization);
    let owner = actor.permissions().holds(Permission::ManageOwnerAccount);
    actor.judge(!organization || owner, &catalogue::SERVICE_KEY_FORBIDDEN)?;
    let of_repository = matches!(request.backing, Some(Backing::Repository(_)));
    let manages = rows.iter().all(|row| may_manage_keys_of(actor, row));
    actor.judge(!of_repository || manages, &catalogue::ROLE_MISMATCH)?;
    let writes = rows.iter().all(|row| actor.rights_in(row).write());
    actor.judge(!request.scope.write || writes, &catalogue::ROLE_MISMATCH)?;
    let packages = match &request.backing {
        Some(_) if request.scope.write => packages::of_maker(actor, &rows, request.packages.clone())?,
        _ => request.packages.clone(),
    };
    if packages.is_some() {
        members::servers_know(actor, "`packages` of tokens").await?;
    }
    Ok(TokenReach { repositories: ids, packages })
}

/// Checks that the actor may revoke the token: the actor's own, or one of another kind with the
/// right for it.
pub(super) async fn may_manage(actor: &Actor, row: &TokenRow) -> Result<(), ApiError> {
    let repository = repository_of(actor, row).await?;
    judge_management(actor, row, repository.as_ref())
}

/// Checks that the actor may rotate the token. The actor receives the new secret, so that a manager
/// of a repository must hold what a service key of the repository may do: 403 `role_mismatch`.
pub(super) async fn may_rotate(actor: &Actor, row: &TokenRow) -> Result<(), ApiError> {
    let repository = repository_of(actor, row).await?;
    judge_management(actor, row, repository.as_ref())?;
    let held = repository.as_ref().is_none_or(|repository| may_hold_key(actor, row, repository));
    actor.judge(held, &catalogue::ROLE_MISMATCH)
}

fn judge_management(
    actor: &Actor,
    row: &TokenRow,
    repository: Option<&RepositoryRow>,
) -> Result<(), ApiError> {
    if row.owner == Some(actor.member().id) || may_manage_key(actor, row, repository) {
        actor.judged_own();
        return Ok(());
    }
    actor.needs(Permission::ManageOwnerAccount)
}

/// Finds the repository to which a service key belongs.
async fn repository_of(actor: &Actor, row: &TokenRow) -> Result<Option<RepositoryRow>, ApiError> {
    match row.backing_repository {
        Some(id) if row.owner.is_none() => Ok(actor.app.store.find_repository(row.organization, id).await?),
        _ => Ok(None),
    }
}

/// Returns whether it is a service key that the actor may list and revoke. `repository` is the one
/// to which the key belongs.
pub(super) fn may_manage_key(actor: &Actor, row: &TokenRow, repository: Option<&RepositoryRow>) -> bool {
    let owns = actor.permissions().holds(Permission::ManageOwnerAccount);
    match (row.backing.as_deref(), repository) {
        (Some("repo"), Some(repository)) => {
            owns || actor.manages(repository) || writes_as_key(actor, row, repository)
        }
        (Some("repo" | "org" | LEGACY | PUBLISHER_BACKING), _) => owns,
        _ => false,
    }
}

/// Returns whether the actor may have the secret of a repository's service key: the actor must be
/// able to read and to write what the key may.
fn may_hold_key(actor: &Actor, row: &TokenRow, repository: &RepositoryRow) -> bool {
    let reads_as_key = !row.scope.read || actor.rights_in(repository).read;
    let manages_reader = !row.scope.write && actor.manages(repository);
    actor.permissions().holds(Permission::ManageOwnerAccount)
        || (reads_as_key && (manages_reader || writes_as_key(actor, row, repository)))
}

/// Returns whether the actor may publish and delete in the repository, at least the packages of the
/// key.
fn writes_as_key(actor: &Actor, row: &TokenRow, repository: &RepositoryRow) -> bool {
    let limits = || PackageLimits::of(actor, std::slice::from_ref(repository));
    actor.rights_in(repository).write() && (!row.scope.write || limits().include(row.packages.as_deref()))
}

/// Returns whether the actor may create service keys of a repository: with publish and delete
/// there, with the right to manage it, or with manage-owner-account.
fn may_manage_keys_of(actor: &Actor, repository: &RepositoryRow) -> bool {
    actor.rights_in(repository).write()
        || actor.manages(repository)
        || actor.permissions().holds(Permission::ManageOwnerAccount)
}
