//! Service accounts: accounts of programs, with permissions and teams like a member's. They have no
//! e-mail address and no password, and act through API tokens.

use packhouse_identity::permissions::{Permission, Permissions};
use packhouse_store::{MemberChange, MemberId, MemberKind, MemberRow, TeamId, TeamRow};
use packhouse_wire::catalogue;

use super::members::{self, may_grant};
use super::{Actor, PageRequest, RowPage};
use crate::error::ApiError;

/// Service account with the teams that it belongs to.
#[derive(Clone, Debug)]
pub struct ServiceAccount {
    pub row: MemberRow,
    pub teams: Vec<TeamRow>,
}

#[derive(Debug)]
pub struct ServiceAccountRequest {
    pub name: String,
    pub permissions: Permissions,
    /// Unchecked ids of the teams that it joins.
    pub teams: Vec<String>,
}

/// Changes to a service account; `None` leaves a field unchanged.
#[derive(Debug, Default)]
pub struct ServiceAccountChange {
    pub name: Option<String>,
    pub permissions: Option<Permissions>,
    /// Unchecked ids of all its teams.
    pub teams: Option<Vec<String>>,
}

/// Creates a service account. Needs manage-members. 403 `role_mismatch` if its own permissions or
/// those of a team exceed the actor's; 409 `service_account_already_exists`, `servers_too_old`.
pub async fn create(actor: &Actor, request: ServiceAccountRequest) -> Result<ServiceAccount, ApiError> {
    actor.needs(Permission::ManageMembers)?;
    let ServiceAccountRequest { name, permissions, teams } = request;
    may_grant(actor, &permissions).await?;
    let found = teams_to_join(actor, &teams).await?;
    members::repositories_exist(actor, &permissions).await?;
    members::servers_know(actor, "service accounts").await?;
    let permissions = json(&permissions)?;
    let (store, event) = (&actor.app.store, actor.event("create_service_account", name.clone()));
    let made = store.create_service_account(actor.organization(), &name, &permissions, Some(event)).await?;
    let row = made.ok_or(&catalogue::SERVICE_ACCOUNT_ALREADY_EXISTS)?;
    if found.is_empty() {
        return Ok(ServiceAccount { row, teams: found });
    }
    match join(actor, &row, &teams, found).await {
        Ok(teams) => Ok(ServiceAccount { row, teams }),
        Err(error) => {
            // A team changed in the meantime, so that the actor may no longer grant it.
            let event = actor.event("delete_service_account", name);
            store.delete_member(&row, Permissions::of_an_owner, Some(event)).await?;
            Err(error)
        }
    }
}

/// Returns a page of service accounts. Needs manage-members.
pub async fn list(actor: &Actor, page: PageRequest<MemberId>) -> Result<RowPage<ServiceAccount>, ApiError> {
    actor.needs(Permission::ManageMembers)?;
    let (store, organization) = (&actor.app.store, actor.organization());
    let rows = store.list_service_accounts(organization, page.after, page.one_further()).await?;
    let RowPage { rows, more } = page.cut(rows);
    let mut accounts = Vec::with_capacity(rows.len());
    for row in rows {
        accounts.push(with_teams(actor, row).await?);
    }
    Ok(RowPage { rows: accounts, more })
}

/// Returns a service account. Needs manage-members.
pub async fn show(actor: &Actor, id: &str) -> Result<ServiceAccount, ApiError> {
    actor.needs(Permission::ManageMembers)?;
    with_teams(actor, find(actor, id).await?).await
}

/// Changes a service account. Needs manage-members. 403 `role_mismatch` if it holds, or would hold,
/// more than the actor; 409 `service_account_already_exists`, `servers_too_old`.
pub async fn change(
    actor: &Actor,
    id: &str,
    change: ServiceAccountChange,
) -> Result<ServiceAccount, ApiError> {
    actor.needs(Permission::ManageMembers)?;
    loop {
        let row = find(actor, id).await?;
        may_grant(actor, &Permissions::of_member(&row)).await?;
        if let Some(permissions) = &change.permissions {
            may_grant(actor, permissions).await?;
            members::repositories_exist(actor, permissions).await?;
            members::servers_understand(actor, permissions).await?;
        }
        let teams = match &change.teams {
            Some(ids) => {
                let found = teams_to_join(actor, ids).await?;
                members::servers_know(actor, "teams").await?;
                Some((ids, found))
            }
            None => None,
        };
        let Some(row) = set_fields(actor, row, &change).await? else { continue };
        if let Some((ids, teams)) = teams {
            join(actor, &row, ids, teams).await?;
        }
        return with_teams(actor, row).await;
    }
}

