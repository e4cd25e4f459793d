//! Rights to create and manage tokens and service keys.

use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{PUBLISHER_BACKING, RepositoryId, TokenRow};
use packhouse_wire::catalogue;

use super::LEGACY;
use super::request::{Backing, TokenRequest};
use crate::error::ApiError;
use crate::operations::Actor;

/// Checks that the actor may create the token. Returns its repositories. A missing repository and
/// an inaccessible one have the same refusal.
pub(super) async fn may_create(actor: &Actor, request: &TokenRequest) -> Result<Vec<RepositoryId>, ApiError> {
    let ids: Option<Vec<RepositoryId>> = request.repositories.iter().map(|id| id.parse().ok()).collect();
    let ids = ids.unwrap_or_default();
    let found = actor.app.store.find_repositories(actor.organization(), &ids).await?.len();
    let permissions = actor.permissions();
    let accessible = found == request.repositories.len() && ids.iter().all(|id| permissions.rights(*id).read);
    actor.judge(accessible, &catalogue::REPO_ACCESS_DENIED)?;
    let organization = request.backing == Some(Backing::Organization);
    let owner = permissions.holds(Permission::ManageOwnerAccount);
    actor.judge(!organization || owner, &catalogue::SERVICE_KEY_FORBIDDEN)?;
    let of_repository = matches!(request.backing, Some(Backing::Repository(_)));
    let manages = ids.iter().all(|id| may_manage_keys_of(permissions, *id));
    actor.judge(!of_repository || manages, &catalogue::ROLE_MISMATCH)?;
    let writes = ids.iter().all(|id| permissions.rights(*id).write());
    actor.judge(!request.scope.write || writes, &catalogue::ROLE_MISMATCH)?;
    Ok(ids)
}

/// Checks that the actor may rotate or revoke the token: the actor's own, or one of another kind
/// with the right for it.
pub(super) fn may_manage(actor: &Actor, row: &TokenRow) -> Result<(), ApiError> {
    if row.owner == Some(actor.member().id) || may_manage_key(actor, row) {
        actor.judged_own();
        return Ok(());
    }
    actor.needs(Permission::ManageOwnerAccount)
}

/// Returns whether it is a service key that the actor may manage.
pub(super) fn may_manage_key(actor: &Actor, row: &TokenRow) -> bool {
    match (row.backing.as_deref(), row.backing_repository) {
        (Some("repo"), Some(repository)) => may_manage_keys_of(actor.permissions(), repository),
        (Some("org" | LEGACY | PUBLISHER_BACKING), _) => {
            actor.permissions().holds(Permission::ManageOwnerAccount)
        }
        _ => false,
    }
}

/// Returns whether a member with these permissions may create, list, rotate and revoke service keys
/// of a repository: with publish and delete there, or with manage-owner-account.
fn may_manage_keys_of(permissions: &Permissions, repository: RepositoryId) -> bool {
    permissions.rights(repository).write() || permissions.holds(Permission::ManageOwnerAccount)
}
