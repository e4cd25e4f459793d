//! Sign-in, sign-out, and confirmations of the caller's identity.

use axum::Json;
use axum::response::IntoResponse;
use http::header::SET_COOKIE;
use http::{HeaderValue, StatusCode};
use packhouse_app::App;
use packhouse_identity::Secret;
use packhouse_store::SessionRow;
use packhouse_wire::catalogue;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::{Anyone, SignedIn as HasSession};
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::members::MemberView;
use crate::operations::confirmations::{self, Action, NewConfirmation};
use crate::operations::sessions::{self, SESSION_MS, SignIn, SignedIn};
use crate::operations::sso;
use crate::paging::{self, Page};
use crate::scope::Family;
use crate::{HandlerResult, portal};

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(create), routes!(list), routes!(delete), routes!(end), routes!(confirm)]
}

/// E-mail and password.
#[derive(Deserialize, ToSchema)]
#[schema(as = SignIn)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignInBody {
    email: String,
    password: String,
    /// Code of the member's authenticator app, or a recovery code. Required if the member has a
    /// second factor.
    code: Option<String>,
    /// Name or id of the organization; required if the e-mail address belongs to several.
    organization: Option<String>,
    /// True to get the session in a cookie that scripts cannot read, for browsers.
    #[serde(default)]
    cookie: bool,
}

/// A new session.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionView {
    /// Session for `Authorization: Bearer`; absent if it is in a cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// Token for the header `X-CSRF-Token`, required together with the cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    csrf_token: Option<String>,
    expires_at: i64,
    member: MemberView,
}

/// Cookie of a session, for `Set-Cookie`.
pub(crate) fn cookie(app: &App, signed_in: &SignedIn) -> Result<HeaderValue, ApiError> {
    portal::signed_in(app, &signed_in.secret, SESSION_MS / 1000)
}

/// Response with a session in a cookie: 201 with its CSRF token.
pub(crate) fn in_cookie(app: &App, signed_in: &SignedIn) -> HandlerResult {
    let cookie = cookie(app, signed_in)?;
    let view = SessionView {
        session: None,
        csrf_token: Some(portal::csrf(&signed_in.secret)),
        expires_at: signed_in.expires_at,
        member: MemberView::from(&signed_in.member),
    };
    Ok((StatusCode::CREATED, [(SET_COOKIE, cookie)], Json(view)).into_response())
}

/// Signs in with an e-mail address and a password, and with a code if the member has a second
/// factor.
#[utoipa::path(post, path = "/v1/sessions", operation_id = "sign_in",
    extensions(("x-right" = json!(Anyone)), ("x-scope" = json!(Family::None))),
    request_body = SignInBody,
    responses((status = 201, body = SessionView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 429, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
    let SignInBody { email, password, code, organization, cookie } = call.body()?;
    call.only(&[])?;
    if cookie && !portal::same_origin(&call.app, call.headers()) {
        return Err(ApiError::from(&catalogue::CSRF_REFUSED));
    }
    let (password, code) = (Secret::new(password), code.map(Secret::new));
    let sign_in = SignIn { email, password, code, organization };
    let signed_in = sessions::sign_in(call.origin(), sign_in).await?;
    if cookie {
        return in_cookie(&call.app, &signed_in);
    }
    let SignedIn { secret, expires_at, member } = signed_in;
    let session = Some(secret.reveal().to_owned());
    let view = SessionView { session, csrf_token: None, expires_at, member: MemberView::from(&member) };
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Signs out.
#[utoipa::path(delete, path = "/v1/sessions/current", operation_id = "sign_out",
    extensions(("x-right" = json!(HasSession)), ("x-scope" = json!(Family::None))),
    responses((status = 204)))]
async fn delete(call: Call) -> HandlerResult {
    call.only(&[])?;
    sessions::sign_out(call.actor()?).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, portal::signed_out(&call.app)?)]).into_response())
}

/// A session of the caller.
#[derive(Serialize, ToSchema)]
pub(crate) struct OwnSessionView {
    id: String,
    created_at: i64,
    expires_at: i64,
    /// True for the session of this request.
    current: bool,
}

