//! Changes to what a repository holds, by a person and not by a client: deleting packages and versions, and saying of a version
//! that it should not be used. What either means is the format's; one whose plugin does not offer it answers 405.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_runtime::{Action, Call as PluginCall, CallError, Failure, Plugin, RequestHead, VersionState};
use packhouse_store::{AuditEvent, RepositoryRow, Version};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Answer;
use super::call::Call;
use super::deletions;
use super::error::{ApiError, ErrorBody};
use super::packages::VersionView;
use super::repositories;
use packhouse_app::App;
use packhouse_config::repository_settings::view;
use packhouse_identity::access::{Kind, Rights};
use packhouse_wire::catalogue::{self, Code};

/// How long the caller of a package's deletion waits for its end.
const WAITED: Duration = Duration::from_secs(2);

/// A version's new state.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct State {
    /// `yanked` or `deprecated`, as the format knows them; empty takes it back.
    state: String,
    /// Why, for people.
    #[serde(default)]
    reason: String,
}

/// Says of a version that it should not be used, or takes that back.
#[utoipa::path(put, operation_id = "set_version_state",
    path = "/v1/repositories/{id}/packages/{name}/versions/{version}/state", request_body = State,
    params(("id" = String, Path), ("name" = String, Path), ("version" = String, Path)),
    responses((status = 200, body = VersionView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody), (status = 405, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub(crate) async fn mark(mut call: Call) -> Answer {
    let State { state, reason } = call.body()?;
    call.only(&[])?;
    if !["", "yanked", "deprecated"].contains(&state.as_str()) {
        return Err(ApiError::invalid("`state` is `yanked`, `deprecated` or empty."));
    }
    let (repository, versions) = held(&call, |rights| rights.publish).await?;
    let (name, wanted) = (call.path("name").to_owned(), call.path("version").to_owned());
    named(versions, &wanted)?;
    let plugin = offering(&call.app, &repository)?;
    let plugin_call = plugin_call(&repository, &plugin, event(&call, &repository, "mark_version", &wanted)?);
    done(plugin.mark_version(plugin_call, &name, &wanted, VersionState { state, reason }).await)?;
    let marked = named(call.app.store.versions(repository.id, &name).await?, &wanted)?;
    Ok(Json(VersionView::from(marked)).into_response())
}

/// Deletes a version.
#[utoipa::path(delete, operation_id = "delete_version",
    path = "/v1/repositories/{id}/packages/{name}/versions/{version}",
    params(("id" = String, Path), ("name" = String, Path), ("version" = String, Path)),
    responses((status = 204), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 405, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub(crate) async fn delete_version(call: Call) -> Answer {
    call.only(&[])?;
    let (repository, versions) = held(&call, |rights| rights.delete).await?;
    let version = named(versions, call.path("version"))?.version;
    let plugin = offering(&call.app, &repository)?;
    let event = event(&call, &repository, "delete_version", &version)?;
    delete_one(&repository, &plugin, event, call.path("name"), &version).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// How many versions of a package are left to be deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeletionView {
    /// `deleting`.
    status: &'static str,
    /// How many there were when it began.
    versions: usize,
}

/// Deletes a package with all its versions, one after the other. What takes longer than two seconds is answered with 202 and goes
/// on by itself, also after a restart; until its end the versions that are left are shown.
#[utoipa::path(delete, operation_id = "delete_package", path = "/v1/repositories/{id}/packages/{name}",
    params(("id" = String, Path), ("name" = String, Path)),
    responses((status = 204), (status = 202, body = DeletionView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody), (status = 405, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub(crate) async fn delete_package(call: Call) -> Answer {
    call.only(&[])?;
    let (repository, versions) = held(&call, |rights| rights.delete).await?;
    offering(&call.app, &repository)?;
    let count = versions.len();
    let versions = versions.into_iter().map(|version| version.version).collect();
    let Some(event) = call.event("delete_version", "")? else {
        return Err(ApiError::from(&catalogue::INTERNAL));
    };
    let deletion = call.app.store.begin_deletion(repository.id, call.path("name"), versions, event).await?;
    let app = Arc::clone(&call.app);
    // A task of its own: it goes on when the caller does not wait for it.
    let work = tokio::spawn(async move { deletions::carry_out(&app, deletion).await });
    match tokio::time::timeout(WAITED, work).await {
        Ok(Ok(Err(error))) => Err(error),
        Ok(Ok(Ok(true))) => Ok(StatusCode::NO_CONTENT.into_response()),
        Ok(Err(panic)) => Err(ApiError::Internal(panic.into())),
        Ok(Ok(Ok(false))) | Err(_) => {
            let view = DeletionView { status: "deleting", versions: count };
            Ok((StatusCode::ACCEPTED, Json(view)).into_response())
        }
    }
}

/// Deletes one version of a package by its format's own rules.
pub(super) async fn delete_one(
    repository: &RepositoryRow,
    plugin: &Plugin,
    event: AuditEvent,
    name: &str,
    version: &str,
) -> Result<(), ApiError> {
    let call = plugin_call(repository, plugin, event);
    done(plugin.delete_version(call, name, version).await)
}

/// The repository of the path and the versions of its package, where the caller holds the right: 404 for what is not there, or what
/// the caller may not know of, 405 for a repository that holds nothing of its own.
async fn held(call: &Call, right: fn(&Rights) -> bool) -> Result<(RepositoryRow, Vec<Version>), ApiError> {
    let repository = repositories::find(call).await?;
    let rights = call.caller()?.permissions.rights(repository.id);
    let elsewhere = match Kind::of(&repository.kind) {
        Kind::Hosted => None,
        Kind::Proxy => Some(&catalogue::WRITES_NOT_PERMITTED_ON_PROXY),
        Kind::Group => Some(&catalogue::WRITES_NOT_PERMITTED_ON_GROUP),
    };
    if let Some(code) = elsewhere {
        call.judge(right(&rights), &catalogue::ROLE_MISMATCH)?;
        return Err(ApiError::from(code));
    }
    let versions = call.app.store.versions(repository.id, call.path("name")).await?;
    // Who may not read there is not told either which packages there are.
    let knows = rights.read || repository.public || right(&rights);
    if versions.is_empty() || !knows {
        return Err(ApiError::from(&catalogue::NOT_FOUND));
    }
    call.judge(right(&rights), &catalogue::ROLE_MISMATCH)?;
    Ok((repository, versions))
}

fn named(versions: Vec<Version>, wanted: &str) -> Result<Version, ApiError> {
    let found = versions.into_iter().find(|version| version.version == wanted);
    found.ok_or_else(|| ApiError::from(&catalogue::NOT_FOUND))
}

/// The repository's plugin, where it offers to change what is there.
pub(super) fn offering(app: &App, repository: &RepositoryRow) -> Result<Arc<Plugin>, ApiError> {
    let plugin = app.runtime.plugin(&repository.format).filter(|plugin| plugin.has_upkeep());
    plugin.ok_or_else(|| ApiError::from(&catalogue::NOT_SUPPORTED))
}

/// What is remembered of a change to a version.
fn event(
    call: &Call,
    repository: &RepositoryRow,
    action: &str,
    version: &str,
) -> Result<AuditEvent, ApiError> {
    let subject = format!("{}/{} {version}", repository.name, call.path("name"));
    call.event(action, subject)?.ok_or_else(|| ApiError::from(&catalogue::INTERNAL))
}

fn plugin_call(repository: &RepositoryRow, plugin: &Plugin, event: AuditEvent) -> PluginCall {
    let head = RequestHead { request_id: event.request_id.clone(), ..RequestHead::default() };
    PluginCall {
        target: Some(view(repository, plugin.description())),
        audit: Some(event),
        ..PluginCall::new(Arc::new(head), Action::Delete)
    }
}

/// A plugin's refusal as the API says it: by its code where the catalogue has that, else by its status, in its own words.
fn done(outcome: Result<Result<(), Failure>, CallError>) -> Result<(), ApiError> {
    let failure = match outcome {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(failure)) => failure,
        Err(CallError::Store(error)) => return Err(ApiError::from(error)),
        Err(CallError::NotOffered(_)) => return Err(ApiError::from(&catalogue::NOT_SUPPORTED)),
        Err(CallError::Busy(_)) => return Err(ApiError::from(&catalogue::FORMAT_BUSY)),
        Err(error) => return Err(ApiError::Internal(error.into())),
    };
    let code: &'static Code = match failure.status {
        400 => &catalogue::INVALID_REQUEST,
        404 => &catalogue::NOT_FOUND,
        405 => &catalogue::NOT_SUPPORTED,
        409 => &catalogue::CONFLICT,
        503 => &catalogue::FORMAT_BUSY,
        _ => &catalogue::INTERNAL,
    };
    let message = failure.problems.into_iter().next().map(|problem| problem.message);
    let message = message.filter(|text| !text.is_empty()).unwrap_or_else(|| code.sentence.to_owned());
    Err(ApiError::Refused { code, message, retry_after: None })
}
