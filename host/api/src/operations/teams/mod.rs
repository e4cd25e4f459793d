//! Teams: their members have the permissions of the team besides their own. All operations need
//! manage-members. A team's permissions are granted to its members, so that an actor changes only
//! teams whose permissions the actor holds.

mod members;

use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_identity::permissions::Permissions;
use packhouse_store::{NewTeam, TeamChange, TeamId, TeamRow};
use packhouse_wire::catalogue;

use super::members::{may_grant, repositories_exist, servers_know};
use super::{Actor, PageRequest, RowPage};
use crate::error::ApiError;
pub use members::{add_member, members, remove_member};

/// Maximum number of teams in an organization.
const MAX_TEAMS: u64 = 1_000;
/// Name of the feature in the refusal while a server of the previous version runs.
const TEAMS: &str = "teams";

#[derive(Clone, Debug)]
pub struct TeamRequest {
    pub name: String,
    /// Text for people; may be empty.
    pub description: String,
    pub permissions: Permissions,
    /// Groups of identity providers, whose members join the team at sign-in.
    pub external_groups: Vec<String>,
}

/// Changes to a team; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct TeamChangeRequest {
    pub name: Option<String>,
    pub description: Option<String>,
    /// Permissions that replace all earlier ones.
    pub permissions: Option<Permissions>,
    /// External groups that replace all earlier ones.
    pub external_groups: Option<Vec<String>>,
}

/// Creates a team without members. 403 `role_mismatch` if its permissions exceed the actor's; 409
/// `servers_too_old`, `too_many_teams` or `team_already_exists`.
pub async fn create(actor: &Actor, request: TeamRequest) -> Result<TeamRow, ApiError> {
    actor.needs(ManageMembers)?;
    let TeamRequest { name, description, permissions, external_groups } = request;
    may_grant(actor, &permissions).await?;
    servers_know(actor, TEAMS).await?;
    let (store, organization) = (&actor.app.store, actor.organization());
    if store.count_teams(organization).await? >= MAX_TEAMS {
        return Err(ApiError::with(&catalogue::TOO_MANY_TEAMS, &MAX_TEAMS.to_string()));
    }
    repositories_exist(actor, &permissions).await?;
    let event = actor.event("create_team", name.clone());
    let permissions = json(&permissions)?;
    let new = NewTeam { name, description, permissions, external_groups, external_id: None };
    let made = store.create_team(organization, new, Some(event)).await?;
    made.ok_or(ApiError::from(&catalogue::TEAM_ALREADY_EXISTS))
}

/// Returns a page of teams.
pub async fn list(actor: &Actor, page: PageRequest<TeamId>) -> Result<RowPage<TeamRow>, ApiError> {
    actor.needs(ManageMembers)?;
    let rows = actor.app.store.list_teams(actor.organization(), page.after, page.one_further()).await?;
    Ok(page.cut(rows))
}

/// Returns a team. 404 `not_found` if it does not exist in the actor's organization.
pub async fn show(actor: &Actor, id: &str) -> Result<TeamRow, ApiError> {
    actor.needs(ManageMembers)?;
    let id = id.parse::<TeamId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_team(actor.organization(), id).await?;
    row.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Changes a team. Its members have the new permissions from the next request on. 403
/// `role_mismatch` if the old or the new permissions exceed the actor's; 409 `servers_too_old` or
/// `team_already_exists`.
pub async fn change(actor: &Actor, id: &str, request: TeamChangeRequest) -> Result<TeamRow, ApiError> {
    loop {
        let team = granted(actor, id).await?;
        if let Some(permissions) = &request.permissions {
            may_grant(actor, permissions).await?;
        }
        servers_know(actor, TEAMS).await?;
        let permissions = match &request.permissions {
            Some(permissions) => {
                repositories_exist(actor, permissions).await?;
                json(permissions)?
            }
            None => team.permissions.clone(),
        };
        let new = NewTeam {
            name: request.name.as_ref().unwrap_or(&team.name).clone(),
            description: request.description.as_ref().unwrap_or(&team.description).clone(),
            permissions,
            external_groups: request.external_groups.as_ref().unwrap_or(&team.external_groups).clone(),
            external_id: team.external_id.clone(),
        };
        let event = actor.event("change_team", team.name.clone());
        match actor.app.store.set_team(&team, new, Some(event)).await? {
            TeamChange::Done(row) => return Ok(*row),
            TeamChange::NameTaken => return Err(ApiError::from(&catalogue::TEAM_ALREADY_EXISTS)),
            // Another call changed it in the meantime; check again with the new state.
            TeamChange::Changed => {}
        }
    }
}

/// Deletes a team. Its members lose its permissions from the next request on.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let team = granted(actor, id).await?;
    let event = actor.event("delete_team", team.name);
    if actor.app.store.delete_team(team.organization, team.id, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// Finds a team whose permissions the actor may grant: 404 `not_found`, then 403 `role_mismatch`.
async fn granted(actor: &Actor, id: &str) -> Result<TeamRow, ApiError> {
    let team = show(actor, id).await?;
    may_grant(actor, &Permissions::read(&team.permissions)).await?;
    Ok(team)
}

fn json(permissions: &Permissions) -> Result<String, ApiError> {
    serde_json::to_string(permissions).map_err(|error| ApiError::Internal(error.into()))
}
