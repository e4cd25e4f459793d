//! `PUT /v1/members/{id}/permissions` and `DELETE /v1/members/{id}`.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{MemberChange, MemberRow};
use serde::Deserialize;
use utoipa::ToSchema;

use super::judge;
use super::view::MemberView;
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use packhouse_identity::permissions::Permissions;
use packhouse_wire::catalogue;

/// All that a member may do from now on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetPermissions {
    permissions: Permissions,
}

/// Sets what a member may do. Neither what it held nor what it gets may be more than the caller's own. A change ends the password
/// resets that the member made, those of its own password, and its invitations.
#[utoipa::path(put, operation_id = "set_member_permissions", path = "/v1/members/{id}/permissions",
    params(("id" = String, Path)),
    request_body = SetPermissions, responses(
    (status = 200, body = MemberView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub(crate) async fn set_permissions(mut call: Call) -> Answer {
    let wanted: SetPermissions = call.body()?;
    call.only(&[])?;
    let permissions = wanted.permissions.once_each();
    let json = serde_json::to_string(&permissions).map_err(anyhow::Error::from)?;
    loop {
        let row = judge::find_to_manage(&call).await?;
        judge::may_manage(&call, &row)?;
        judge::may_grant(&call, &permissions)?;
        judge::repositories_exist(&call, &permissions).await?;
        let event = call.event("set_member_permissions", row.email.clone())?;
        let owner = Permissions::of_an_owner;
        match call.app.store.set_member_permissions(&row, &json, owner, event).await? {
            MemberChange::Done => {
                let changed = MemberRow { permissions: json, ..row };
                return Ok(Json(MemberView::from(&changed)).into_response());
            }
            MemberChange::Last => return Err(ApiError::from(&catalogue::LAST_OWNER)),
            // Another call changed it meanwhile: judged anew, on what there is now.
            MemberChange::Changed => {}
        }
    }
}

/// Deletes a member: its sessions end, its tokens are revoked, and what it has invited to is void.
#[utoipa::path(delete, operation_id = "delete_member", path = "/v1/members/{id}",
    params(("id" = String, Path)), responses((status = 204),
    (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
    (status = 409, body = ErrorBody)))]
pub(crate) async fn remove(call: Call) -> Answer {
    call.only(&[])?;
    loop {
        let row = judge::find_to_manage(&call).await?;
        judge::may_manage(&call, &row)?;
        let event = call.event("delete_member", row.email.clone())?;
        match call.app.store.delete_member(&row, Permissions::of_an_owner, event).await? {
            MemberChange::Done => return Ok(StatusCode::NO_CONTENT.into_response()),
            MemberChange::Last => return Err(ApiError::from(&catalogue::LAST_OWNER)),
            MemberChange::Changed => {}
        }
    }
}
