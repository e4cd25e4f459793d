//! Sign-in, sign-out, and the confirmation of who sits there.

use axum::Json;
use axum::response::IntoResponse;
use http::header::SET_COOKIE;
use http::{HeaderValue, StatusCode};
use packhouse_store::{ConfirmationRow, MemberRow, Refusal, SessionRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Answer;
use super::call::Call;
use super::error::{ApiError, ErrorBody};
use super::members::MemberView;
use super::portal;
use packhouse_app::App;
use packhouse_app::sso;
use packhouse_config::client_network::ClientNetwork;
use packhouse_identity::{self as identity, Attempt, Minted, Outcome, Secret};
use packhouse_wire::catalogue;

/// How long a session lives: 12 hours in ms.
const SESSION_MS: i64 = 12 * 60 * 60 * 1000;
/// How long a confirmation lives: 5 minutes in ms.
const CONFIRMATION_MS: i64 = 5 * 60 * 1000;

/// E-mail and password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
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

/// Somebody who has just signed in.
#[derive(Debug)]
pub(crate) struct SignedIn {
    /// The session's secret.
    pub secret: Secret,
    /// When it ends, in ms since 1970.
    pub expires_at: i64,
    /// Who it is.
    pub member: MemberRow,
}

impl SignedIn {
    /// The session in a cookie, for `Set-Cookie`.
    pub(crate) fn cookie(&self, app: &App) -> Result<HeaderValue, ApiError> {
        portal::signed_in(app, &self.secret, SESSION_MS / 1000)
    }

    /// The session in a cookie: 201 with its CSRF token, and the cookie beside it.
    pub(crate) fn into_cookie(self, app: &App) -> Answer {
        let cookie = self.cookie(app)?;
        let view = SessionView {
            session: None,
            csrf_token: Some(portal::csrf(&self.secret)),
            expires_at: self.expires_at,
            member: MemberView::from(&self.member),
        };
        Ok((StatusCode::CREATED, [(SET_COOKIE, cookie)], Json(view)).into_response())
    }
}

/// Signs in by e-mail and password.
#[utoipa::path(post, operation_id = "sign_in",
    path = "/v1/sessions", request_body = SignIn, security(()), responses(
    (status = 201, body = SessionView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 429, body = ErrorBody)))]
pub(crate) async fn create(mut call: Call) -> Answer {
    let wanted: SignIn = call.body()?;
    call.only(&[])?;
    if wanted.cookie && !portal::same_origin(&call.app, call.headers()) {
        return Err(ApiError::from(&catalogue::CSRF_REFUSED));
    }
    let cookie = wanted.cookie;
    let signed_in = sign_in(&call, &wanted.email, wanted.password, wanted.organization.as_deref()).await?;
    if cookie {
        return signed_in.into_cookie(&call.app);
    }
    let SignedIn { secret, expires_at, member } = signed_in;
    let session = Some(secret.reveal().to_owned());
    let view = SessionView { session, csrf_token: None, expires_at, member: MemberView::from(&member) };
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Signs in by e-mail and password, in the organization named where there are several. 401 `invalid_credentials`, 429, or 400
/// `organization_required`.
pub(crate) async fn sign_in(
    call: &Call,
    email: &str,
    password: String,
    organization: Option<&str>,
) -> Result<SignedIn, ApiError> {
    let email = identity::email(email).unwrap_or_default();
    let known = call.app.store.members_signing_in(&email).await?;
    let known: Vec<MemberRow> = known
        .into_iter()
        .filter(|(row, settings)| sso::allows_password(settings.as_deref(), row))
        .map(|(row, _)| row)
        .collect();
    let password = Secret::new(password);
    let right = check(call, &email, password, &known).await;
    let members = match right {
        Ok(members) => members,
        Err(error) => {
            refused(call, &error, &known);
            return Err(error);
        }
    };
    let member = choose(call, members, organization).await?;
    begin(call, member).await
}

/// Begins a session of a member who has shown who they are.
pub(crate) async fn begin(call: &Call, member: MemberRow) -> Result<SignedIn, ApiError> {
    let Minted { secret, sha256 } = identity::mint();
    let expires_at = call.now + SESSION_MS;
    let credential = super::call::credential(&sha256);
    let event = call.event_of(member.organization, &member.email, &credential, "sign_in", &member.email);
    let row = SessionRow {
        secret_sha256: sha256,
        organization: member.organization,
        member: member.id,
        created_at: call.now,
        expires_at,
    };
    call.app.store.create_session(row, Some(event)).await?;
    Ok(SignedIn { secret, expires_at, member })
}

/// Those of the members whose password it is; 401 for none, 429 when it was tried too often.
async fn check(
    call: &Call,
    email: &str,
    password: Secret,
    known: &[MemberRow],
) -> Result<Vec<MemberRow>, ApiError> {
    let attempt = Attempt {
        account: email.to_owned(),
        network: ClientNetwork::of(call.address),
        password,
        hashes: known.iter().map(|member| member.password_hash.clone()).collect(),
    };
    match call.app.sign_ins.attempt(attempt).await {
        Outcome::Right(right) => {
            let right = known.iter().zip(right).filter(|(_, right)| *right);
            Ok(right.map(|(member, _)| member.clone()).collect())
        }
        Outcome::Wrong => Err(ApiError::from(&catalogue::INVALID_CREDENTIALS)),
        Outcome::HeldUp(seconds) => Err(ApiError::too_many(seconds)),
        Outcome::Failed => Err(ApiError::from(&catalogue::INTERNAL)),
    }
}

/// The member of the organization that was named, or the only one.
async fn choose(call: &Call, members: Vec<MemberRow>, named: Option<&str>) -> Result<MemberRow, ApiError> {
    let organization = match named {
        None => None,
        Some(named) => {
            let all = call.app.store.organizations().await?;
            let found = all.into_iter().find(|row| row.name == named || row.id.to_string() == named);
            Some(found.ok_or(&catalogue::INVALID_CREDENTIALS)?.id)
        }
    };
    let mut members = members.into_iter().filter(|row| organization.is_none_or(|id| row.organization == id));
    match (members.next(), members.next()) {
        (Some(member), None) => Ok(member),
        (Some(_), Some(_)) => Err(ApiError::from(&catalogue::ORGANIZATION_REQUIRED)),
        (None, _) => Err(ApiError::from(&catalogue::INVALID_CREDENTIALS)),
    }
}

/// Counts a refused attempt in each organization that has the member; in none where there is no such member.
fn refused(call: &Call, error: &ApiError, known: &[MemberRow]) {
    let Some(code) = error.code() else { return };
    for member in known {
        let refusal = Refusal {
            organization: Some(member.organization),
            actor: member.email.clone(),
            credential: format!("member:{}", member.id),
            address: call.address.to_string(),
            code: code.code.to_owned(),
        };
        call.app.store.refused(refusal, call.now);
    }
}

/// Signs out.
#[utoipa::path(delete, operation_id = "sign_out", path = "/v1/sessions/current",
    responses((status = 204), (status = 401, body = ErrorBody)))]
