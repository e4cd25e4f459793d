//! Teams: `/v1/teams`. The members of a team have its permissions besides their own.

pub(crate) mod bodies;
mod view;

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_store::{MemberId, TeamId, TeamMember, TeamRow};

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::teams;
use crate::paging::{self, Page};
use crate::scope::Family;
use bodies::{ChangeTeam, CreateTeam};
use view::{TeamMemberView, TeamView};

pub(crate) fn endpoints() -> Vec<Described> {
    vec![
        routes!(create),
        routes!(list),
        routes!(show),
        routes!(change),
        routes!(remove),
        routes!(members),
        routes!(add_member),
        routes!(remove_member),
    ]
}

/// Creates a team. Its permissions may not exceed the caller's.
#[utoipa::path(post, path = "/v1/teams", operation_id = "create_team",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    request_body = CreateTeam,
    responses((status = 201, body = TeamView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
    let body: CreateTeam = call.body()?;
    call.only(&[])?;
    let row = teams::create(call.actor()?, body.request()?).await?;
    Ok((StatusCode::CREATED, Json(TeamView::from(row))).into_response())
}

/// Lists the organization's teams page by page.
#[utoipa::path(get, path = "/v1/teams", operation_id = "list_teams",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<TeamView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let listed = teams::list(call.actor()?, paging::request::<TeamId>(&call)?).await?;
    Ok(Json(Page::of(listed, |row: &TeamRow| row.id.to_string(), TeamView::from)).into_response())
}

/// Returns a team with its permissions.
#[utoipa::path(get, path = "/v1/teams/{id}", operation_id = "show_team",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path)),
    responses((status = 200, body = TeamView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let row = teams::show(call.actor()?, call.path("id")).await?;
    Ok(Json(TeamView::from(row)).into_response())
}

/// Changes a team. Neither its old nor its new permissions may exceed the caller's. Its members
/// have the new permissions from the next request on.
#[utoipa::path(patch, path = "/v1/teams/{id}", operation_id = "change_team",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path)),
    request_body = ChangeTeam,
    responses((status = 200, body = TeamView), (status = 409, body = ErrorBody)))]
async fn change(mut call: Call) -> HandlerResult {
    let body: ChangeTeam = call.body()?;
    call.only(&[])?;
    let row = teams::change(call.actor()?, call.path("id"), body.request()?).await?;
    Ok(Json(TeamView::from(row)).into_response())
}

/// Deletes a team. Its members lose its permissions from the next request on.
#[utoipa::path(delete, path = "/v1/teams/{id}", operation_id = "delete_team",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call) -> HandlerResult {
    call.only(&[])?;
    teams::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Lists the members of a team: persons and service accounts.
#[utoipa::path(get, path = "/v1/teams/{id}/members", operation_id = "list_team_members",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<TeamMemberView>)))]
async fn members(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let page = paging::request::<MemberId>(&call)?;
    let listed = teams::members(call.actor()?, call.path("id"), page).await?;
    let id = |listed: &TeamMember| listed.member.id.to_string();
    Ok(Json(Page::of(listed, id, TeamMemberView::from)).into_response())
}

/// Adds a person or a service account to a team. The team's permissions may not exceed the
/// caller's. Adding a member again has no effect.
#[utoipa::path(put, path = "/v1/teams/{id}/members/{member}", operation_id = "add_team_member",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path), ("member" = String, Path)),
    responses((status = 204), (status = 409, body = ErrorBody)))]
async fn add_member(call: Call) -> HandlerResult {
    call.only(&[])?;
    teams::add_member(call.actor()?, call.path("id"), call.path("member")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Removes a member from a team. The team's permissions may not exceed the caller's. Removing a
/// member again has no effect.
#[utoipa::path(delete, path = "/v1/teams/{id}/members/{member}", operation_id = "remove_team_member",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path), ("member" = String, Path)),
    responses((status = 204)))]
async fn remove_member(call: Call) -> HandlerResult {
    call.only(&[])?;
    teams::remove_member(call.actor()?, call.path("id"), call.path("member")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
