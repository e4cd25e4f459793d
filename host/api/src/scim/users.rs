//! Endpoints of users, which are members.

use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::MemberRow;
use serde_json::{Map, Value};

use super::errors::ScimErrorBody;
use super::filter::AttributePath;
use super::lists::{ScimList, TextFilter, unsupported, window};
use super::projection::Projection;
use super::user::{ScimUser, UserAttributes, selects_work};
use super::{answer, base, created, patch};
use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::operations::scim::ListPart;
use crate::operations::scim::users::{self, UserFilter};
use crate::scope::Family;

pub(super) fn endpoints() -> Vec<Described> {
    vec![routes!(list), routes!(create), routes!(show), routes!(replace), routes!(change), routes!(remove)]
}

/// Lists users, or finds a user by a filter. The filter compares `id`, `userName`, `externalId` or
/// `emails.value` with a text by `eq`.
#[utoipa::path(get, path = "/scim/v2/Users", operation_id = "list_scim_users",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("filter" = Option<String>, Query, description = "For example `userName eq \"jane@example.com\"`"),
        ("startIndex" = Option<i64>, Query, description = "Number of the first user, from 1"),
        ("count" = Option<i64>, Query, description = "Maximum number of users: up to 200, 100 by default"),
        ("attributes" = Option<String>, Query, description = "Attributes to return, separated by commas"),
        ("excludedAttributes" = Option<String>, Query, description = "Attributes to leave out")),
    responses((status = 200, body = ScimList<ScimUser>, content_type = "application/scim+json")))]
async fn list(call: Call) -> HandlerResult {
    let (filter, window) = (filter(&call)?, window(&call)?);
    let ListPart { total, rows } = users::list(call.actor()?, filter, window).await?;
    let (base, projection) = (base(&call), Projection::of(&call));
    let resources = rows.into_iter().map(|row| projection.apply(&ScimUser::new(&base, row)));
    let resources = resources.collect::<Result<Vec<Value>, ApiError>>()?;
    answer(StatusCode::OK, &ScimList::new(window, total, resources))
}

fn filter(call: &Call) -> Result<Option<UserFilter>, ApiError> {
    let Some(TextFilter { path, text }) = TextFilter::of(call)? else { return Ok(None) };
    let is = |attribute: &str| path == AttributePath::of(attribute, None);
    let is_email = path.attribute == "emails"
        && matches!(path.sub.as_deref(), None | Some("value"))
        && selects_work(&path);
    match () {
        () if is("id") => Ok(Some(UserFilter::Id(text))),
        () if is("username") || is_email => Ok(Some(UserFilter::Email(text))),
        () if is("externalid") => Ok(Some(UserFilter::ExternalId(text))),
        () => Err(unsupported("Compare `id`, `userName`, `externalId` or `emails.value`.")),
    }
}

/// Creates a member without password and permissions. It signs in through the organization's
/// provider. Its e-mail address is the `userName`, or the primary one of `emails` if the `userName`
/// is not an address.
#[utoipa::path(post, path = "/scim/v2/Users", operation_id = "create_scim_user",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    request_body(description = "A user: `userName`, `name`, `displayName`, `emails`, `externalId`, `active`",
        content((Object = "application/scim+json"), (Object = "application/json"))),
    responses((status = 201, body = ScimUser, content_type = "application/scim+json"),
        (status = 409, body = ScimErrorBody, content_type = "application/scim+json")))]
async fn create(mut call: Call) -> HandlerResult {
    let body: Map<String, Value> = call.body()?;
    let change = UserAttributes::complete(&body)?.change()?;
    let row = users::create(call.actor()?, change).await?;
    let location = format!("{}/Users/{}", base(&call), row.id);
    created(&location, &view(&call, row)?)
}

/// Returns a member as a user.
#[utoipa::path(get, path = "/scim/v2/Users/{id}", operation_id = "show_scim_user",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("id" = String, Path),
        ("attributes" = Option<String>, Query, description = "Attributes to return, separated by commas"),
        ("excludedAttributes" = Option<String>, Query, description = "Attributes to leave out")),
    responses((status = 200, body = ScimUser, content_type = "application/scim+json")))]
async fn show(call: Call) -> HandlerResult {
    let row = users::show(call.actor()?, call.path("id")).await?;
    answer(StatusCode::OK, &view(&call, row)?)
}

/// Replaces a user. Absent attributes other than `userName` stay as they are. `active` suspends the
/// member, or ends that.
#[utoipa::path(put, path = "/scim/v2/Users/{id}", operation_id = "replace_scim_user",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("id" = String, Path)),
    request_body(description = "A complete user",
        content((Object = "application/scim+json"), (Object = "application/json"))),
    responses((status = 200, body = ScimUser, content_type = "application/scim+json"),
        (status = 409, body = ScimErrorBody, content_type = "application/scim+json")))]
async fn replace(mut call: Call) -> HandlerResult {
    let body: Map<String, Value> = call.body()?;
    let change = UserAttributes::complete(&body)?.change()?;
    let row = users::change(call.actor()?, call.path("id"), change).await?;
    answer(StatusCode::OK, &view(&call, row)?)
}

/// Changes a user by operations `add`, `replace` and `remove`.
#[utoipa::path(patch, path = "/scim/v2/Users/{id}", operation_id = "change_scim_user",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("id" = String, Path)),
    request_body(description = "Operations: `{Operations: [{op, path, value}]}`",
        content((Object = "application/scim+json"), (Object = "application/json"))),
    responses((status = 200, body = ScimUser, content_type = "application/scim+json"),
        (status = 409, body = ScimErrorBody, content_type = "application/scim+json")))]
async fn change(mut call: Call) -> HandlerResult {
    let body: Map<String, Value> = call.body()?;
    let change = UserAttributes::patched(&patch::operations(&body)?)?.change()?;
    let row = users::change(call.actor()?, call.path("id"), change).await?;
    answer(StatusCode::OK, &view(&call, row)?)
}

/// Deletes a member. Its sessions end and its tokens are revoked. The last owner stays: 409.
#[utoipa::path(delete, path = "/scim/v2/Users/{id}", operation_id = "delete_scim_user",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Scim))),
    params(("id" = String, Path)),
    responses((status = 204),
        (status = 409, body = ScimErrorBody, content_type = "application/scim+json")))]
async fn remove(call: Call) -> HandlerResult {
    users::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn view(call: &Call, row: MemberRow) -> Result<Value, ApiError> {
    Projection::of(call).apply(&ScimUser::new(&base(call), row))
}
