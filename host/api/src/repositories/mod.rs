//! Repositories: creating, listing, changing and deleting them.

mod request;
mod view;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_runtime::Description;
use packhouse_store::{RepositoryId, RepositoryRow};

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::{Holds, OfObject, SignedIn};
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::loaded;
use crate::operations::repositories::{self, RepositoryWithUsage};
use crate::paging::{self, Page};
use crate::scope::Family;
pub use request::from_json;
use request::{ChangeRepository, CreateRepository};
use view::RepositoryView;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(create), routes!(list), routes!(show), routes!(change), routes!(remove)]
}

/// Creates a repository. A public one also requires read access to all repositories (`*`).
#[utoipa::path(post, path = "/v1/repositories", operation_id = "create_repository",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Repositories))),
    request_body = CreateRepository,
    responses((status = 201, body = RepositoryView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
    let body: CreateRepository = call.body()?;
    call.only(&[])?;
    let current = call.app.runtime.current();
    let formats: Vec<&Description> = current.plugins().iter().map(|plugin| plugin.description()).collect();
    let new = request::judge(&formats, &body);
    let new = new.map_err(|refused| loaded::unless_starting(&call.app, refused))?;
    let row = repositories::create(call.actor()?, new).await?;
    Ok((StatusCode::CREATED, respond(&call, row).await?).into_response())
}

/// Lists repositories.
#[utoipa::path(get, path = "/v1/repositories", operation_id = "list_repositories",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::Repositories))),
    params(("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<RepositoryView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let page = paging::request::<RepositoryId>(&call)?;
    let listed = repositories::list_with_usage(call.actor()?, page).await?;
    let base_url = repositories::base_url(call.actor()?).await?;
    let view = |with| RepositoryView::new(&call.app, &base_url, with);
    Ok(Json(Page::try_of(listed, |with| with.row.id.to_string(), view)?).into_response())
}

/// Returns a repository.
#[utoipa::path(get, path = "/v1/repositories/{id}", operation_id = "show_repository",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path)),
    responses((status = 200, body = RepositoryView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let row = repositories::show(call.actor()?, call.path("id")).await?;
    respond(&call, row).await
}

/// Changes a repository. Requires the right to manage it. Making it public requires read access to
/// it. Without manage-repositories, the caller must be able to read the repositories that are added
/// to a group. Changing the upstream's server or connection removes the upstream credentials,
/// because they were given for the previous one.
#[utoipa::path(patch, path = "/v1/repositories/{id}", operation_id = "change_repository",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path)),
    request_body = ChangeRepository,
    responses((status = 200, body = RepositoryView)))]
async fn change(mut call: Call) -> HandlerResult {
    let body: ChangeRepository = call.body()?;
    call.only(&[])?;
    let row = repositories::change(call.actor()?, call.path("id"), &body.change()?).await?;
    respond(&call, row).await
}

/// Deletes a repository with its content. When the response arrives, it is gone and its name is
/// free; its content is removed in the background, also after a restart.
#[utoipa::path(delete, path = "/v1/repositories/{id}", operation_id = "delete_repository",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path)),
    responses((status = 204), (status = 409, body = ErrorBody)))]
async fn remove(call: Call) -> HandlerResult {
    call.only(&[])?;
    repositories::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn respond(call: &Call, row: RepositoryRow) -> Result<Response, ApiError> {
    let base_url = repositories::base_url(call.actor()?).await?;
    let usage = repositories::usage_of(call.actor()?, &row).await?;
    let health = repositories::health_of(call.actor()?, &row).await?;
    let with = RepositoryWithUsage { row, usage };
    Ok(Json(RepositoryView::new(&call.app, &base_url, with)?.with_health(health)).into_response())
}
