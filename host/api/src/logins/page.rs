//! The page that a client's sign-in opens in a browser: plain HTML that works without a script. It asks who sits there, says what
//! will be granted, and asks for the password once more.
//!
//! Forms are judged as `portal` says: the first, which signs in, by where it comes from; the second by the session's CSRF token.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use packhouse_store::OrganizationId;
use serde_json::Value;

use super::super::body::CallBody;
use super::super::call::{Call, address};
use super::super::error::ApiError;
use super::super::portal::{self, Visitor};
use super::super::sessions::{self, Action};
use super::super::sso;
use super::look::{self, Proof, alert, page};
use super::{grant, offer, open};
use packhouse_app::App;
use packhouse_wire::catalogue;

/// A day in ms.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Lives of a token that are offered, in days; the first is chosen where nothing is said.
pub(super) const DAYS: [i64; 4] = [90, 7, 30, 365];
/// The page's routes.
pub fn router() -> Router<Arc<App>> {
    Router::new().route("/npm-login/{id}", get(show).post(submit))
}

async fn show(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match view(app, &id, &parts, None).await {
        Ok(page) => page,
        Err(error) => failed(error),
    }
}

async fn submit(State(app): State<Arc<App>>, Path(id): Path<String>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let share = app.bodies.share(address(&parts, &app));
    let mut body = CallBody::new(&parts.headers, body);
    let bytes = match body.form(&app.config.limits, share).await {
        Ok(bytes) => bytes,
        Err(error) => return failed(error),
    };
    let form: HashMap<String, String> = url::form_urlencoded::parse(&bytes).into_owned().collect();
    let done = match form.contains_key("csrf") {
        true => confirm(Arc::clone(&app), &id, &parts, &form).await,
        false => sign_in(Arc::clone(&app), &id, &parts, &form).await,
    };
    match done {
        Ok(page) => page,
        // The form again, with what was wrong with it; where the form cannot be shown, what was wrong alone.
        Err(error) => match view(app, &id, &parts, Some(&error)).await {
            Ok(page) => page,
            Err(other) => failed(other),
        },
    }
}

type Parts = http::request::Parts;

/// The page as it is for who sits there.
async fn view(
    app: Arc<App>,
    id: &str,
    parts: &Parts,
    wrong: Option<&ApiError>,
) -> Result<Response, ApiError> {
    let visitor = Visitor::of(&app, &parts.headers).await?;
    let csrf = visitor.as_ref().map(Visitor::csrf);
    let call = Call::of_page(app, parts, visitor.map(|visitor| visitor.caller));
    let login = open(&call, id).await?.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))?;
    let status = wrong.map_or(StatusCode::OK, status);
    let alert = wrong.map(|error| alert(&message(error))).unwrap_or_default();
    let Some(csrf) = csrf else {
        let provider = provider(&call, login.organization, id).await?;
        let form = look::sign_in(provider.as_deref());
        return Ok(page(status, "Sign in", &format!("{alert}{form}")));
    };
    let offer = offer(&call, id).await?;
    if offer.login.token.is_some() {
        return Err(ApiError::from(&catalogue::ALREADY_FINISHED));
    }
    let proof = proof(&call, id, wrong.is_some()).await?;
    let form = look::confirmation(&offer, &call.caller()?.member.email, &csrf, &proof);
    Ok(page(status, "Confirm the sign-in", &format!("{alert}{form}")))
}

/// Where a member signs in by the organization's provider, and comes back to this page; none without a provider.
async fn provider(call: &Call, organization: OrganizationId, id: &str) -> Result<Option<String>, ApiError> {
    let settings = call.app.store.sso_settings(organization).await?;
    let query = format!("organization={organization}&return_to={}", here(id));
    Ok(settings.map(|_| format!("{}/v1/sso/start?{query}", call.app.api_url())))
}

