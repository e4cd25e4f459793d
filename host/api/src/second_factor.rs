//! The caller's own second factor, its removal by a member who manages members, and the check of
//! organizations that require one.

use axum::Json;
use axum::response::IntoResponse;
use http::{Method, StatusCode};
use packhouse_app::App;
use packhouse_identity::Secret;
use packhouse_wire::catalogue;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Endpoint;
use crate::endpoint::Right::{OfObject, SignedIn};
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::confirmations::Action;
use crate::operations::second_factor::{self, NewSecondFactor, SecondFactorState};
use crate::operations::{Caller, members};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(show), routes!(begin), routes!(confirm), routes!(remove), routes!(remove_of_member)]
}

/// Endpoints that a caller can use who must set up a second factor first.
const SETTING_UP: [(Method, &str); 6] = [
    (Method::GET, "/v1/me"),
    (Method::GET, "/v1/me/totp"),
    (Method::POST, "/v1/me/totp"),
    (Method::POST, "/v1/me/totp/confirm"),
    (Method::DELETE, "/v1/me/totp"),
    (Method::DELETE, "/v1/sessions/current"),
];

/// Refuses a caller without the second factor that the organization requires: 403
/// `second_factor_required`. The caller can still see their account, set one up, and sign out.
pub(crate) async fn judge(app: &App, caller: &Caller, endpoint: &Endpoint) -> Result<(), ApiError> {
    let is_this = |(method, path): &(Method, &str)| endpoint.method == *method && endpoint.path == *path;
    if SETTING_UP.iter().any(is_this) || !second_factor::is_missing(app, caller).await? {
        return Ok(());
    }
    Err(ApiError::from(&catalogue::SECOND_FACTOR_NOT_SET_UP))
}

/// State of the caller's second factor.
#[derive(Serialize, ToSchema)]
pub(crate) struct TotpView {
    /// `none`, `unconfirmed` or `confirmed`. Only a confirmed one is needed to sign in.
    state: &'static str,
    /// Number of unused recovery codes.
    recovery_codes: usize,
}

impl From<SecondFactorState> for TotpView {
    fn from(state: SecondFactorState) -> TotpView {
        match state {
            SecondFactorState::None => TotpView { state: "none", recovery_codes: 0 },
            SecondFactorState::Unconfirmed => TotpView { state: "unconfirmed", recovery_codes: 0 },
            SecondFactorState::Confirmed { recovery_codes } => {
                TotpView { state: "confirmed", recovery_codes }
            }
        }
    }
}

/// A new second factor, which a first code must confirm.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewTotpView {
    /// Secret for the authenticator app, in base32. It is shown only once.
    secret: String,
    /// The secret as an `otpauth` address, for apps that read it as a link or a QR code.
    otpauth_url: String,
}

/// A code of the authenticator app.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConfirmTotp {
    code: String,
}

/// Recovery codes of the caller's second factor.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecoveryCodesView {
    /// Each code replaces a code of the app once. They are shown only once.
    recovery_codes: Vec<String>,
}

/// Proof for the removal of the caller's own second factor.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveTotp {
    password: String,
    /// Code of the authenticator app, or a recovery code. Required if there is a second factor.
    code: Option<String>,
}

/// Confirmation of the removal of a member's second factor.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoveTotpOfMember {
    /// Confirmation token for the action `manage_members`, valid for five minutes. The header
    /// `X-Confirmation-Token` may carry it instead.
    #[schema(value_type = Option<String>)]
    confirmation_token: Option<Value>,
}

/// Returns the state of the caller's second factor.
#[utoipa::path(get, path = "/v1/me/totp", operation_id = "show_second_factor",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::None))),
    responses((status = 200, body = TotpView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let state = second_factor::state(call.actor()?).await?;
    Ok(Json(TotpView::from(state)).into_response())
}

/// Begins to set up a second factor for the caller's password: codes of an authenticator app (RFC
/// 6238). It replaces one that is not confirmed. Sign-ins need no code before the first code is
/// confirmed.
#[utoipa::path(post, path = "/v1/me/totp", operation_id = "begin_second_factor",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::None))),
    responses((status = 201, body = NewTotpView), (status = 409, body = ErrorBody)))]
async fn begin(call: Call) -> HandlerResult {
    call.only(&[])?;
    let NewSecondFactor { secret, otpauth_url } = second_factor::begin(call.actor()?).await?;
    let (secret, otpauth_url) = (secret.reveal().to_owned(), otpauth_url.reveal().to_owned());
    Ok((StatusCode::CREATED, Json(NewTotpView { secret, otpauth_url })).into_response())
}

/// Confirms the second factor with a code of the authenticator app. From now on, sign-ins and
/// confirmations by password need a code. The response has the recovery codes.
#[utoipa::path(post, path = "/v1/me/totp/confirm", operation_id = "confirm_second_factor",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::None))),
    request_body = ConfirmTotp,
    responses((status = 200, body = RecoveryCodesView), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn confirm(mut call: Call) -> HandlerResult {
    let ConfirmTotp { code } = call.body()?;
    call.only(&[])?;
    let codes = second_factor::confirm(call.actor()?, &Secret::new(code)).await?;
    let recovery_codes = codes.iter().map(|code| code.reveal().to_owned()).collect();
    Ok(Json(RecoveryCodesView { recovery_codes }).into_response())
}

/// Removes the caller's second factor, unless the organization requires one.
#[utoipa::path(delete, path = "/v1/me/totp", operation_id = "remove_second_factor",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::None))),
    request_body = RemoveTotp,
    responses((status = 204), (status = 401, body = ErrorBody), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody),
        (status = 429, body = ErrorBody)))]
async fn remove(mut call: Call) -> HandlerResult {
    let RemoveTotp { password, code } = call.body()?;
    call.only(&[])?;
    let code = code.map(Secret::new);
    second_factor::remove(call.actor()?, Secret::new(password), code.as_ref()).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Removes the second factor of a member who has lost the authenticator app and the recovery codes.
/// The member then signs in with the password alone. A caller who lacks a permission of that member
/// cannot do this.
#[utoipa::path(delete, path = "/v1/members/{id}/totp", operation_id = "remove_second_factor_of_member",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Members)),
        ("x-confirmation" = json!(Action::ManageMembers))),
    params(("id" = String, Path)),
    request_body = Option<RemoveTotpOfMember>,
    responses((status = 204), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn remove_of_member(mut call: Call) -> HandlerResult {
    let RemoveTotpOfMember { confirmation_token } = call.body()?;
    call.only(&[])?;
    let confirmation = call.confirmation(confirmation_token.as_ref());
    members::remove_second_factor(call.actor()?, &confirmation, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
