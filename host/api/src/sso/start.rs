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
use crate::operations::sso::{self, Beginning};
use crate::{Answer, portal};

/// Begins a sign-in by the organization's provider: sends the browser there, and binds what comes back to this browser.
/// `organization` is its name or id, needed where there are several; `return_to` the path of this host where the browser goes on;
/// `ticket` that of POST /v1/confirmations.
#[utoipa::path(get, path = "/v1/sso/start", operation_id = "start_sso_sign_in",
    extensions(("x-right" = json!(Anyone))),
    params(("organization" = Option<String>, Query),
        ("return_to" = Option<String>, Query),
        ("ticket" = Option<String>, Query)),
    responses((status = 303, description = "To the provider"),
        (status = 404, body = ErrorBody),
        (status = 424, body = ErrorBody)))]
pub(super) async fn start(call: Call) -> Answer {
    call.only(&["organization", "return_to", "ticket"])?;
    let return_to = call.query("return_to").map(str::to_owned);
    if return_to.as_deref().is_some_and(|path| !is_own_path(path)) {
        return Err(ApiError::invalid("`return_to` is a path of this host, as in /."));
    }
    let beginning = match call.query("ticket") {
        Some(ticket) => Beginning::Ticket(ticket),
        None => Beginning::Organization(call.query("organization")),
    };
    let begun = sso::start(call.origin(), beginning, return_to).await?;
    let cookie = portal::set(&call.app, FLOW, begun.flow.reveal(), FLOW_MS / 1000)?;
    let mut location = HeaderValue::try_from(begun.address).map_err(anyhow::Error::from)?;
    location.set_sensitive(true);
    Ok((StatusCode::SEE_OTHER, [(SET_COOKIE, cookie), (LOCATION, location)]).into_response())
}
