//! Rules for managing members (Authentication rule 9 of the specification).
//!
//! A member cannot grant, take away or manage a permission that the member does not hold. So a
//! member cannot manage another one who holds more, and a read-only member manages only read-only
//! members.

use packhouse_store::{InvitationRow, MemberId, MemberRow, PasswordReset, RepositoryId};

use crate::error::ApiError;
use crate::operations::Actor;
use packhouse_identity::permissions::{Permission, Permissions};

use packhouse_wire::catalogue;

/// Finds a member to manage. 403 `role_mismatch` without manage-members, for any id; 404
/// `not_found` if the member does not exist in the actor's organization.
pub(super) async fn find_to_manage(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    actor.judge(actor.permissions().holds(Permission::ManageMembers), &catalogue::ROLE_MISMATCH)?;
    find(actor, id).await
}

/// Finds a member. 404 `not_found` if the member does not exist in the actor's organization.
pub(super) async fn find(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    let id = id.parse::<MemberId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_member(actor.organization(), id).await?;
    row.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Returns whether this is the actor's own id.
pub(super) fn is_own(actor: &Actor, id: &str) -> bool {
    id == actor.member().id.to_string()
}

/// Returns whether a holder of `held` may create a member with `other`, or change a member to it.
fn manages(held: &Permissions, other: &Permissions) -> bool {
    held.holds(Permission::ManageMembers) && held.covers(other)
}

/// Checks that the actor may create a member with these permissions, or change a member to them.
/// 403 `role_mismatch` without manage-members, or if they exceed the actor's own.
pub(super) fn may_grant(actor: &Actor, permissions: &Permissions) -> Result<(), ApiError> {
    let elsewhere =
        permissions.holds(Permission::ManageServer) && !actor.permissions().holds(Permission::ManageServer);
    actor.judge(!elsewhere && manages(actor.permissions(), permissions), &catalogue::ROLE_MISMATCH)
}

/// Checks that the actor may change or delete this member.
pub(super) fn may_manage(actor: &Actor, row: &MemberRow) -> Result<(), ApiError> {
    may_grant(actor, &Permissions::read(&row.permissions))
}

/// Returns whether the creator of the reset may still reset the member's password, with their
/// present permissions. A read-only member can only reset their own.
pub(super) fn may_reset(reset: &PasswordReset) -> bool {
    let PasswordReset { member, made_by } = reset;
    let held = Permissions::read(&made_by.permissions);
    let others = member.id != made_by.id;
    manages(&held, &Permissions::read(&member.permissions)) && !(others && held.read_only())
}

/// Returns whether the inviting member may still grant the permissions of the invitation.
pub(super) fn may_invite(inviter: &MemberRow, invitation: &InvitationRow) -> bool {
    manages(&Permissions::read(&inviter.permissions), &Permissions::read(&invitation.permissions))
}

/// Checks that the repositories in the permissions exist; otherwise 400 `invalid_request`.
pub async fn repositories_exist(actor: &Actor, permissions: &Permissions) -> Result<(), ApiError> {
    let mut ids = Vec::new();
    for name in permissions.named() {
        let id: RepositoryId = name.parse().map_err(|_| no_repository(name))?;
        ids.push(id);
    }
    let found = actor.app.store.find_repositories(actor.organization(), &ids).await?;
    match ids.iter().find(|id| !found.iter().any(|row| row.id == **id)) {
        Some(id) => Err(no_repository(&id.to_string())),
        None => Ok(()),
    }
}

fn no_repository(name: &str) -> ApiError {
    ApiError::invalid(&format!("`permissions` names the repository `{name}`, which does not exist."))
}