/// Deletes a service account. Its API tokens are refused from the next request on. Needs
/// manage-members; 403 `role_mismatch` if it holds more than the actor.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    actor.needs(Permission::ManageMembers)?;
    loop {
        let row = find(actor, id).await?;
        may_grant(actor, &Permissions::of_member(&row)).await?;
        let event = actor.event("delete_service_account", row.name.clone());
        match actor.app.store.delete_member(&row, Permissions::of_an_owner, Some(event)).await? {
            MemberChange::Done => return Ok(()),
            MemberChange::LastOwner => return Err(ApiError::from(&catalogue::LAST_OWNER)),
            // Another call changed it in the meantime; check again with the new state.
            MemberChange::Changed => {}
        }
    }
}

/// Finds a service account in the actor's organization. 404 `not_found` if it does not exist, and
/// for a person.
pub(super) async fn find(actor: &Actor, id: &str) -> Result<MemberRow, ApiError> {
    let row = members::find_any(actor, id).await?;
    if row.kind == MemberKind::Service { Ok(row) } else { Err(ApiError::from(&catalogue::NOT_FOUND)) }
}

/// Writes name and permissions, if the change has any. Returns the row as written, or `None` if
/// another call changed it after it was read.
async fn set_fields(
    actor: &Actor,
    row: MemberRow,
    change: &ServiceAccountChange,
) -> Result<Option<MemberRow>, ApiError> {
    if change.name.is_none() && change.permissions.is_none() {
        return Ok(Some(row));
    }
    let name = change.name.clone().unwrap_or_else(|| row.name.clone());
    let permissions = change.permissions.as_ref().map(json).transpose()?;
    let permissions = permissions.unwrap_or_else(|| row.permissions.clone());
    let event = actor.event("change_service_account", name.clone());
    let changed = actor.app.store.set_service_account(&row, &name, &permissions, Some(event)).await?;
    match changed.ok_or(&catalogue::SERVICE_ACCOUNT_ALREADY_EXISTS)? {
        MemberChange::Done => Ok(Some(MemberRow { name, permissions, ..row })),
        MemberChange::LastOwner => Err(ApiError::from(&catalogue::LAST_OWNER)),
        MemberChange::Changed => Ok(None),
    }
}

/// Makes exactly these teams the memberships of a service account, except for those from a
/// directory. `found` are the teams with these ids, as the actor may grant them.
async fn join(
    actor: &Actor,
    row: &MemberRow,
    ids: &[String],
    mut found: Vec<TeamRow>,
) -> Result<Vec<TeamRow>, ApiError> {
    loop {
        let event = actor.event("set_teams_of_service_account", row.name.clone());
        match actor.app.store.set_teams_of_member(row, &found, Some(event)).await? {
            MemberChange::Done | MemberChange::LastOwner => return Ok(found),
            // A team changed after it was read, or the account was deleted; check again.
            MemberChange::Changed => {
                find(actor, &row.id.to_string()).await?;
                found = teams_to_join(actor, ids).await?;
            }
        }
    }
}

/// Finds the teams with these ids that the actor may add a member to, without repetition. 400
/// `invalid_request` if one does not exist, 403 `role_mismatch` if one holds more than the actor.
async fn teams_to_join(actor: &Actor, ids: &[String]) -> Result<Vec<TeamRow>, ApiError> {
    let mut found: Vec<TeamRow> = Vec::with_capacity(ids.len());
    for id in ids {
        let unknown = || ApiError::invalid(&format!("`teams` names the team `{id}`, which does not exist."));
        let parsed = id.parse::<TeamId>().map_err(|_| unknown())?;
        if found.iter().any(|team| team.id == parsed) {
            continue;
        }
        let team = actor.app.store.find_team(actor.organization(), parsed).await?.ok_or_else(unknown)?;
        may_grant(actor, &Permissions::read(&team.permissions)).await?;
        found.push(team);
    }
    Ok(found)
}

async fn with_teams(actor: &Actor, row: MemberRow) -> Result<ServiceAccount, ApiError> {
    let teams = actor.app.store.teams_of_member(row.id).await?;
    Ok(ServiceAccount { row, teams })
}

fn json(permissions: &Permissions) -> Result<String, ApiError> {
    serde_json::to_string(permissions).map_err(|error| ApiError::Internal(error.into()))
}
