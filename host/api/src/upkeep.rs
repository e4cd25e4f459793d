//! Changes to a repository's content by a person instead of a client: deleting packages and
//! versions, and marking versions that should not be used.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_runtime::VersionState;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::upkeep::{self, Deleted, VersionPath};
use crate::operations::{advisories, repositories};
use crate::packages::VersionView;
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(delete_package), routes!(delete_version), routes!(mark)]
}

fn version(call: &Call) -> VersionPath<'_> {
    VersionPath { repository: call.path("id"), package: call.path("name"), version: call.path("version") }
}

/// New state of a version.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// `yanked` or `deprecated`, if the format has that state; empty clears it.
    state: String,
    /// Reason, for people.
    #[serde(default)]
    reason: String,
}

/// Marks a version as one that should not be used, or removes the mark.
#[utoipa::path(put, path = "/v1/repositories/{id}/packages/{name}/versions/{version}/state", operation_id = "set_version_state",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("id" = String, Path), ("name" = String, Path), ("version" = String, Path)),
    request_body = State,
    responses((status = 200, body = VersionView), (status = 405, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn mark(mut call: Call) -> HandlerResult {
    let State { state, reason } = call.body()?;
    call.only(&[])?;
    if !["", "yanked", "deprecated"].contains(&state.as_str()) {
        return Err(ApiError::invalid("`state` must be `yanked`, `deprecated` or empty."));
    }
    let actor = call.actor()?;
    let marked = upkeep::mark(actor, version(&call), VersionState { state, reason }).await?;
    let repository = repositories::show(actor, call.path("id")).await?;
    let numbers = [marked.version.clone()];
    let marks = advisories::of_versions(actor, &repository, &marked.name, &numbers).await?;
    Ok(Json(VersionView::of(marked, marks.into_iter().flatten().collect())).into_response())
}

/// Deletes a version.
#[utoipa::path(delete, path = "/v1/repositories/{id}/packages/{name}/versions/{version}", operation_id = "delete_version",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("id" = String, Path), ("name" = String, Path), ("version" = String, Path)),
    responses((status = 204), (status = 405, body = ErrorBody), (status = 409, body = ErrorBody)))]
async fn delete_version(call: Call) -> HandlerResult {
    call.only(&[])?;
    upkeep::delete_version(call.actor()?, version(&call)).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Progress of deleting a package.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeletionView {
    /// `deleting`.
    status: &'static str,
    /// Number of versions at the start.
    versions: usize,
}

/// Deletes a package with all its versions, one after the other. A deletion that takes longer than
/// two seconds is answered with 202 and continues in the background, also after a restart; until it
/// ends, the remaining versions are listed.
#[utoipa::path(delete, path = "/v1/repositories/{id}/packages/{name}", operation_id = "delete_package",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("id" = String, Path), ("name" = String, Path)),
    responses((status = 204), (status = 202, body = DeletionView), (status = 405, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
async fn delete_package(call: Call) -> HandlerResult {
    call.only(&[])?;
    match upkeep::delete_package(call.actor()?, call.path("id"), call.path("name")).await? {
        Deleted::Whole => Ok(StatusCode::NO_CONTENT.into_response()),
        Deleted::InProgress { versions } => {
            let view = DeletionView { status: "deleting", versions };
            Ok((StatusCode::ACCEPTED, Json(view)).into_response())
        }
    }
}
