//! `GET /v1/sso/callback`: handles the provider's response. The result is a session in a cookie, or
//! a confirmation.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};

use super::FLOW;
use crate::call::Call;
use crate::endpoint::Right::Anyone;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::confirmations::NewConfirmation;
use crate::operations::sso::{self, ProviderAnswer, SsoOutcome};
use crate::scope::Family;
use crate::sessions::{ConfirmationView, SessionView, cookie, in_cookie};
use crate::{HandlerResult, portal};

/// Time that a member has to confirm an identity.
const LINK_SECONDS: i64 = 10 * 60;

/// Completes a sign-in. 201 with the session in a cookie, or with the confirmation. 303 if the
/// sign-in began with `return_to`; a confirmation is then in the URL fragment, which servers do not
/// see. 303 to `/sign-in/link` if a member with a password, or with an account at another provider,
/// must confirm that the identity is theirs. 401 `sso_refused` if the response cannot be trusted.
#[utoipa::path(get, path = "/v1/sso/callback", operation_id = "finish_sso_sign_in",
    extensions(("x-right" = json!(Anyone)), ("x-scope" = json!(Family::None))),
    params(("code" = Option<String>, Query),
        ("state" = Option<String>, Query),
        ("iss" = Option<String>, Query),
        ("error" = Option<String>, Query)),
    responses((status = 201, body = SessionView),
        (status = 303, description = "Redirects to `return_to`"),
        (status = 401, body = ErrorBody),
        (status = 404, body = ErrorBody),
        (status = 424, body = ErrorBody)))]
pub(super) async fn callback(call: Call) -> HandlerResult {
    // Providers send additional parameters, so unknown ones are not refused.
    let answer = ProviderAnswer {
        state: call.query("state"),
        code: call.query("code"),
        issuer: call.query("iss"),
        failed: call.query("error").is_some(),
    };
    let sealed = portal::cookie(&call.app, call.headers(), FLOW);
    let finished = sso::finish(call.origin(), sealed, answer).await?;
    let mut answer = match (finished.outcome, finished.return_to.as_deref()) {
        (SsoOutcome::Link(sealed), _) => {
            let mut answer = go_on(portal::LINK_PAGE)?;
            let cookie = portal::set(&call.app, portal::LINK, sealed.reveal(), LINK_SECONDS)?;
            answer.headers_mut().append(SET_COOKIE, cookie);
            answer
        }
        (SsoOutcome::Session(signed_in), None) => in_cookie(&call.app, &signed_in)?,
        (SsoOutcome::Session(signed_in), Some(path)) => {
            let mut answer = go_on(path)?;
            answer.headers_mut().append(SET_COOKIE, cookie(&call.app, &signed_in)?);
            answer
        }
        (SsoOutcome::Confirmation { confirmed, page }, path) => confirmation(&call, confirmed, page, path)?,
    };
    answer.headers_mut().append(SET_COOKIE, portal::set(&call.app, FLOW, "", 0)?);
    Ok(answer)
}

/// Response with a confirmation: in a cookie if a page of this host requested it, otherwise in the
/// URL fragment, which servers do not see.
fn confirmation(
    call: &Call,
    confirmed: NewConfirmation,
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
