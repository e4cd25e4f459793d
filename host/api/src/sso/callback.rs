//! `GET /v1/sso/callback`: what the provider sends back, and what comes of it: a session in a cookie, or a confirmation.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};

use super::FLOW;
use crate::call::Call;
use crate::endpoint::Right::Anyone;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::confirmations::Confirmed;
use crate::operations::sso::{self, Outcome, ProviderAnswer};
use crate::sessions::{ConfirmationView, SessionView, cookie, in_cookie};
use crate::{Answer, portal};

/// How long a member has to confirm an identity.
const LINK_SECONDS: i64 = 10 * 60;

/// The end of a sign-in. 201 with the session in a cookie, or the confirmation; 303 where the sign-in began with `return_to`: a
/// confirmation then stands behind `#`, where no server sees it. 303 to `/sign-in/link` where a member who has a password, or is known at another
/// provider, has to confirm that the identity is theirs. 401 `sso_refused` for all that is not to be believed.
#[utoipa::path(get, path = "/v1/sso/callback", operation_id = "finish_sso_sign_in",
    extensions(("x-right" = json!(Anyone))),
    params(("code" = Option<String>, Query),
        ("state" = Option<String>, Query),
        ("iss" = Option<String>, Query),
        ("error" = Option<String>, Query)),
    responses((status = 201, body = SessionView),
        (status = 303, description = "On to return_to"),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 424, body = ErrorBody)))]
pub(super) async fn callback(call: Call) -> Answer {
    // Providers send more than they are asked for, so nothing in the query is refused for being unknown.
    let answer = ProviderAnswer {
        state: call.query("state"),
        code: call.query("code"),
        issuer: call.query("iss"),
        failed: call.query("error").is_some(),
    };
    let sealed = portal::cookie(&call.app, call.headers(), FLOW);
    let finished = sso::finish(call.origin(), sealed, answer).await?;
    let mut answer = match (finished.outcome, finished.return_to.as_deref()) {
        (Outcome::Link(sealed), _) => {
            let mut answer = go_on(portal::LINK_PAGE)?;
            let cookie = portal::set(&call.app, portal::LINK, sealed.reveal(), LINK_SECONDS)?;
            answer.headers_mut().append(SET_COOKIE, cookie);
            answer
        }
        (Outcome::Session(signed_in), None) => in_cookie(&call.app, &signed_in)?,
        (Outcome::Session(signed_in), Some(path)) => {
            let mut answer = go_on(path)?;
            answer.headers_mut().append(SET_COOKIE, cookie(&call.app, &signed_in)?);
            answer
        }
        (Outcome::Confirmation { confirmed, page }, path) => confirmation(&call, confirmed, page, path)?,
    };
    answer.headers_mut().append(SET_COOKIE, portal::set(&call.app, FLOW, "", 0)?);
    Ok(answer)
}

/// A confirmation: in a cookie where a page of this host asked for it, else behind `#`, where no server sees it.
fn confirmation(
    call: &Call,
    confirmed: Confirmed,
    page: bool,
    return_to: Option<&str>,
) -> Result<Response, ApiError> {
    match return_to {
        Some(path) if page => {
            let mut answer = go_on(path)?;
            let cookie = portal::confirmed(&call.app, confirmed.token.reveal())?;
            answer.headers_mut().append(SET_COOKIE, cookie);
            Ok(answer)
        }
        Some(path) => go_on(&format!("{path}#confirmation_token={}", confirmed.token.reveal())),
        None => Ok((StatusCode::CREATED, Json(ConfirmationView::from(confirmed))).into_response()),
    }
}

fn go_on(path: &str) -> Result<Response, ApiError> {
    let mut location = HeaderValue::try_from(path).map_err(anyhow::Error::from)?;
    location.set_sensitive(true);
    Ok((StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response())
}
