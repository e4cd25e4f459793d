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
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION, SET_COOKIE};
use http::{HeaderValue, StatusCode};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::super::body::read_form;
use super::super::call::Call;
use super::super::error::ApiError;
use super::super::portal::{self, Visitor};
use super::super::sessions::{self, Action};
use super::{Offer, grant, offer, open};
use crate::app::App;
use crate::catalogue;

/// A day in ms.
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Lives of a token that are offered, in days; the first is chosen where nothing is said.
const DAYS: [i64; 4] = [90, 7, 30, 365];
/// The page's whole style; its hash is in the page's policy.
const STYLE: &str = "body{font:1rem/1.5 system-ui,sans-serif;margin:0;color:#1a1a1a;background:#fff}\
main{max-width:32rem;margin:0 auto;padding:2rem 1rem}h1{font-size:1.5rem}\
label{display:block;margin-top:1rem;font-weight:600}\
input,select{box-sizing:border-box;width:100%;padding:.5rem;font:inherit;border:1px solid #595959;border-radius:4px}\
button{margin-top:1.5rem;padding:.6rem 1.2rem;font:inherit;font-weight:600;color:#fff;background:#0b5394;border:0;border-radius:4px}\
:focus-visible{outline:3px solid #b45f06;outline-offset:2px}dt{font-weight:600}dd{margin:0 0 .75rem}\
[role=alert]{padding:.75rem;border-left:4px solid #990000;background:#fbeaea}";

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
    let bytes = match read_form(&parts.headers, body, &app.config.limits).await {
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
    if open(&call, id).await?.is_none() {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    }
    let status = wrong.map_or(StatusCode::OK, status);
    let alert = wrong.map(|error| alert(&message(error))).unwrap_or_default();
    let Some(csrf) = csrf else { return Ok(page(status, "Sign in", &format!("{alert}{SIGN_IN}"))) };
    let offer = offer(&call, id).await?;
    if offer.login.token.is_some() {
        return Err(ApiError::from(&catalogue::ALREADY_FINISHED));
    }
    let caller = call.caller()?.member.email.clone();
    Ok(page(status, "Confirm the sign-in", &format!("{alert}{}", confirmation(&offer, &caller, &csrf))))
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
    let confirmed = sessions::confirm_by_password(&call, &member, action, field("password")).await?;
    let token = Value::String(confirmed.confirmation_token);
    call.confirm(Some(&token), action.name(), &catalogue::STEP_UP_REQUIRED).await?;
    let offer = offer(&call, id).await?;
    grant(&call, id, &offer, Some(call.now + days * DAY_MS)).await?;
    Ok(page(StatusCode::OK, "Signed in", DONE))
}

const SIGN_IN: &str = "<p>A package client on your computer asks to be signed in. Sign in here to see what it asks for. \
    If you have not just started a sign-in, close this page.</p>\
    <form method=\"post\"><label for=\"email\">E-mail address</label>\
    <input id=\"email\" name=\"email\" type=\"email\" autocomplete=\"username\" required autofocus>\
    <label for=\"password\">Password</label>\
    <input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\" required>\
    <button type=\"submit\">Sign in</button></form>";

const DONE: &str =
    "<p role=\"status\">The client is signed in. You can close this page and go back to it.</p>";

fn confirmation(offer: &Offer, email: &str, csrf: &str) -> String {
    let may = match offer.scope.write {
        true => "read, publish and delete packages",
        false => "read packages",
    };
    let options: String =
        DAYS.iter().map(|days| format!("<option value=\"{days}\">{days} days</option>")).collect();
    format!(
        "<p>A package client asks for a token. If you have not just started a sign-in, close this page.</p>\
         <dl><dt>Repository</dt><dd>{}</dd><dt>The token may</dt><dd>{may}</dd><dt>It acts for</dt><dd>{}</dd></dl>\
         <form method=\"post\"><input type=\"hidden\" name=\"csrf\" value=\"{}\">\
         <label for=\"days\">The token works for</label><select id=\"days\" name=\"days\">{options}</select>\
         <label for=\"password\">Your password, to confirm</label>\
         <input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\" required autofocus>\
         <button type=\"submit\">Grant the token</button></form>",
        escaped(&offer.repository.name),
        escaped(email),
        escaped(csrf),
    )
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

fn alert(text: &str) -> String {
    format!("<p role=\"alert\">{}</p>", escaped(text))
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

fn page(status: StatusCode, title: &str, content: &str) -> Response {
    let text = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} - Packhouse</title><style>{STYLE}</style></head>\
         <body><main><h1>{title}</h1>{content}</main></body></html>"
    );
    let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    let mut answer = (status, text).into_response();
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    if let Ok(policy) = HeaderValue::try_from(policy) {
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

/// A text as it may stand in an element or a quoted attribute.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_page_is_markup_that_was_not_meant() {
        assert_eq!(escaped("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
        let answer = page(StatusCode::OK, "t", "");
        let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!STYLE.contains('<'), "it stands in an element");
    }
}
