//! Who may manage whom (Authentication rule 9 of the specification).
//!
//! A member hands on, takes away and manages nothing that it does not hold itself: whoever holds more is out of its reach. So a
//! read-only member manages only read-only members.

use packhouse_store::{InvitationRow, MemberId, MemberRow, PasswordReset, RepositoryId};

use crate::error::ApiError;
use crate::operations::Actor;
use packhouse_identity::permissions::{Permission, Permissions};

use packhouse_wire::catalogue;

/// The member of this id, for who manages members: 403 `role_mismatch` without manage-members, whoever it is about; 404
/// `not_found` where there is none in the actor's organization.
pub(super) async fn find_to_manage(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    actor.judge(actor.permissions().holds(Permission::ManageMembers), &catalogue::ROLE_MISMATCH)?;
    find(actor, id).await
}

/// The member of this id: 404 `not_found` where there is none in the actor's organization.
pub(super) async fn find(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    let id = id.parse::<MemberId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_member(actor.organization(), id).await?;
    row.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Whether this id is the actor's own.
pub(super) fn is_own(actor: &Actor, id: &str) -> bool {
    id == actor.member().id.to_string()
}

/// Whether who holds this may make, or leave behind, a member who holds `other`.
fn manages(held: &Permissions, other: &Permissions) -> bool {
    held.holds(Permission::ManageMembers) && held.covers(other)
}

/// Judges whether the actor may make, or leave behind, a member who holds this: 403 `role_mismatch` without manage-members,
/// or where it is more than the actor's own.
pub(super) fn may_grant(actor: &Actor, permissions: &Permissions) -> Result<(), ApiError> {
    let elsewhere =
        permissions.holds(Permission::ManageServer) && !actor.permissions().holds(Permission::ManageServer);
    actor.judge(!elsewhere && manages(actor.permissions(), permissions), &catalogue::ROLE_MISMATCH)
}

/// Judges whether the actor may change or delete this member.
pub(super) fn may_manage(actor: &Actor, row: &MemberRow) -> Result<(), ApiError> {
    may_grant(actor, &Permissions::read(&row.permissions))
}

/// Whether the one may reset the other's password, as both are now. Who is read-only resets nobody's but their own.
pub(super) fn may_reset(reset: &PasswordReset) -> bool {
    let PasswordReset { member, made_by } = reset;
    let held = Permissions::read(&made_by.permissions);
    let others = member.id != made_by.id;
    manages(&held, &Permissions::read(&member.permissions)) && !(others && held.read_only())
}

/// Whether who invited may still grant what the invitation grants.
pub(super) fn may_invite(inviter: &MemberRow, invitation: &InvitationRow) -> bool {
    manages(&Permissions::read(&inviter.permissions), &Permissions::read(&invitation.permissions))
}

/// 400 `invalid_request` where permissions name a repository that is not there.
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
    ApiError::invalid(&format!("`permissions` names the repository `{name}`, which is not there."))
}
