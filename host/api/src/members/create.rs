//! `POST /v1/members`.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::NewMember;
use serde::Deserialize;
use utoipa::ToSchema;

use super::judge;
use super::view::MemberView;
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use packhouse_identity::permissions::Permissions;
use packhouse_wire::catalogue;

/// A member to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateMember {
    /// By which the member signs in.
    email: String,
    /// As people see it.
    name: Option<String>,
    /// 8 characters or more.
    password: String,
    /// No more than the caller's own.
    permissions: Permissions,
}

/// Makes a member.
#[utoipa::path(post, operation_id = "create_member",
    path = "/v1/members", request_body = CreateMember, responses(
    (status = 201, body = MemberView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(crate) async fn create(mut call: Call) -> Answer {
    let wanted: CreateMember = call.body()?;
    call.only(&[])?;
    let name = judge::name(wanted.name)?;
    let email = judge::email(&wanted.email)?;
    let password = judge::password(wanted.password)?;
    let permissions = wanted.permissions.once_each();
    judge::may_grant(&call, &permissions)?;
    judge::repositories_exist(&call, &permissions).await?;
    let password_hash = call.app.passwords.hash(password).await?;
    let permissions = serde_json::to_string(&permissions).map_err(anyhow::Error::from)?;
    let event = call.event("create_member", email.clone())?;
    let new = NewMember { email, name, password_hash, permissions };
    let made = call.app.store.create_member(call.organization()?, new, event).await?;
    let row = made.ok_or(ApiError::from(&catalogue::USER_ALREADY_EXISTS))?;
    Ok((StatusCode::CREATED, Json(MemberView::from(&row))).into_response())
}