pub(crate) async fn delete(call: Call) -> Answer {
    call.only(&[])?;
    let caller = call.judge_permission()?;
    let event = call.event("sign_out", caller.member.email.clone())?;
    call.app.store.delete_session(&caller.session, event).await?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, portal::signed_out(&call.app)?)]).into_response())
}

/// What can be confirmed.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Action {
    /// POST /v1/tokens.
    CreateToken,
    /// POST /v1/tokens/{id}/rotation.
    RotateToken,
    /// POST /v1/npm-logins/{id}/finish.
    FinishNpmLogin,
    /// A subscriber's access keys.
    ManageAccessKeys,
    /// A proxy's upstream credentials.
    SetUpstreamCredentials,
}

impl Action {
    /// As it is kept with the confirmation.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Action::CreateToken => "create_token",
            Action::RotateToken => "rotate_token",
            Action::FinishNpmLogin => "finish_npm_login",
            Action::ManageAccessKeys => "manage_access_keys",
            Action::SetUpstreamCredentials => "set_upstream_credentials",
        }
    }
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
    pub confirmation_token: String,
    expires_at: i64,
}

impl ConfirmationView {
    /// The token.
    pub(crate) fn token(&self) -> &str {
        &self.confirmation_token
    }
}

/// Confirms the caller's identity for one action, once: by the password, or where `sso` is true by the address at which the
/// browser signs in anew; the confirmation is what that ends in.
#[utoipa::path(post, operation_id = "create_confirmation",
    path = "/v1/confirmations", request_body = Confirm, responses(
    (status = 201, body = ConfirmationView), (status = 202, body = SignInView), (status = 400, body = ErrorBody),
    (status = 401, body = ErrorBody), (status = 404, body = ErrorBody), (status = 429, body = ErrorBody)))]
pub(crate) async fn confirm(mut call: Call) -> Answer {
    let wanted: Confirm = call.body()?;
    call.only(&[])?;
    let member = call.judge_permission()?.member.clone();
    let password = match (wanted.password, wanted.sso) {
        (Some(password), false) => password,
        (None, true) => {
            let (sign_in_url, expires_at) =
                super::sso::ticket(&call, &member, wanted.action.name(), None).await?;
            return Ok((StatusCode::ACCEPTED, Json(SignInView { sign_in_url, expires_at })).into_response());
        }
        _ => return Err(ApiError::invalid("Send the `password`, or `\"sso\": true`.")),
    };
    let view = confirm_by_password(&call, &member, wanted.action, password).await?;
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// A confirmation for one action of a member who gives the password again. 401 `invalid_credentials`, or 429.
pub(crate) async fn confirm_by_password(
    call: &Call,
    member: &MemberRow,
    action: Action,
    password: String,
) -> Result<ConfirmationView, ApiError> {
    check(call, &member.email, Secret::new(password), std::slice::from_ref(member)).await?;
    confirmed(call, member, action.name()).await
}

/// Makes a confirmation for a member who has just shown who they are.
pub(crate) async fn confirmed(
    call: &Call,
    member: &MemberRow,
    action: &str,
) -> Result<ConfirmationView, ApiError> {
    let Minted { secret, sha256 } = identity::mint();
    let expires_at = call.now + CONFIRMATION_MS;
    let row = ConfirmationRow {
        secret_sha256: sha256,
        organization: member.organization,
        member: member.id,
        action: action.to_owned(),
        expires_at,
    };
    call.app.store.create_confirmation(row).await?;
    Ok(ConfirmationView { confirmation_token: secret.reveal().to_owned(), expires_at })
}
