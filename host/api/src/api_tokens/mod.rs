//! Endpoints for API tokens, below `/v1/api-tokens`.

mod request;
mod view;

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::ApiTokenId;

use crate::HandlerResult;
use crate::call::Call;
use crate::credentials::{Rotate, WithSecret};
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error_response::ErrorBody;
use crate::operations::api_tokens::{self, OwnedApiToken};
use crate::operations::confirmations::Action;
use crate::paging::{self, Page};
use crate::scope::Family;
pub(crate) use request::CreateApiToken;
use view::ApiTokenView;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(create), routes!(list), routes!(rotate), routes!(revoke)]
}

/// Creates an API token, with which a program calls the management API for its owner. The owner is
/// the caller, or a service account whose permissions the caller holds as well. The permissions of
/// the owner and the scopes limit the token at every call.
#[utoipa::path(post, path = "/v1/api-tokens", operation_id = "create_api_token",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::None)),
        ("x-confirmation" = json!(Action::CreateApiToken))),
    request_body = CreateApiToken,
    responses((status = 201, body = WithSecret<ApiTokenView>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
    let body: CreateApiToken = call.body()?;
    call.only(&[])?;
    let request = body.request(call.now)?;
    let confirmation = call.confirmation(body.confirmation());
    let made = api_tokens::create(call.actor()?, &confirmation, request).await?;
    let view = WithSecret::new(made, |token| ApiTokenView::new(token, call.now));
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Lists the caller's API tokens, or with `owner` those of a member or service account, which
/// requires manage-members.
#[utoipa::path(get, path = "/v1/api-tokens", operation_id = "list_api_tokens",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::None))),
    params(("owner" = Option<String>, Query, description = "`me`, or the id of a member or service account"),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<ApiTokenView>), (status = 404, body = ErrorBody)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["owner", "limit", "after"])?;
    let page = paging::request::<ApiTokenId>(&call)?;
    let listed = api_tokens::list(call.actor()?, call.query("owner"), page).await?;
    let id = |token: &OwnedApiToken| token.row.id.to_string();
    Ok(Json(Page::of(listed, id, |token| ApiTokenView::new(token, call.now))).into_response())
}

/// Rotates an API token. The successor has the same owner, scopes and sensitive actions. An API
/// token can rotate itself and then keeps its expiry. With manage-members, the caller can also
/// rotate the tokens of service accounts that do not hold more than the caller.
#[utoipa::path(post, path = "/v1/api-tokens/{id}/rotation", operation_id = "rotate_api_token",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Any)),
        ("x-confirmation" = json!(Action::RotateToken))),
    params(("id" = String, Path)),
    request_body = Rotate,
    responses((status = 201, body = WithSecret<ApiTokenView>), (status = 409, body = ErrorBody)))]
async fn rotate(mut call: Call) -> HandlerResult {
    let body: Rotate = call.body()?;
    call.only(&[])?;
    let request = body.request(call.now)?;
    let confirmation = call.confirmation(body.confirmation());
    let made = api_tokens::rotate(call.actor()?, &confirmation, call.path("id"), request).await?;
    let view = WithSecret::new(made, |token| ApiTokenView::new(token, call.now));
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Revokes an API token: the caller's own, or with manage-members one of a member or service
/// account that does not hold more than the caller. It is refused from the next request on.
/// Revoking it again has no effect.
#[utoipa::path(delete, path = "/v1/api-tokens/{id}", operation_id = "revoke_api_token",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::None))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn revoke(call: Call) -> HandlerResult {
    call.only(&[])?;
    api_tokens::revoke(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
