//! `GET /v1/sso/start`: sends a browser to the provider.

use axum::response::IntoResponse;
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use packhouse_app::sso::{FLOW_MS, is_own_path};

use super::FLOW;
use crate::call::Call;
use crate::endpoint::Right::Anyone;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::sso::{self, SignInStart};
use crate::scope::Family;
use crate::{HandlerResult, portal};

/// Starts a sign-in through the organization's provider: redirects the browser there and binds the
/// provider's response to this browser. `organization` is its name or id, required if there are
/// several; `return_to` is the path on this host to continue at; `ticket` comes from POST
/// /v1/confirmations.
#[utoipa::path(get, path = "/v1/sso/start", operation_id = "start_sso_sign_in",
    extensions(("x-right" = json!(Anyone)), ("x-scope" = json!(Family::None))),
    params(("organization" = Option<String>, Query),
        ("return_to" = Option<String>, Query),
        ("ticket" = Option<String>, Query)),
    responses((status = 303, description = "Redirects to the provider"),
        (status = 404, body = ErrorBody),
        (status = 424, body = ErrorBody)))]
pub(super) async fn start(call: Call) -> HandlerResult {
    call.only(&["organization", "return_to", "ticket"])?;
    let return_to = call.query("return_to").map(str::to_owned);
    if return_to.as_deref().is_some_and(|path| !is_own_path(path)) {
        return Err(ApiError::invalid("`return_to` must be a path on this host, for example /."));
    }
    let beginning = match call.query("ticket") {
        Some(ticket) => SignInStart::Ticket(ticket),
        None => SignInStart::Organization(call.query("organization")),
    };
    let begun = sso::start(call.origin(), beginning, return_to).await?;
    let cookie = portal::set(&call.app, FLOW, begun.flow.reveal(), FLOW_MS / 1000)?;
    let mut location = HeaderValue::try_from(begun.address).map_err(anyhow::Error::from)?;
    location.set_sensitive(true);
    Ok((StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, location)]).into_response())
}
