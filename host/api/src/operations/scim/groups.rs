//! Teams as groups of SCIM. A created team has no permissions. Filling a team grants its
//! permissions, so the actor must hold them. Only persons are members of a group: service accounts
//! of a team do not appear and stay.

use std::collections::HashSet;

use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_identity::permissions::Permissions;
use packhouse_store::{
    MemberChange, MemberId, MemberKind, MemberRow, MembershipSource, NewTeam, TeamChange, TeamId, TeamMember,
    TeamRow,
};
use packhouse_wire::catalogue;

use super::users::person;
use super::{ListPart, ListWindow};
use crate::error::ApiError;
use crate::operations::Actor;
use crate::operations::members::{may_grant, servers_know};
use crate::operations::teams::{self, TeamRequest};

/// Rows that are read at a time.
const PAGE: u32 = 500;

/// Property by which a directory looks a group up.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GroupFilter {
    Id(String),
    /// Name of the team, in any case.
    Name(String),
    ExternalId(String),
}

/// Changes of a group; `None` leaves a property as it is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct GroupChange {
    pub name: Option<String>,
    /// Identifier in the directory; an empty text removes it.
    pub external_id: Option<String>,
    /// Changes of the members, in order.
    pub members: Vec<MembersChange>,
}

/// Change of a group's members, who are named by their ids.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum MembersChange {
    Add(Vec<String>),
    /// Removes these members, however they joined. Ids of others are ignored.
    Remove(Vec<String>),
    /// Makes these the members that the directory added. Members that were added by hand stay.
    Replace(Vec<String>),
}

/// Change of a group's members, who exist.
enum MembersStep {
    Add(Vec<MemberRow>),
    Remove(Vec<MemberRow>),
    Replace(Vec<MemberRow>),
}

/// Returns a part of the groups by creation time, or those that a filter finds.
pub async fn list(
    actor: &Actor,
    filter: Option<GroupFilter>,
    window: ListWindow,
) -> Result<ListPart<TeamRow>, ApiError> {
    actor.needs(ManageMembers)?;
    let (store, organization) = (&actor.app.store, actor.organization());
    let found: Vec<TeamRow> = match filter {
        None => all(actor).await?,
        Some(GroupFilter::Name(name)) => {
            let name = name.to_lowercase();
            all(actor).await?.into_iter().filter(|team| team.name.to_lowercase() == name).collect()
        }
        Some(GroupFilter::ExternalId(id)) => {
            store.find_team_by_external_id(organization, &id).await?.into_iter().collect()
        }
        Some(GroupFilter::Id(id)) => match id.parse::<TeamId>() {
            Ok(id) => store.find_team(organization, id).await?.into_iter().collect(),
            Err(_) => Vec::new(),
        },
    };
    Ok(window.cut(found))
}

/// Reads all teams of the organization, whose number is limited.
async fn all(actor: &Actor) -> Result<Vec<TeamRow>, ApiError> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = actor.app.store.list_teams(actor.organization(), after, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        after = page.last().map(|team| team.id);
        all.extend(page);
        if is_last {
            return Ok(all);
        }
    }
}

/// Returns a group. 404 `not_found` if there is no team with this id.
pub async fn show(actor: &Actor, id: &str) -> Result<TeamRow, ApiError> {
    teams::show(actor, id).await
}

/// Returns the persons in a team.
pub async fn members(actor: &Actor, team: &TeamRow) -> Result<Vec<MemberRow>, ApiError> {
    Ok(persons(actor, team.id).await?.into_iter().map(|of| of.member).collect())
}

async fn persons(actor: &Actor, team: TeamId) -> Result<Vec<TeamMember>, ApiError> {
    let (mut persons, mut after) = (Vec::new(), None);
    loop {
        let page = actor.app.store.team_members(team, after, PAGE).await?;
        let is_last = page.len() < PAGE as usize;
        after = page.last().map(|of| of.member.id);
        persons.extend(page.into_iter().filter(|of| of.member.kind == MemberKind::Person));
        if is_last {
            return Ok(persons);
        }
    }
}

