//! `GET /v1/repositories` and `GET /v1/repositories/{id}`: those that the caller may know of.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::{RepositoryId, RepositoryRow};

use super::view::{RepositoryView, base_url};
use super::{find, knows};
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::paging::{self, Page};

/// Lists repositories.
#[utoipa::path(get, operation_id = "list_repositories", path = "/v1/repositories",
    params(("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<RepositoryView>), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody)))]
pub async fn list(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let limit = paging::limit(&call)?;
    let after = paging::after(&call)?;
    call.judge_permission()?;
    let rows = known(&call, after, limit as usize + 1).await?;
    let base_url = base_url(&call).await?;
    let page = Page::cut(
        rows,
        limit,
        |row| row.id.to_string(),
        |row| RepositoryView::new(&call.app, &base_url, row),
    );
    Ok(Json(page).into_response())
}

/// The next `count` that the caller may know of.
async fn known(
    call: &Call,
    mut after: Option<RepositoryId>,
    count: usize,
) -> Result<Vec<RepositoryRow>, ApiError> {
    let mut found = Vec::new();
    while found.len() < count {
        let page = call.app.store.list_repositories(call.organization()?, after, READ_AT_ONCE).await?;
        after = page.last().map(|row| row.id);
        let last = page.len() < READ_AT_ONCE as usize;
        for row in page {
            if knows(call, row.id)? {
                found.push(row);
            }
        }
        if last {
            break;
        }
    }
    found.truncate(count);
    Ok(found)
}

/// Rows read in one statement.
const READ_AT_ONCE: u32 = 201;

/// Shows a repository.
#[utoipa::path(get, operation_id = "show_repository",
    path = "/v1/repositories/{id}", params(("id" = String, Path)), responses(
    (status = 200, body = RepositoryView), (status = 401, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub async fn show(call: Call) -> Answer {
    call.only(&[])?;
    let row = find(&call).await?;
    call.judge_permission()?;
    let view = RepositoryView::new(&call.app, &base_url(&call).await?, row);
    Ok(Json(view).into_response())
}
