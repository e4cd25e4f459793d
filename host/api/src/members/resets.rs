//! `POST /v1/members/{id}/password-reset`, and completing one.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{PasswordReset, PasswordResetRow};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::judge;
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use packhouse_app::mail;
use packhouse_identity::{self as identity, Minted};
use packhouse_wire::catalogue;

/// How long a reset is good: an hour in ms.
const RESET_MS: i64 = 60 * 60 * 1000;

/// Nothing: an empty object will do.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Empty {}

/// A password reset.
#[derive(Serialize, ToSchema)]
pub(super) struct ResetView {
    /// For POST /v1/password-resets/{code}, once. Shown this once.
    reset_code: String,
    expires_at: i64,
    /// Whether it was mailed; absent where no mail server is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    mailed: Option<bool>,
}

/// Makes a code with which a member can set a new password. A read-only member, or one lacking a permission that the member
/// holds, cannot reset another's.
#[utoipa::path(post, operation_id = "create_password_reset",
    path = "/v1/members/{id}/password-reset", params(("id" = String, Path)), responses(
    (status = 201, body = ResetView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn reset(mut call: Call) -> Answer {
    let Empty {} = call.body()?;
    call.only(&[])?;
    // No object decides this: a read-only member resets nobody's password but its own.
    let read_only = call.caller()?.permissions.read_only();
    call.judge(!read_only || judge::is_own(&call)?, &catalogue::ROLE_MISMATCH)?;
    let reset =
        PasswordReset { member: judge::find_to_manage(&call).await?, made_by: call.caller()?.member.clone() };
    call.judge(judge::may_reset(&reset), &catalogue::ROLE_MISMATCH)?;
    let PasswordReset { member: row, made_by } = reset;
    let Minted { secret, sha256 } = identity::mint();
    let expires_at = call.now + RESET_MS;
    let event = call.event("reset_password", row.email.clone())?;
    let reset = PasswordResetRow { secret_sha256: sha256, member: row.id, made_by: made_by.id, expires_at };
    call.app.store.create_password_reset(reset, event).await?;
    let mailed = call.app.mail.send(mail::reset(&row.email, &call.app.api_url(), &secret)).await;
    let view = ResetView { reset_code: secret.reveal().to_owned(), expires_at, mailed };
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// The new password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Complete {
    /// 8 characters or more.
    password: String,
}

/// Sets a new password, once, and ends the member's sessions. A code ends when the permissions of who made it change, or those of the
/// member, or when either is deleted: 404 as for any other that is none.
#[utoipa::path(post, operation_id = "complete_password_reset", path = "/v1/password-resets/{code}",
    params(("code" = String, Path)),
    request_body = Complete, security(()), responses(
    (status = 204), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn complete(mut call: Call) -> Answer {
    let wanted: Complete = call.body()?;
    call.only(&[])?;
    let password = judge::password(wanted.password)?;
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let sha256 = identity::fingerprint(call.path("code")).ok_or_else(gone)?;
    let store = &call.app.store;
    // Looked at first, so that a code that is none costs no password's hash.
    let reset = store.find_password_reset(&sha256, call.now).await?.filter(judge::may_reset);
    let member = reset.ok_or_else(gone)?.member;
    let hash = call.app.passwords.hash(password).await?;
    let event =
        call.event_of(member.organization, &member.email, "password_reset", "set_password", &member.email);
    match store.complete_password_reset(&sha256, call.now, &hash, judge::may_reset, Some(event)).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(gone()),
    }
}
