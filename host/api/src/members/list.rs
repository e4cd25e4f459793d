//! `GET /v1/members` and `GET /v1/members/{id}`: for those who manage members or own the account; everyone sees themselves.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::MemberId;

use super::judge;
use super::view::MemberView;
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::paging::{self, Page};
use packhouse_identity::permissions::Permission;
use packhouse_wire::catalogue;

/// Lists members.
#[utoipa::path(get, operation_id = "list_members", path = "/v1/members",
    params(("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<MemberView>), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody)))]
pub(crate) async fn list(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let limit = paging::limit(&call)?;
    let after = paging::after::<MemberId>(&call)?;
    may_see_others(&call)?;
    let rows = call.app.store.list_members(call.organization()?, after, limit + 1).await;
    let rows = rows?;
    let page = Page::cut(rows, limit, |row| row.id.to_string(), |row| MemberView::from(&row));
    Ok(Json(page).into_response())
}

/// Shows a member.
#[utoipa::path(get, operation_id = "show_member",
    path = "/v1/members/{id}", params(("id" = String, Path)), responses(
    (status = 200, body = MemberView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    (status = 404, body = ErrorBody)))]
pub(crate) async fn show(call: Call) -> Answer {
    call.only(&[])?;
    if !judge::is_own(&call)? {
        may_see_others(&call)?;
    }
    let row = judge::find(&call).await?;
    call.judge_permission()?;
    Ok(Json(MemberView::from(&row)).into_response())
}

fn may_see_others(call: &Call) -> Result<(), ApiError> {
    if !call.caller()?.permissions.holds(Permission::ManageOwnerAccount) {
        call.needs(Permission::ManageMembers)?;
    }
    call.judge(true, &catalogue::INSUFFICIENT_PERMISSIONS)
}
