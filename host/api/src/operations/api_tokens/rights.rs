//! Rights to create and manage API tokens.

use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{ApiTokenRow, MemberKind, MemberRow};
use packhouse_wire::catalogue;

use super::ApiTokenOwner;
use crate::error::ApiError;
use crate::operations::{Actor, members, service_accounts};

/// Finds the owner of a new API token. For a service account: 403 `role_mismatch` without
/// manage-members, 404 `not_found` if it does not exist, 403 `role_mismatch` if it holds more than
/// the actor.
pub(super) async fn owner_of_new(actor: &Actor, owner: &ApiTokenOwner) -> Result<MemberRow, ApiError> {
    let id = match owner {
        ApiTokenOwner::Me => {
            actor.judged_own();
            return Ok(actor.member().clone());
        }
        ApiTokenOwner::ServiceAccount(id) => id,
    };
    actor.judge(actor.permissions().holds(Permission::ManageMembers), &catalogue::ROLE_MISMATCH)?;
    let account = service_accounts::find(actor, id).await?;
    members::may_grant(actor, &Permissions::of_member(&account)).await?;
    Ok(account)
}

/// Checks that the actor may revoke the token.
pub(super) async fn may_revoke(actor: &Actor, row: &ApiTokenRow) -> Result<(), ApiError> {
    owner_to_manage(actor, row).await?;
    Ok(())
}

/// Checks that the actor may rotate the token, and returns its owner. Another member's token
/// cannot be rotated, because the holder of the new secret would act as that member: 403
/// `role_mismatch`.
pub(super) async fn may_rotate(actor: &Actor, row: &ApiTokenRow) -> Result<MemberRow, ApiError> {
    let owner = owner_to_manage(actor, row).await?;
    let may_have_secret = owner.id == actor.member().id || owner.kind == MemberKind::Service;
    actor.judge(may_have_secret, &catalogue::ROLE_MISMATCH)?;
    Ok(owner)
}

/// Returns the owner of a token that the actor may manage: the actor, or with manage-members an
/// owner that does not hold more than the actor.
async fn owner_to_manage(actor: &Actor, row: &ApiTokenRow) -> Result<MemberRow, ApiError> {
    if row.owner == actor.member().id {
        actor.judged_own();
        return Ok(actor.member().clone());
    }
    actor.needs(Permission::ManageMembers)?;
    let owner = actor.app.store.find_member(row.organization, row.owner).await?;
    let owner = owner.ok_or(&catalogue::NOT_FOUND)?;
    members::may_grant(actor, &Permissions::of_member(&owner)).await?;
    Ok(owner)
}

/// Checks what an API token may rotate: only itself, and it keeps its expiry. Otherwise 403
/// `scope_mismatch_api`. A session may rotate every token that its member manages.
pub(super) fn rotates_itself(actor: &Actor, id: &str, expires_at: Option<i64>) -> Result<(), ApiError> {
    let Some(token) = actor.api_token() else { return Ok(()) };
    let refusal = |reason: &str| Err(ApiError::with(&catalogue::SCOPE_MISMATCH_API, reason));
    if token.id.to_string() != id {
        return refusal("it rotates only itself");
    }
    if expires_at.is_some_and(|at| at != token.expires_at) {
        return refusal("it keeps its expiry when it rotates itself");
    }
    Ok(())
}
