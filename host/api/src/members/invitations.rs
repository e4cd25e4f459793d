//! `POST /v1/invitations`, and accepting one.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{Accepted, InvitationRow, NewPassword};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::judge;
use super::view::MemberView;
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use packhouse_app::mail;
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, Minted};
use packhouse_wire::catalogue;

/// How long an invitation is good: 7 days in ms.
const INVITATION_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Who is invited.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Invite {
    /// By which the member will sign in.
    email: String,
    /// No more than the caller's own.
    permissions: Permissions,
}

/// An invitation.
#[derive(Serialize, ToSchema)]
pub(super) struct InvitationView {
    /// For POST /v1/invitations/{code}/accept, once. Shown this once.
    code: String,
    expires_at: i64,
    /// Whether it was mailed; absent where no mail server is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    mailed: Option<bool>,
}

/// Invites somebody. It ends when the permissions of the member who invited change, and with that member.
#[utoipa::path(post, operation_id = "create_invitation",
    path = "/v1/invitations", request_body = Invite, responses(
    (status = 201, body = InvitationView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 403, body = ErrorBody)))]
pub(crate) async fn invite(mut call: Call) -> Answer {
    let wanted: Invite = call.body()?;
    call.only(&[])?;
    let email = judge::email(&wanted.email)?;
    let permissions = wanted.permissions.once_each();
    judge::may_grant(&call, &permissions)?;
    judge::repositories_exist(&call, &permissions).await?;
    let Minted { secret, sha256 } = identity::mint();
    let expires_at = call.now + INVITATION_MS;
    let row = InvitationRow {
        secret_sha256: sha256,
        organization: call.organization()?,
        email: email.clone(),
        permissions: serde_json::to_string(&permissions).map_err(anyhow::Error::from)?,
        invited_by: call.caller()?.member.id,
        expires_at,
    };
    let event = call.event("invite_member", email.clone())?;
    call.app.store.create_invitation(row, event).await?;
    let mailed = call.app.mail.send(mail::invitation(&email, &call.app.api_url(), &secret)).await;
    let view = InvitationView { code: secret.reveal().to_owned(), expires_at, mailed };
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

/// Who accepts.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Accept {
    /// As people see it.
    name: Option<String>,
    /// 8 characters or more.
    password: String,
}

/// Accepts an invitation, once: of many who try, one becomes the member. Where the e-mail address has an account by now, the
/// invitation is used up all the same.
#[utoipa::path(post, operation_id = "accept_invitation", path = "/v1/invitations/{code}/accept",
    params(("code" = String, Path)),
    request_body = Accept, security(()), responses(
    (status = 201, body = MemberView), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody)))]
pub(crate) async fn accept(mut call: Call) -> Answer {
    let wanted: Accept = call.body()?;
    call.only(&[])?;
    let name = judge::name(wanted.name)?;
    let password = judge::password(wanted.password)?;
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let sha256 = identity::fingerprint(call.path("code")).ok_or_else(gone)?;
    // Looked at first, so that a code that is none costs no password's hash.
    let store = &call.app.store;
    let invitation = store.find_invitation(&sha256, call.now).await?.ok_or_else(gone)?;
    let inviter = store.find_member(invitation.organization, invitation.invited_by).await?;
    inviter.filter(|inviter| judge::may_invite(inviter, &invitation)).ok_or_else(gone)?;
    let password_hash = call.app.passwords.hash(password).await?;
    let event = call.event_of(
        invitation.organization,
        &invitation.email,
        "invitation",
        "accept_invitation",
        &invitation.email,
    );
    let accepted = NewPassword { name, password_hash };
    match store.accept_invitation(&sha256, call.now, accepted, judge::may_invite, Some(event)).await? {
        Accepted::Member(row) => Ok((StatusCode::CREATED, Json(MemberView::from(&*row))).into_response()),
        Accepted::Taken => Err(ApiError::from(&catalogue::USER_ALREADY_EXISTS)),
        Accepted::Gone => Err(gone()),
    }
}