/// How the caller can confirm. What a form was refused with may be the confirmation, so that it is asked for anew.
async fn proof(call: &Call, id: &str, refused: bool) -> Result<Proof, ApiError> {
    if !refused && portal::confirmation(&call.app, call.headers()).is_some() {
        return Ok(Proof::Brought);
    }
    let member = &call.caller()?.member;
    let provider = match call.app.store.sso_settings(member.organization).await? {
        Some(_) => {
            let action = Action::FinishNpmLogin.name();
            Some(sso::ticket(call, member, action, Some(&here(id))).await?.0)
        }
        None => None,
    };
    Ok(Proof::Asked { password: !member.password_hash.is_empty(), provider })
}

fn here(id: &str) -> String {
    format!("/npm-login/{id}")
}

async fn sign_in(
    app: Arc<App>,
    id: &str,
    parts: &Parts,
    form: &HashMap<String, String>,
) -> Result<Response, ApiError> {
    if !portal::same_origin(&app, &parts.headers) {
        return Err(ApiError::from(&catalogue::CSRF_REFUSED));
    }
    let call = Call::of_page(Arc::clone(&app), parts, None);
    let login = open(&call, id).await?.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))?;
    let field = |name: &str| form.get(name).cloned().unwrap_or_default();
    let organization = login.organization.to_string();
    let signed_in = sessions::sign_in(&call, &field("email"), field("password"), Some(&organization)).await?;
    let cookie = signed_in.cookie(&app)?;
    let mut answer = StatusCode::SEE_OTHER.into_response();
    let here = HeaderValue::try_from(parts.uri.path()).map_err(|error| ApiError::Internal(error.into()))?;
    answer.headers_mut().insert(LOCATION, here);
    answer.headers_mut().insert(SET_COOKIE, cookie);
    Ok(answer)
}

async fn confirm(
    app: Arc<App>,
    id: &str,
    parts: &Parts,
    form: &HashMap<String, String>,
) -> Result<Response, ApiError> {
    let visitor = Visitor::of(&app, &parts.headers).await?;
    let visitor = visitor.ok_or_else(|| ApiError::from(&catalogue::NOT_SIGNED_IN))?;
    let field = |name: &str| form.get(name).cloned().unwrap_or_default();
    visitor.check(&app, &parts.headers, &field("csrf"))?;
    let days = field("days").parse::<i64>().ok().filter(|days| DAYS.contains(days));
    let days = days.ok_or_else(|| ApiError::invalid("Choose for how long the token is to work."))?;
    let member = visitor.caller.member.clone();
    let call = Call::of_page(app, parts, Some(visitor.caller));
    let action = Action::FinishNpmLogin;
    let brought = portal::confirmation(&call.app, call.headers()).filter(|_| !form.contains_key("password"));
    let token = match brought {
        Some(token) => token.reveal().to_owned(),
        None => {
            sessions::confirm_by_password(&call, &member, action, field("password")).await?.confirmation_token
        }
    };
    let token = Value::String(token);
    call.confirm(Some(&token), action.name(), &catalogue::STEP_UP_REQUIRED).await?;
    let offer = offer(&call, id).await?;
    grant(&call, id, &offer, Some(call.now + days * DAY_MS)).await?;
    let mut done = page(StatusCode::OK, "Signed in", look::DONE);
    done.headers_mut().append(SET_COOKIE, portal::forget_confirmation(&call.app)?);
    Ok(done)
}

/// What a page says that cannot show a form.
fn failed(error: ApiError) -> Response {
    if let ApiError::Internal(problem) = &error {
        tracing::error!(error = %format!("{problem:#}"), "a page failed");
    }
    let more = match error.code().map(|code| code.status) {
        Some(404) => {
            "<p>This sign-in is unknown, or it was begun more than five minutes ago. Start it again.</p>"
        }
        Some(409) => "<p>You can close this page and go back to the client.</p>",
        _ => "",
    };
    page(status(&error), "Sign-in", &format!("{}{more}", alert(&message(&error))))
}

fn message(error: &ApiError) -> String {
    match error {
        ApiError::Refused { message, .. } => message.clone(),
        ApiError::Internal(_) => catalogue::INTERNAL.sentence.to_owned(),
    }
}

fn status(error: &ApiError) -> StatusCode {
    let code = error.code().map_or(500, |code| code.status);
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
