//! Trash: deleted versions that can be restored.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::TrashEntry;
use serde::Serialize;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error_response::ErrorBody;
use crate::operations::upkeep;
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(list), routes!(restore)]
}

/// A deleted version that can be restored.
#[derive(Serialize, ToSchema)]
pub(crate) struct TrashView {
    id: String,
    package: String,
    version: String,
    /// Time in ms since 1970.
    deleted_at: i64,
    /// E-mail address of a member, or name of a policy.
    deleted_by: String,
    /// Bytes of its files; each path counts once.
    bytes: u64,
    /// Time at which it is deleted permanently, in ms since 1970.
    gone_at: i64,
}

impl From<TrashEntry> for TrashView {
    fn from(entry: TrashEntry) -> TrashView {
        let TrashEntry { id, name, version, deleted_at, deleted_by, gone_at, bytes } = entry;
        TrashView { id: id.to_string(), package: name, version, deleted_at, deleted_by, bytes, gone_at }
    }
}

/// Lists the deleted versions of a repository that can be restored, the latest deletion first.
#[utoipa::path(get, path = "/v1/repositories/{id}/trash", operation_id = "list_trash",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("id" = String, Path),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<TrashView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let listed = upkeep::trash(call.actor()?, call.path("id"), paging::request(&call)?).await?;
    Ok(Json(Page::of(listed, |entry| entry.id.to_string(), TrashView::from)).into_response())
}

/// Restores a deleted version with every record as it was.
#[utoipa::path(post, path = "/v1/repositories/{id}/trash/{entry}/restore", operation_id = "restore_version",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("id" = String, Path), ("entry" = String, Path)),
    responses((status = 200, body = TrashView), (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn restore(call: Call) -> HandlerResult {
    call.only(&[])?;
    let restored = upkeep::restore(call.actor()?, call.path("id"), call.path("entry")).await?;
    Ok(Json(TrashView::from(restored)).into_response())
}
