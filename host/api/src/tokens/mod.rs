//! Repository tokens and service keys: `/v1/tokens`.

mod request;
mod view;

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{PUBLISHER_BACKING, TokenId};

use crate::HandlerResult;
use crate::call::Call;
use crate::credentials::{Rotate, WithSecret};
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::confirmations::Action;
use crate::operations::loaded;
use crate::operations::tokens::{self, KeyKind, OwnedToken, TokenFilter};
use crate::paging::{self, Page};
use crate::scope::Family;
use packhouse_wire::catalogue;
pub(crate) use request::CreateToken;
pub(crate) use request::scope;
pub use request::{formats, from_json, is_always_there};
use view::TokenView;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(create), routes!(list), routes!(rotate), routes!(revoke)]
}

/// Creates a token, or with `backing` a service key. Creating, listing, rotating or revoking a
/// service key of a repository requires publish and delete there, or the right to manage the
/// repository. The caller must hold what the key may do. A key that the caller creates may publish
/// and delete at most the packages that the caller may.
#[utoipa::path(post, path = "/v1/tokens", operation_id = "create_token",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Tokens)),
        ("x-confirmation" = json!(Action::CreateToken))),
    request_body = CreateToken,
    responses((status = 201, body = WithSecret<TokenView>)))]
async fn create(mut call: Call) -> HandlerResult {
    let body: CreateToken = call.body()?;
    call.only(&[])?;
    let request = body.request(&call.app.runtime.own_tokens(), call.now);
    let request = request.map_err(|refused| loaded::unless_starting(&call.app, refused))?;
    let confirmation = call.confirmation(body.confirmation());
    let made = tokens::create(call.actor()?, &confirmation, request).await?;
    let view = WithSecret::new(made, |token| TokenView::new(token, call.now));
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Lists tokens.
#[utoipa::path(get, path = "/v1/tokens", operation_id = "list_tokens",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Tokens))),
    params(("member" = Option<String>, Query, description = "E-mail address of another member"),
        ("backing" = Option<String>, Query, description = "`org` or `repo` for service keys; `publisher` \
            for ID tokens used as credentials and for tokens that were issued in exchange for one"),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<TokenView>), (status = 404, body = ErrorBody)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["member", "backing", "limit", "after"])?;
    let page = paging::request::<TokenId>(&call)?;
    let listed = tokens::list(call.actor()?, filter(&call)?, page).await?;
    let id = |token: &OwnedToken| token.row.id.to_string();
    Ok(Json(Page::of(listed, id, |token| TokenView::new(token, call.now))).into_response())
}

fn filter(call: &Call) -> Result<TokenFilter, ApiError> {
    match (call.query("member"), call.query("backing")) {
        (Some(_), Some(_)) => Err(ApiError::invalid("`member` and `backing` cannot be used together.")),
        (Some(name), None) if name.trim().is_empty() => Err(ApiError::from(&catalogue::INVALID_USER_ID)),
        (Some(name), None) => Ok(TokenFilter::Member(name.to_owned())),
        (None, Some("org")) => Ok(TokenFilter::Keys(KeyKind::Organization)),
        (None, Some("repo")) => Ok(TokenFilter::Keys(KeyKind::Repository)),
        (None, Some(PUBLISHER_BACKING)) => Ok(TokenFilter::Keys(KeyKind::Publisher)),
        (None, Some(_)) => Err(ApiError::invalid("`backing` must be `org`, `repo` or `publisher`.")),
        (None, None) => Ok(TokenFilter::Own),
    }
}

/// Rotates a token. The successor reaches the same repositories and packages.
#[utoipa::path(post, path = "/v1/tokens/{id}/rotation", operation_id = "rotate_token",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Tokens)),
        ("x-confirmation" = json!(Action::RotateToken))),
    params(("id" = String, Path)),
    request_body = Rotate,
    responses((status = 201, body = WithSecret<TokenView>), (status = 409, body = ErrorBody)))]
async fn rotate(mut call: Call) -> HandlerResult {
    let body: Rotate = call.body()?;
    call.only(&[])?;
    let request = body.request(call.now)?;
    let confirmation = call.confirmation(body.confirmation());
    let made = tokens::rotate(call.actor()?, &confirmation, call.path("id"), request).await?;
    let view = WithSecret::new(made, |token| TokenView::new(token, call.now));
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Revokes a token. It is refused from the next request on. Revoking it again has no effect.
#[utoipa::path(delete, path = "/v1/tokens/{id}", operation_id = "revoke_token",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Tokens))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn revoke(call: Call) -> HandlerResult {
    call.only(&[])?;
    tokens::revoke(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
