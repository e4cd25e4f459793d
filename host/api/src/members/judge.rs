//! Who may manage whom (Authentication rule 9 of the specification), and what the bodies about members have in common.
//!
//! A member hands on, takes away and manages nothing that it does not hold itself: whoever holds more is out of its reach. So a
//! read-only member manages only read-only members.

use packhouse_store::{InvitationRow, MemberId, MemberRow, PasswordReset, RepositoryId};

use crate::call::Call;
use crate::error::ApiError;
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_identity::{self as identity, Secret};
use packhouse_wire::catalogue;

/// An e-mail address as it is kept; 400 `invalid_request` where it is none.
pub(super) fn email(text: &str) -> Result<String, ApiError> {
    identity::email(text).ok_or_else(|| ApiError::invalid("`email` is no e-mail address."))
}

/// A new password; 400 `invalid_request` where it is too short or too long, or is taken for a token.
pub(super) fn password(text: String) -> Result<Secret, ApiError> {
    identity::new_password(&text).map_err(|reason| ApiError::invalid(&format!("`password` {reason}.")))
}

/// A person's name, which may be empty; 400 `invalid_name` for one that a name cannot be.
pub(super) fn name(text: Option<String>) -> Result<String, ApiError> {
    match text.filter(|name| !name.is_empty()) {
        Some(name) => crate::fields::name(&Some(name.into())),
        None => Ok(String::new()),
    }
}

/// The member of the path's `{id}`, for who manages members: 403 `role_mismatch` without manage-members, whoever it is about; 404
/// `not_found` where there is none in the caller's organization.
pub(super) async fn find_to_manage(call: &Call) -> Result<MemberRow, ApiError> {
    call.judge(call.caller()?.permissions.holds(Permission::ManageMembers), &catalogue::ROLE_MISMATCH)?;
    find(call).await
}

/// The member of the path's `{id}`: 404 `not_found` where there is none in the caller's organization.
pub(super) async fn find(call: &Call) -> Result<MemberRow, ApiError> {
    let id = call.path("id").parse::<MemberId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = call.app.store.find_member(call.organization()?, id).await?;
    row.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Whether the path's `{id}` is the caller's own.
pub(super) fn is_own(call: &Call) -> Result<bool, ApiError> {
    Ok(call.path("id") == call.caller()?.member.id.to_string())
}

/// Whether who holds this may make, or leave behind, a member who holds `other`.
fn manages(held: &Permissions, other: &Permissions) -> bool {
    held.holds(Permission::ManageMembers) && held.covers(other)
}

/// Judges whether the caller may make, or leave behind, a member who holds this: 403 `role_mismatch` without manage-members,
/// or where it is more than the caller's own.
pub(super) fn may_grant(call: &Call, permissions: &Permissions) -> Result<(), ApiError> {
    call.judge(manages(&call.caller()?.permissions, permissions), &catalogue::ROLE_MISMATCH)
}

/// Judges whether the caller may change or delete this member.
pub(super) fn may_manage(call: &Call, row: &MemberRow) -> Result<(), ApiError> {
    may_grant(call, &Permissions::read(&row.permissions))
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
pub(crate) async fn repositories_exist(call: &Call, permissions: &Permissions) -> Result<(), ApiError> {
    let mut ids = Vec::new();
    for name in permissions.named() {
        let id: RepositoryId = name.parse().map_err(|_| no_repository(name))?;
        ids.push(id);
    }
    let found = call.app.store.find_repositories(call.organization()?, &ids).await?;
    match ids.iter().find(|id| !found.iter().any(|row| row.id == **id)) {
        Some(id) => Err(no_repository(&id.to_string())),
        None => Ok(()),
    }
}

fn no_repository(name: &str) -> ApiError {
    ApiError::invalid(&format!("`permissions` names the repository `{name}`, which is not there."))
}
