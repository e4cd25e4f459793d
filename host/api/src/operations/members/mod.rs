//! Members of an organization with their permissions, invitations, and password resets.

mod invitations;
mod me;
mod resets;
mod rights;
mod second_factor;

use packhouse_identity::Secret;
use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{MemberChange, MemberId, MemberRow, NewMember, TeamRow};
use packhouse_wire::catalogue;

use super::confirmations::{Action, Confirmation};
use super::{Actor, PageRequest, RowPage};
use crate::error::ApiError;
pub use invitations::{Acceptance, accept, invite, invited};
pub use me::{Me, OwnChange, Reachable, change, me};
pub use resets::{complete_reset, reset, resetting};
pub(in crate::operations) use rights::{find_any, is_own, may_grant};
pub use rights::{repositories_exist, servers_know, servers_understand};
pub use second_factor::remove_second_factor;

#[derive(Debug)]
pub struct MemberRequest {
    /// E-mail address with which the member signs in.
    pub email: String,
    /// Displayed name; may be empty.
    pub name: String,
    pub password: Secret,
    pub permissions: Permissions,
}

/// One-time code for a person without a session.
pub struct OneTimeCode {
    /// Code, shown only this once.
    pub secret: Secret,
    /// When it ends, in ms since 1970.
    pub expires_at: i64,
    /// True if it was mailed; `None` if no mail server is configured.
    pub mailed: Option<bool>,
}

/// Creates a member. 403 `role_mismatch` if the member would hold more than the actor; 409
/// `user_already_exists`.
pub async fn create(
    actor: &Actor,
    confirmation: &Confirmation,
    request: MemberRequest,
) -> Result<MemberRow, ApiError> {
    confirmation.judge(actor, Action::ManageMembers).await?;
    let MemberRequest { email, name, password, permissions } = request;
    rights::may_grant(actor, &permissions).await?;
    servers_understand(actor, &permissions).await?;
    repositories_exist(actor, &permissions).await?;
    let password_hash = actor.app.passwords.hash(password).await?;
    let permissions = serde_json::to_string(&permissions).map_err(anyhow::Error::from)?;
    let event = actor.event("create_member", email.clone());
    let new = NewMember { email, name, password_hash, permissions };
    let made = actor.app.store.create_member(actor.organization(), new, Some(event)).await?;
    made.ok_or(ApiError::from(&catalogue::USER_ALREADY_EXISTS))
}

/// Returns a page of members. Needs manage-members or manage-owner-account.
pub async fn list(actor: &Actor, page: PageRequest<MemberId>) -> Result<RowPage<MemberRow>, ApiError> {
    may_see_others(actor)?;
    let rows = actor.app.store.list_members(actor.organization(), page.after, page.one_further()).await?;
    Ok(page.cut(rows))
}

/// Returns a page of the members by e-mail address, after the address on which the previous page
/// ended. Needs what [`list`] needs.
pub async fn list_by_email(
    actor: &Actor,
    page: &PageRequest<String>,
) -> Result<RowPage<MemberRow>, ApiError> {
    may_see_others(actor)?;
    let (store, organization) = (&actor.app.store, actor.organization());
    let rows = store.list_members_by_email(organization, page.after.as_deref(), page.one_further()).await?;
    Ok(page.cut(rows))
}

/// Returns a member. Needs manage-members or manage-owner-account, except for the actor's own
/// account.
pub async fn show(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    if rights::is_own(actor, id) {
        actor.judged_own();
    } else {
        may_see_others(actor)?;
    }
    rights::find(actor, id).await
}

/// Member with its teams and its effective permissions.
#[derive(Clone, Debug)]
pub struct MemberDetails {
    pub row: MemberRow,
    /// Teams of the member, whose permissions the member has too.
    pub teams: Vec<TeamRow>,
    /// Own permissions together with those of all teams, including those that an owner of the first
    /// organization holds implicitly.
    pub effective: Permissions,
}

/// Adds teams and effective permissions to a member that the actor may see.
pub async fn details(actor: &Actor, row: MemberRow) -> Result<MemberDetails, ApiError> {
    let teams = teams(actor, &row).await?;
    let first = actor.app.first_organization().await? == Some(row.organization);
    let effective = Permissions::of_member(&row).of_organization(first);
    Ok(MemberDetails { row, teams, effective })
}

/// Returns the teams of a member that the actor may see.
pub async fn teams(actor: &Actor, row: &MemberRow) -> Result<Vec<TeamRow>, ApiError> {
    Ok(actor.app.store.teams_of_member(row.id).await?)
}

/// Suspends a member, or reactivates it. All credentials of a suspended member are refused from the
/// next request on, and work again after the reactivation. A member may suspend itself. 403
/// `role_mismatch` if the member holds more than the actor; 409 `last_owner`.
pub async fn set_active(actor: &Actor, id: &str, active: bool) -> Result<MemberRow, ApiError> {
    loop {
        let row = rights::find_to_manage(actor, id).await?;
        rights::may_manage(actor, &row).await?;
        if !active {
            servers_know(actor, "suspension").await?;
        }
        let action = if active { "reactivate_member" } else { "suspend_member" };
        let event = actor.event(action, row.email.clone());
        let (store, owner) = (&actor.app.store, Permissions::of_an_owner);
        match store.set_member_active(&row, active, owner, Some(event)).await? {
            MemberChange::Done => return Ok(MemberRow { active, ..row }),
            MemberChange::LastOwner => return Err(ApiError::from(&catalogue::LAST_OWNER)),
            // Another call changed it in the meantime; check again with the new state.
            MemberChange::Changed => {}
        }
    }
}

/// Sets the permissions of a member. Neither the old nor the new permissions may exceed the
/// actor's: 403 `role_mismatch`. 409 `last_owner`. A change ends the member's invitations, the
/// password resets that the member started, and those of the member's own password.
pub async fn set_permissions(
    actor: &Actor,
    id: &str,
    permissions: &Permissions,
) -> Result<MemberRow, ApiError> {
    let json = serde_json::to_string(permissions).map_err(anyhow::Error::from)?;
    loop {
        let row = rights::find_to_manage(actor, id).await?;
        rights::may_manage(actor, &row).await?;
        rights::may_grant(actor, permissions).await?;
        servers_understand(actor, permissions).await?;
        repositories_exist(actor, permissions).await?;
        let event = actor.event("set_member_permissions", row.email.clone());
        let (store, owner) = (&actor.app.store, Permissions::of_an_owner);
        match store.set_member_permissions(&row, &json, owner, Some(event)).await? {
            MemberChange::Done => return Ok(MemberRow { permissions: json, ..row }),
            MemberChange::LastOwner => return Err(ApiError::from(&catalogue::LAST_OWNER)),
            // Another call changed it in the meantime; check again with the new state.
            MemberChange::Changed => {}
        }
    }
}

/// Deletes a member. Its sessions end, its tokens are revoked, and its invitations become invalid.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    loop {
        let row = rights::find_to_manage(actor, id).await?;
        rights::may_manage(actor, &row).await?;
        let event = actor.event("delete_member", row.email.clone());
        match actor.app.store.delete_member(&row, Permissions::of_an_owner, Some(event)).await? {
            MemberChange::Done => return Ok(()),
            MemberChange::LastOwner => return Err(ApiError::from(&catalogue::LAST_OWNER)),
            MemberChange::Changed => {}
        }
    }
}

fn may_see_others(actor: &Actor) -> Result<(), ApiError> {
    if actor.permissions().holds(Permission::ManageOwnerAccount) {
        return actor.needs(Permission::ManageOwnerAccount);
    }
    actor.needs(Permission::ManageMembers)
}
