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
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use maud::{Markup, html};
use packhouse_app::App;
use packhouse_identity::Secret;
use packhouse_store::OrganizationId;
use packhouse_wire::{catalogue, request_id};

use super::templates::{self, DAYS, Proof, alert, page};
use crate::body::CallBody;
use crate::call::address;
use crate::error::ApiError;
use crate::operations::confirmations::{self, Action, Confirmation};
use crate::operations::logins::{self, open};
use crate::operations::sessions::{self, SignIn};
use crate::operations::sso;
use crate::operations::{Actor, Judged, Origin};
use crate::portal::{self, Visitor};
use crate::sessions::cookie;

/// A day in ms.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The page's routes.
pub(crate) fn router() -> Router<Arc<App>> {
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
    let done = if form.contains_key("csrf") {
        confirm(Arc::clone(&app), &id, &parts, &form).await
    } else {
        sign_in(Arc::clone(&app), &id, &parts, &form).await
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

/// From where the page is asked for.
fn origin(app: Arc<App>, parts: &Parts) -> Origin {
    let address = address(parts, &app);
    Origin::new(app, address, request_id::next())
}

/// The page as it is for who sits there.
async fn view(
    app: Arc<App>,
    id: &str,
    parts: &Parts,
    wrong: Option<&ApiError>,
) -> Result<Response, ApiError> {
    let visitor = Visitor::of(&app, &parts.headers).await?;
    let origin = origin(app, parts);
    let login = open(&origin, id).await?.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))?;
    let status = wrong.map_or(StatusCode::OK, status);
    let alert = wrong.map(|error| alert(error.message())).unwrap_or_default();
    let Some(visitor) = visitor else {
        let provider = provider(&origin, login.organization, id).await?;
        let form = templates::sign_in(provider.as_deref());
        return Ok(page(status, "Sign in", &html! { (alert) (form) }));
    };
    let csrf = visitor.csrf();
    let actor = Actor::new(origin, visitor.caller, Judged::default());
    let offer = logins::offer(&actor, id).await?;
    if offer.is_finished() {
        return Err(ApiError::from(&catalogue::ALREADY_FINISHED));
    }
    let proof = proof(&actor, id, parts, wrong.is_some()).await?;
    let form = templates::confirmation(&offer, &actor.member().email, &csrf, &proof);
    Ok(page(status, "Confirm the sign-in", &html! { (alert) (form) }))
}

/// Where a member signs in by the organization's provider, and comes back to this page; none without a provider.
async fn provider(
    origin: &Origin,
    organization: OrganizationId,
    id: &str,
) -> Result<Option<String>, ApiError> {
    let settings = origin.app.store.sso_settings(organization).await?;
    let query = format!("organization={organization}&return_to={}", here(id));
    Ok(settings.map(|_| format!("{}/v1/sso/start?{query}", origin.app.api_url())))
}

/// How the member can confirm. What a form was refused with may be the confirmation, so that it is asked for anew.
async fn proof(actor: &Actor, id: &str, parts: &Parts, refused: bool) -> Result<Proof, ApiError> {
    if !refused && portal::confirmation(&actor.app, &parts.headers).is_some() {
        return Ok(Proof::AlreadyConfirmed);
    }
    let member = actor.member();
    let provider = match actor.app.store.sso_settings(member.organization).await? {
        Some(_) => {
            let action = Action::FinishNpmLogin.name();
            Some(sso::ticket(actor, member, action, Some(&here(id))).await?.url)
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
    let origin = origin(app, parts);
    let login = open(&origin, id).await?.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))?;
    let field = |name: &str| form.get(name).cloned().unwrap_or_default();
    let sign_in = SignIn {
        email: field("email"),
        password: Secret::new(field("password")),
        organization: Some(login.organization.to_string()),
    };
    let signed_in = sessions::sign_in(&origin, sign_in).await?;
    let mut answer = StatusCode::SEE_OTHER.into_response();
    let here = HeaderValue::try_from(parts.uri.path()).map_err(|error| ApiError::Internal(error.into()))?;
    answer.headers_mut().insert(LOCATION, here);
    answer.headers_mut().insert(SET_COOKIE, cookie(&origin.app, &signed_in)?);
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
    let actor = Actor::new(origin(app, parts), visitor.caller, Judged::default());
    let already = portal::confirmation(&actor.app, &parts.headers).filter(|_| !form.contains_key("password"));
    let token = match already {
        Some(token) => token,
        None => {
            let password = Secret::new(field("password"));
            confirmations::confirm_by_password(&actor, Action::FinishNpmLogin, password).await?.token
        }
    };
    let expires_at = Some(actor.now + days * DAY_MS);
    logins::finish(&actor, &Confirmation::Token(token), id, expires_at).await?;
    let mut done = page(StatusCode::OK, "Signed in", &templates::done());
    done.headers_mut().append(SET_COOKIE, portal::forget_confirmation(&actor.app)?);
    Ok(done)
}

/// What a page says that cannot show a form.
fn failed(error: ApiError) -> Response {
    if let ApiError::Internal(problem) = &error {
        tracing::error!(error = %format!("{problem:#}"), "a page failed");
    }
    let more: Markup = match error.code().map(|code| code.status) {
        Some(404) => html! {
            p { "This sign-in is unknown, or it was begun more than five minutes ago. Start it again." }
        },
        Some(409) => html! { p { "You can close this page and go back to the client." } },
        _ => Markup::default(),
    };
    page(status(&error), "Sign-in", &html! { (alert(error.message())) (more) })
}

fn status(error: &ApiError) -> StatusCode {
    let code = error.code().map_or(500, |code| code.status);
    StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
