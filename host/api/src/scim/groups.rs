//! Endpoints of groups, which are teams.

use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::TeamRow;
use serde_json::{Map, Value};

use super::errors::ScimErrorBody;
use super::filter::AttributePath;
use super::group::{self, ScimGroup};
use super::lists::{ScimList, TextFilter, unsupported, window};
use super::projection::Projection;
use super::{answer, base, created, patch};
use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::operations::scim::ListPart;
use crate::operations::scim::groups::{self, GroupFilter};
use crate::scope::Family;

pub(super) fn endpoints() -> Vec<Described> {
    vec![routes!(list), routes!(create), routes!(show), routes!(replace), routes!(change), routes!(remove)]
}

/// Lists groups, or finds a group by a filter. The filter compares `id`, `displayName` or
/// `externalId` with a text by `eq`.
#[utoipa::path(get, path = "/scim/v2/Groups", operation_id = "list_scim_groups",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("filter" = Option<String>, Query, description = "For example `displayName eq \"Release\"`"),
        ("startIndex" = Option<i64>, Query, description = "Number of the first group, from 1"),
        ("count" = Option<i64>, Query, description = "Maximum number of groups: up to 200, 100 by default"),
        ("attributes" = Option<String>, Query, description = "Attributes to return, separated by commas"),
        ("excludedAttributes" = Option<String>, Query, description = "Attributes to leave out, such as `members`")),
    responses((status = 200, body = ScimList<ScimGroup>, content_type = "application/scim+json")))]
async fn list(call: Call) -> HandlerResult {
    let (filter, window) = (filter(&call)?, window(&call)?);
    let ListPart { total, rows } = groups::list(call.actor()?, filter, window).await?;
    let mut resources = Vec::with_capacity(rows.len());
    for team in rows {
        resources.push(view(&call, team).await?);
    }
    answer(StatusCode::OK, &ScimList::new(window, total, resources))
}

fn filter(call: &Call) -> Result<Option<GroupFilter>, ApiError> {
    let Some(TextFilter { path, text }) = TextFilter::of(call)? else { return Ok(None) };
    let is = |attribute: &str| path == AttributePath::of(attribute, None);
    match () {
        () if is("id") => Ok(Some(GroupFilter::Id(text))),
        () if is("displayname") => Ok(Some(GroupFilter::Name(text))),
        () if is("externalid") => Ok(Some(GroupFilter::ExternalId(text))),
        () => Err(unsupported("Compare `id`, `displayName` or `externalId`.")),
    }
}

/// Creates a team without permissions, which somebody with manage-members then gives it.
#[utoipa::path(post, path = "/scim/v2/Groups", operation_id = "create_scim_group",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    request_body(description = "A group: `displayName`, `externalId`, `members`",
        content((Object = "application/scim+json"), (Object = "application/json"))),
    responses((status = 201, body = ScimGroup, content_type = "application/scim+json"),
        (status = 409, body = ScimErrorBody, content_type = "application/scim+json")))]
async fn create(mut call: Call) -> HandlerResult {
    let body: Map<String, Value> = call.body()?;
    let team = groups::create(call.actor()?, group::complete(&body)?).await?;
    let location = format!("{}/Groups/{}", base(&call), team.id);
    created(&location, &view(&call, team).await?)
}

/// Returns a team as a group.
#[utoipa::path(get, path = "/scim/v2/Groups/{id}", operation_id = "show_scim_group",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("id" = String, Path),
        ("attributes" = Option<String>, Query, description = "Attributes to return, separated by commas"),
        ("excludedAttributes" = Option<String>, Query, description = "Attributes to leave out, such as `members`")),
    responses((status = 200, body = ScimGroup, content_type = "application/scim+json")))]
async fn show(call: Call) -> HandlerResult {
    let team = groups::show(call.actor()?, call.path("id")).await?;
    answer(StatusCode::OK, &view(&call, team).await?)
}

/// Replaces a group. Absent attributes other than `displayName` stay as they are, and so do members
/// that were added by hand. The token's owner must hold the permissions of the team.
#[utoipa::path(put, path = "/scim/v2/Groups/{id}", operation_id = "replace_scim_group",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("id" = String, Path)),
    request_body(description = "A complete group",
        content((Object = "application/scim+json"), (Object = "application/json"))),
    responses((status = 200, body = ScimGroup, content_type = "application/scim+json"),
        (status = 409, body = ScimErrorBody, content_type = "application/scim+json")))]
async fn replace(mut call: Call) -> HandlerResult {
    let body: Map<String, Value> = call.body()?;
    let team = groups::change(call.actor()?, call.path("id"), group::complete(&body)?).await?;
    answer(StatusCode::OK, &view(&call, team).await?)
}

/// Changes a group by operations `add`, `replace` and `remove`. The token's owner must hold the
/// permissions of the team.
#[utoipa::path(patch, path = "/scim/v2/Groups/{id}", operation_id = "change_scim_group",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("id" = String, Path)),
    request_body(description = "Operations: `{Operations: [{op, path, value}]}`",
        content((Object = "application/scim+json"), (Object = "application/json"))),
    responses((status = 200, body = ScimGroup, content_type = "application/scim+json"),
        (status = 409, body = ScimErrorBody, content_type = "application/scim+json")))]
async fn change(mut call: Call) -> HandlerResult {
    let body: Map<String, Value> = call.body()?;
    let change = group::patched(&patch::operations(&body)?)?;
    let team = groups::change(call.actor()?, call.path("id"), change).await?;
    answer(StatusCode::OK, &view(&call, team).await?)
}

/// Deletes a team, whose members lose its permissions.
#[utoipa::path(delete, path = "/scim/v2/Groups/{id}", operation_id = "delete_scim_group",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call) -> HandlerResult {
    groups::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Reads the members of a team only if the client does not exclude them.
async fn view(call: &Call, team: TeamRow) -> Result<Value, ApiError> {
    let projection = Projection::of(call);
    let members = if projection.includes("members") {
        Some(groups::members(call.actor()?, &team).await?)
    } else {
        None
    };
    projection.apply(&ScimGroup::new(&base(call), team, members))
}