/// Creates a team without permissions. 409 `team_already_exists` if the name or the identifier of
/// the directory is in use, `too_many_teams` or `servers_too_old`.
pub async fn create(actor: &Actor, change: GroupChange) -> Result<TeamRow, ApiError> {
    let GroupChange { name, external_id, members } = change;
    let name = name.ok_or_else(|| ApiError::invalid("`displayName` is required."))?;
    actor.needs(ManageMembers)?;
    external_id_is_free(actor, external_id.as_deref(), None).await?;
    let steps = resolve(actor, members).await?;
    let team = teams::create(
        actor,
        TeamRequest {
            name,
            description: String::new(),
            permissions: Permissions::default(),
            external_groups: Vec::new(),
        },
    );
    let team = set_properties(actor, team.await?, None, external_id).await?;
    fill(actor, team, steps).await
}

/// Changes a group. 403 `role_mismatch` if the permissions of the team exceed the actor's; 409
/// `team_already_exists` or `servers_too_old`.
pub async fn change(actor: &Actor, id: &str, change: GroupChange) -> Result<TeamRow, ApiError> {
    let GroupChange { name, external_id, members } = change;
    let team = granted(actor, id).await?;
    servers_know(actor, "teams").await?;
    external_id_is_free(actor, external_id.as_deref(), Some(team.id)).await?;
    let steps = resolve(actor, members).await?;
    let team = set_properties(actor, team, name, external_id).await?;
    fill(actor, team, steps).await
}

/// Deletes a team, whose members lose its permissions.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    teams::remove(actor, id).await
}

/// Finds a team whose permissions the actor may grant: 404 `not_found`, then 403 `role_mismatch`.
async fn granted(actor: &Actor, id: &str) -> Result<TeamRow, ApiError> {
    let team = teams::show(actor, id).await?;
    may_grant(actor, &Permissions::read(&team.permissions)).await?;
    Ok(team)
}

/// Checks that no other team has the identifier of the directory: a directory finds its groups by
/// it.
async fn external_id_is_free(actor: &Actor, id: Option<&str>, own: Option<TeamId>) -> Result<(), ApiError> {
    let Some(id) = id.filter(|id| !id.is_empty()) else { return Ok(()) };
    match actor.app.store.find_team_by_external_id(actor.organization(), id).await? {
        Some(other) if Some(other.id) != own => {
            let code = &catalogue::TEAM_ALREADY_EXISTS;
            let message = "Another team has this `externalId`.".to_owned();
            Err(ApiError::Refused { code, message, retry_after: None })
        }
        _ => Ok(()),
    }
}

/// Sets the name and the identifier of the directory; `None` leaves them as they are.
async fn set_properties(
    actor: &Actor,
    mut team: TeamRow,
    name: Option<String>,
    external_id: Option<String>,
) -> Result<TeamRow, ApiError> {
    loop {
        let new = NewTeam {
            name: name.as_ref().unwrap_or(&team.name).clone(),
            description: team.description.clone(),
            permissions: team.permissions.clone(),
            external_groups: team.external_groups.clone(),
            external_id: match &external_id {
                Some(id) => Some(id.clone()).filter(|id| !id.is_empty()),
                None => team.external_id.clone(),
            },
        };
        if new.name == team.name && new.external_id == team.external_id {
            return Ok(team);
        }
        let event = actor.event("change_team", team.name.clone());
        match actor.app.store.set_team(&team, new, Some(event)).await? {
            TeamChange::Done(row) => return Ok(*row),
            TeamChange::NameTaken => return Err(ApiError::from(&catalogue::TEAM_ALREADY_EXISTS)),
            // Another call changed it in the meantime; check again with the new state.
            TeamChange::Changed => team = granted(actor, &team.id.to_string()).await?,
        }
    }
}

