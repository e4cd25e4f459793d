//! Members of teams: persons and service accounts.

use packhouse_store::{MemberChange, MemberId, MemberRow, MembershipSource, TeamMember, TeamRow};

use super::{TEAMS, granted, show};
use crate::error::ApiError;
use crate::operations::caller::name_of;
use crate::operations::members::{find_any, servers_know};
use crate::operations::{Actor, PageRequest, RowPage};

/// Returns a page of a team's members.
pub async fn members(
    actor: &Actor,
    id: &str,
    page: PageRequest<MemberId>,
) -> Result<RowPage<TeamMember>, ApiError> {
    let team = show(actor, id).await?;
    Ok(page.cut(actor.app.store.team_members(team.id, page.after, page.one_further()).await?))
}

/// Adds a person or a service account to a team, which grants the team's permissions: 403
/// `role_mismatch` if they exceed the actor's. Adding a member again has no effect; a membership
/// that a directory made becomes manual. 409 `servers_too_old`.
pub async fn add_member(actor: &Actor, id: &str, member: &str) -> Result<(), ApiError> {
    loop {
        let TeamWithMember { team, member } = find(actor, id, member).await?;
        servers_know(actor, TEAMS).await?;
        let event = actor.event("add_team_member", subject(&team, &member));
        let source = MembershipSource::Manual;
        match actor.app.store.add_team_member(&team, member.id, source, Some(event)).await? {
            MemberChange::Done | MemberChange::LastOwner => return Ok(()),
            // The team changed in the meantime, or one of both was deleted; check again.
            MemberChange::Changed => {}
        }
    }
}

/// Removes a member from a team, which takes the team's permissions away: 403 `role_mismatch` if
/// they exceed the actor's. Removing a member again has no effect.
pub async fn remove_member(actor: &Actor, id: &str, member: &str) -> Result<(), ApiError> {
    let TeamWithMember { team, member } = find(actor, id, member).await?;
    let event = actor.event("remove_team_member", subject(&team, &member));
    actor.app.store.remove_team_member(&team, member.id, Some(event)).await?;
    Ok(())
}

/// Team whose permissions the actor may grant, and a member of the organization.
struct TeamWithMember {
    team: TeamRow,
    member: MemberRow,
}

/// Finds a team and a member. 404 `not_found` if one does not exist, then 403 `role_mismatch` if
/// the team's permissions exceed the actor's.
async fn find(actor: &Actor, id: &str, member: &str) -> Result<TeamWithMember, ApiError> {
    show(actor, id).await?;
    let member = find_any(actor, member).await?;
    Ok(TeamWithMember { team: granted(actor, id).await?, member })
}

/// Subject of an audit event: the name of the team, then that of the member.
fn subject(team: &TeamRow, member: &MemberRow) -> String {
    format!("{} {}", team.name, name_of(member))
}
