//! `GET …/access-keys`. Never a secret.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::{AccessKeyId, KeyOwnerKind};

use super::view::AccessKeyView;
use crate::call::Call;
use crate::error::ErrorBody;
use crate::paging::{self, Page};
use crate::{Answer, subscribers};

/// Lists a subscriber's access keys.
#[utoipa::path(get, operation_id = "list_subscriber_access_keys", path = "/v1/subscribers/{id}/access-keys",
    params(("id" = String, Path), ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<AccessKeyView>), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn list_for_subscriber(call: Call) -> Answer {
    list(call, KeyOwnerKind::Subscriber).await
}

/// Lists the access keys of a group of subscribers.
#[utoipa::path(get, operation_id = "list_subscriber_group_access_keys",
    path = "/v1/subscriber-groups/{id}/access-keys",
    params(("id" = String, Path), ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<AccessKeyView>), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn list_for_group(call: Call) -> Answer {
    list(call, KeyOwnerKind::Group).await
}

async fn list(call: Call, kind: KeyOwnerKind) -> Answer {
    call.only(&["limit", "after"])?;
    let limit = paging::limit(&call)?;
    let after = paging::after::<AccessKeyId>(&call)?;
    let owner = subscribers::find(&call, kind).await?;
    call.judge_permission()?;
    let rows = call.app.store.list_access_keys(owner.id, after, limit + 1).await?;
    let view = |row| AccessKeyView::new(row, kind, call.now);
    Ok(Json(Page::cut(rows, limit, |row| row.id.to_string(), view)).into_response())
}
