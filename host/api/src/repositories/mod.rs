//! Repositories: making, listing, changing and deleting them.

mod request;
mod view;

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_runtime::Description;
use packhouse_store::{RepositoryId, RepositoryRow};

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::{Holds, OfObject, SignedIn};
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::loaded;
use crate::operations::repositories::{self, RepositoryWithUsage};
use crate::paging::{self, Page};
pub use request::from_json;
use request::{ChangeRepository, CreateRepository};
use view::RepositoryView;

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(create), routes!(list), routes!(show), routes!(change), routes!(remove)]
}

/// Makes a repository. A public one needs read in every repository besides: `*`.
#[utoipa::path(post, path = "/v1/repositories", operation_id = "create_repository",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    request_body = CreateRepository,
    responses((status = 201, body = RepositoryView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> Answer {
    let body: CreateRepository = call.body()?;
    call.only(&[])?;
    let current = call.app.runtime.current();
    let formats: Vec<&Description> = current.plugins().iter().map(|plugin| plugin.description()).collect();
    let new = request::judge(&formats, &body);
    let new = new.map_err(|refused| loaded::unless_starting(&call.app, refused))?;
    let row = repositories::create(call.actor()?, new).await?;
    Ok((StatusCode::CREATED, shown(&call, row).await?).into_response())
}

/// Lists repositories.
#[utoipa::path(get, path = "/v1/repositories", operation_id = "list_repositories",
    extensions(("x-right" = json!(SignedIn))),
    params(("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<RepositoryView>)))]
async fn list(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let page = paging::request::<RepositoryId>(&call)?;
    let listed = repositories::list_with_usage(call.actor()?, page).await?;
    let base_url = repositories::base_url(call.actor()?).await?;
    let view = |with| RepositoryView::new(&call.app, &base_url, with);
    Ok(Json(Page::try_of(listed, |with| with.row.id.to_string(), view)?).into_response())
}

/// Shows a repository.
#[utoipa::path(get, path = "/v1/repositories/{id}", operation_id = "show_repository",
    extensions(("x-right" = json!(OfObject))),
    params(("id" = String, Path)),
    responses((status = 200, body = RepositoryView)))]
async fn show(call: Call) -> Answer {
    call.only(&[])?;
    let row = repositories::show(call.actor()?, call.path("id")).await?;
    shown(&call, row).await
}

/// Changes a repository. To make it public needs read there. The credentials for a proxy's upstream are taken away where another
/// server or way is named to it: they were given for the one that was.
#[utoipa::path(patch, path = "/v1/repositories/{id}", operation_id = "change_repository",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    request_body = ChangeRepository,
    responses((status = 200, body = RepositoryView)))]
async fn change(mut call: Call) -> Answer {
    let body: ChangeRepository = call.body()?;
    call.only(&[])?;
    let row = repositories::change(call.actor()?, call.path("id"), &body.change()?).await?;
    shown(&call, row).await
}

/// Deletes a repository with all that it holds. Nobody sees it and its name is free from the answer on; what it held is removed
/// afterwards, also when the server is restarted.
#[utoipa::path(delete, path = "/v1/repositories/{id}", operation_id = "delete_repository",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    responses((status = 204), (status = 409, body = ErrorBody)))]
async fn remove(call: Call) -> Answer {
    call.only(&[])?;
    repositories::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn shown(call: &Call, row: RepositoryRow) -> Result<Response, ApiError> {
    let base_url = repositories::base_url(call.actor()?).await?;
    let usage = repositories::usage_of(call.actor()?, &row).await?;
    let health = repositories::health_of(call.actor()?, &row).await?;
    let with = RepositoryWithUsage { row, usage };
    Ok(Json(RepositoryView::new(&call.app, &base_url, with)?.with_health(health)).into_response())
}