/// Lists all of the caller's own sessions, newest first, without paging.
#[utoipa::path(get, path = "/v1/sessions", operation_id = "list_sessions",
    extensions(("x-right" = json!(HasSession)), ("x-scope" = json!(Family::None))),
    params(("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<OwnSessionView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let limit = paging::limit(&call)? as usize;
    let offset = paging::after::<usize>(&call)?.unwrap_or_default();
    let actor = call.actor()?;
    let own = sessions::list(actor).await?;
    let end = offset.saturating_add(limit);
    let next = (end < own.len()).then(|| end.to_string());
    let view = |row: SessionRow| OwnSessionView {
        id: sessions::session_id(&row.secret_sha256),
        created_at: row.created_at,
        expires_at: row.expires_at,
        current: actor.session() == Some(&row.secret_sha256),
    };
    let items = own.into_iter().skip(offset).take(limit).map(view).collect();
    Ok(Json(Page { items, next }).into_response())
}

/// Ends one of the caller's own sessions.
#[utoipa::path(delete, path = "/v1/sessions/{id}", operation_id = "end_session",
    extensions(("x-right" = json!(HasSession)), ("x-scope" = json!(Family::None))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn end(call: Call) -> HandlerResult {
    call.only(&[])?;
    sessions::end(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Confirmation of one action by the password, or by a new sign-in through the organization's
/// provider.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confirm {
    action: Action,
    /// Required unless `sso` is true.
    password: Option<String>,
    /// Code of the caller's authenticator app, or a recovery code. Required with `password` if the
    /// caller has a second factor.
    code: Option<String>,
    /// True to confirm by a new sign-in at the provider.
    #[serde(default)]
    sso: bool,
}

/// Address at which a browser confirms an action by a new sign-in.
#[derive(Serialize, ToSchema)]
pub(crate) struct SignInView {
    /// Address to open in the member's browser; append `&return_to=/path` to continue there
    /// afterwards.
    sign_in_url: String,
    expires_at: i64,
}

/// A confirmation.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConfirmationView {
    /// Token for the confirmed action. It works only once for `create_token`, `rotate_token`,
    /// `finish_npm_login`, `manage_access_keys` and `set_upstream_credentials`.
    confirmation_token: String,
    expires_at: i64,
}

impl From<NewConfirmation> for ConfirmationView {
    fn from(NewConfirmation { token, expires_at }: NewConfirmation) -> ConfirmationView {
        ConfirmationView { confirmation_token: token.reveal().to_owned(), expires_at }
    }
}

/// Confirms the caller's identity for one action. The password confirms it directly; if `sso` is
/// true, the response has the address at which the browser signs in again to get the confirmation.
#[utoipa::path(post, path = "/v1/confirmations", operation_id = "create_confirmation",
    extensions(("x-right" = json!(HasSession)), ("x-scope" = json!(Family::None))),
    request_body = Confirm,
    responses((status = 201, body = ConfirmationView), (status = 202, body = SignInView), (status = 404, body = ErrorBody),
        (status = 429, body = ErrorBody)))]
async fn confirm(mut call: Call) -> HandlerResult {
    let Confirm { action, password, code, sso } = call.body()?;
    call.only(&[])?;
    let actor = call.actor()?;
    match (password, sso) {
        (Some(password), false) => {
            let (password, code) = (Secret::new(password), code.map(Secret::new));
            let confirmed = confirmations::confirm_by_password(actor, action, password, code).await?;
            Ok((StatusCode::CREATED, Json(ConfirmationView::from(confirmed))).into_response())
        }
        (None, true) => {
            let address = sso::ticket(actor, actor.member(), action.name(), None).await?;
            let view = SignInView { sign_in_url: address.url, expires_at: address.expires_at };
            Ok((StatusCode::ACCEPTED, Json(view)).into_response())
        }
        _ => Err(ApiError::invalid("Send the `password`, or `\"sso\": true`.")),
    }
}