/// Finds the named members. 400 `invalid_value` if a member to add does not exist.
async fn resolve(actor: &Actor, changes: Vec<MembersChange>) -> Result<Vec<MembersStep>, ApiError> {
    let mut steps = Vec::with_capacity(changes.len());
    for change in changes {
        steps.push(match change {
            MembersChange::Add(ids) => MembersStep::Add(existing(actor, ids).await?),
            MembersChange::Replace(ids) => MembersStep::Replace(existing(actor, ids).await?),
            MembersChange::Remove(ids) => {
                let mut members = Vec::with_capacity(ids.len());
                for id in &once(ids) {
                    members.extend(found(actor, id).await?);
                }
                MembersStep::Remove(members)
            }
        });
    }
    Ok(steps)
}

async fn existing(actor: &Actor, ids: Vec<String>) -> Result<Vec<MemberRow>, ApiError> {
    let mut members = Vec::with_capacity(ids.len());
    for id in &once(ids) {
        members.push(found(actor, id).await?.ok_or_else(|| unknown(id))?);
    }
    Ok(members)
}

/// Removes repetitions, each of which would cost a look-up and a transaction.
fn once(mut ids: Vec<String>) -> Vec<String> {
    ids.sort_unstable();
    ids.dedup();
    ids
}

async fn found(actor: &Actor, id: &str) -> Result<Option<MemberRow>, ApiError> {
    match person(actor, id).await {
        Ok(member) => Ok(Some(member)),
        Err(error) if error.code().is_some_and(|code| std::ptr::eq(code, &catalogue::NOT_FOUND)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn unknown(id: &str) -> ApiError {
    let sentence = format!("`members` names the user {id:?}, which does not exist");
    ApiError::with(&catalogue::INVALID_SCIM_VALUE, &sentence)
}

/// Changes the members of a team.
async fn fill(actor: &Actor, mut team: TeamRow, steps: Vec<MembersStep>) -> Result<TeamRow, ApiError> {
    for step in steps {
        let (added, removed) = match step {
            MembersStep::Add(members) => (members, Vec::new()),
            MembersStep::Remove(members) => (Vec::new(), members),
            MembersStep::Replace(members) => difference(persons(actor, team.id).await?, members),
        };
        for member in removed {
            let event = actor.event("remove_team_member", subject(&team, &member));
            actor.app.store.remove_team_member(&team, member.id, Some(event)).await?;
        }
        for member in added {
            add(actor, &mut team, &member).await?;
        }
    }
    Ok(team)
}

/// Returns the members that join and those that leave if `members` replace those that the directory
/// added.
fn difference(present: Vec<TeamMember>, members: Vec<MemberRow>) -> (Vec<MemberRow>, Vec<MemberRow>) {
    let present_ids: HashSet<MemberId> = present.iter().map(|of| of.member.id).collect();
    let ids: HashSet<MemberId> = members.iter().map(|member| member.id).collect();
    let joining = members.into_iter().filter(|member| !present_ids.contains(&member.id)).collect();
    let leaves = |of: &TeamMember| of.source == MembershipSource::External && !ids.contains(&of.member.id);
    (joining, present.into_iter().filter(leaves).map(|of| of.member).collect())
}

async fn add(actor: &Actor, team: &mut TeamRow, member: &MemberRow) -> Result<(), ApiError> {
    loop {
        let event = actor.event("add_team_member", subject(team, member));
        let source = MembershipSource::External;
        match actor.app.store.add_team_member(team, member.id, source, Some(event)).await? {
            MemberChange::Done | MemberChange::LastOwner => return Ok(()),
            // The team changed in the meantime, or one of both was deleted; check again.
            MemberChange::Changed => {
                let id = member.id.to_string();
                found(actor, &id).await?.ok_or_else(|| unknown(&id))?;
                *team = granted(actor, &team.id.to_string()).await?;
            }
        }
    }
}

/// Subject of an audit event: the name of the team, then the e-mail address of the person.
fn subject(team: &TeamRow, member: &MemberRow) -> String {
    format!("{} {}", team.name, member.email)
}
