//! Sign-in, sign-out, and the confirmation of who sits there.

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
use crate::operations::confirmations::{self, Action, Confirmed};
use crate::operations::sessions::{self, SESSION_MS, SignIn, SignedIn};
use crate::operations::sso;
use crate::paging::{self, Page};
use crate::{Answer, portal};

/// The endpoints of this module.
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
    /// The organization's name or id; needed where the e-mail address is in several.
    organization: Option<String>,
    /// Whether the session goes into a cookie that no script reads, for browsers.
    #[serde(default)]
    cookie: bool,
}

/// A new session.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionView {
    /// For `Authorization: Bearer`; absent where the session is in a cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// For `X-CSRF-Token`, beside the cookie.
    #[serde(skip_serializing_if = "Option::is_none")]
    csrf_token: Option<String>,
    expires_at: i64,
    member: MemberView,
}

/// A session's cookie, for `Set-Cookie`.
pub(crate) fn cookie(app: &App, signed_in: &SignedIn) -> Result<HeaderValue, ApiError> {
    portal::signed_in(app, &signed_in.secret, SESSION_MS / 1000)
}

/// A session in a cookie: 201 with its CSRF token, and the cookie beside it.
pub(crate) fn in_cookie(app: &App, signed_in: &SignedIn) -> Answer {
    let cookie = cookie(app, signed_in)?;
    let view = SessionView {
        session: None,
        csrf_token: Some(portal::csrf(&signed_in.secret)),
        expires_at: signed_in.expires_at,
        member: MemberView::from(&signed_in.member),
    };
    Ok((StatusCode::CREATED, [(SET_COOKIE, cookie)], Json(view)).into_response())
}

/// Signs in by e-mail and password.
#[utoipa::path(post, path = "/v1/sessions", operation_id = "sign_in",
    extensions(("x-right" = json!(Anyone))),
    request_body = SignInBody,
    responses((status = 201, body = SessionView), (status = 401, body = ErrorBody), (status = 429, body = ErrorBody)))]
async fn create(mut call: Call) -> Answer {
    let SignInBody { email, password, organization, cookie } = call.body()?;
    call.only(&[])?;
    if cookie && !portal::same_origin(&call.app, call.headers()) {
        return Err(ApiError::from(&catalogue::CSRF_REFUSED));
    }
    let sign_in = SignIn { email, password: Secret::new(password), organization };
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
    extensions(("x-right" = json!(HasSession))),
    responses((status = 204)))]
async fn delete(call: Call) -> Answer {
    call.only(&[])?;
    sessions::sign_out(call.actor()?).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, portal::signed_out(&call.app)?)]).into_response())
}

/// A session of the caller's.
#[derive(Serialize, ToSchema)]
pub(crate) struct OwnSessionView {
    id: String,
    created_at: i64,
    expires_at: i64,
    /// Whether it is the one of this call.
    current: bool,
}

/// Lists the caller's own sessions, the newest first: all at once.
#[utoipa::path(get, path = "/v1/sessions", operation_id = "list_sessions",
    extensions(("x-right" = json!(HasSession))),
    params(("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<OwnSessionView>)))]
async fn list(call: Call) -> Answer {
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
        current: row.secret_sha256 == *actor.session(),
    };
    let items = own.into_iter().skip(offset).take(limit).map(view).collect();
    Ok(Json(Page { items, next }).into_response())
}

/// Ends a session of the caller's own.
#[utoipa::path(delete, path = "/v1/sessions/{id}", operation_id = "end_session",
    extensions(("x-right" = json!(HasSession))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn end(call: Call) -> Answer {
    call.only(&[])?;
    sessions::end(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The password again, for one action; or a new sign-in by the organization's provider.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confirm {
    action: Action,
    /// Needed unless `sso`.
    password: Option<String>,
    /// Whether the provider is to ask again who sits there.
    #[serde(default)]
    sso: bool,
}

/// Where a browser confirms an action by a new sign-in.
#[derive(Serialize, ToSchema)]
pub(crate) struct SignInView {
    /// To be opened in the member's browser, with `&return_to=/path` behind it if that goes on somewhere.
    sign_in_url: String,
    expires_at: i64,
}

/// A confirmation.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConfirmationView {
    /// Good for one call.
    confirmation_token: String,
    expires_at: i64,
}

impl From<Confirmed> for ConfirmationView {
    fn from(Confirmed { token, expires_at }: Confirmed) -> ConfirmationView {
        ConfirmationView { confirmation_token: token.reveal().to_owned(), expires_at }
    }
}

/// Confirms the caller's identity for one action, once: by the password, or where `sso` is true by the address at which the
/// browser signs in anew; the confirmation is what that ends in.
#[utoipa::path(post, path = "/v1/confirmations", operation_id = "create_confirmation",
    extensions(("x-right" = json!(HasSession))),
    request_body = Confirm,
    responses((status = 201, body = ConfirmationView), (status = 202, body = SignInView), (status = 404, body = ErrorBody),
        (status = 429, body = ErrorBody)))]
async fn confirm(mut call: Call) -> Answer {
    let Confirm { action, password, sso } = call.body()?;
    call.only(&[])?;
    let actor = call.actor()?;
    match (password, sso) {
        (Some(password), false) => {
            let confirmed = confirmations::confirm_by_password(actor, action, Secret::new(password)).await?;
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
