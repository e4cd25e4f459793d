//! Retention policies: they delete old or unused versions.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{PolicyId, RunId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error_response::ErrorBody;
use crate::operations::retention::{self, Policy, PolicyRun, Preview, PreviewItem, Skipped};
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) mod bodies;

use bodies::{ChangePolicy, ConditionsBody, CreatePolicy, KeepBody, MatchBody};

pub(crate) fn endpoints() -> Vec<Described> {
    vec![
        routes!(create),
        routes!(list),
        routes!(show),
        routes!(change),
        routes!(remove),
        routes!(preview),
        routes!(run),
        routes!(runs),
    ]
}

/// A policy.
#[derive(Serialize, ToSchema)]
pub(crate) struct PolicyView {
    id: String,
    name: String,
    /// Repository ids, or `*` for every hosted repository.
    #[schema(value_type = bodies::ReachBody)]
    repositories: retention::Reach,
    #[serde(rename = "match")]
    #[schema(value_type = MatchBody)]
    matching: retention::Matching,
    #[schema(value_type = ConditionsBody)]
    delete: retention::Conditions,
    #[schema(value_type = KeepBody)]
    keep: retention::Keep,
    max_deletes: u64,
    /// `paused` or `enforced`.
    mode: &'static str,
    /// True if the current version was previewed and can be enforced.
    previewed: bool,
    /// E-mail address of the creator.
    created_by: String,
    /// Time in ms since 1970.
    created_at: i64,
}

impl From<Policy> for PolicyView {
    fn from(Policy { row, rule }: Policy) -> PolicyView {
        PolicyView {
            id: row.id.to_string(),
            name: row.name,
            repositories: rule.repositories,
            matching: rule.matching,
            delete: rule.delete,
            keep: rule.keep,
            max_deletes: rule.max_deletes,
            mode: if row.enforced { "enforced" } else { "paused" },
            previewed: row.previewed,
            created_by: row.created_by,
            created_at: row.created_at,
        }
    }
}

/// Versions that a policy would delete now.
#[derive(Serialize, ToSchema)]
pub(crate) struct PreviewView {
    /// Versions that one run deletes, in its order.
    items: Vec<PreviewItemView>,
    /// Matching versions that are kept.
    kept: u64,
    /// Total number of versions that it deletes.
    versions: u64,
    /// Bytes of these versions.
    bytes: u64,
    /// Number of further versions that one run deletes in repositories that the caller may not
    /// read; `items` leaves them out.
    hidden: u64,
    /// True if it takes more than one run.
    truncated: bool,
}

/// A version that would be deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct PreviewItemView {
    /// Id of the repository.
    repository: String,
    package: String,
    /// The version; for an untagged image, its digest.
    version: String,
    /// Time in ms since 1970; null if unknown.
    published_at: Option<i64>,
    /// Time in ms since 1970; null if never.
    last_downloaded_at: Option<i64>,
    /// Bytes of its files.
    bytes: u64,
    /// Reason, for people.
    because: String,
}

impl From<PreviewItem> for PreviewItemView {
    fn from(item: PreviewItem) -> PreviewItemView {
        PreviewItemView {
            repository: item.repository,
            package: item.package,
            version: item.version,
            published_at: item.published_at,
            last_downloaded_at: item.last_downloaded_at,
            bytes: item.bytes,
            because: item.reason,
        }
    }
}

impl From<Preview> for PreviewView {
    fn from(Preview { items, hidden, retained, versions, bytes, truncated }: Preview) -> PreviewView {
        let items = items.into_iter().map(PreviewItemView::from).collect();
        PreviewView { items, hidden, kept: retained, versions, bytes, truncated }
    }
}

/// Result of one run.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunView {
    id: String,
    /// Time in ms since 1970.
    started_at: i64,
    /// Time in ms since 1970; null while it is running.
    ended_at: Option<i64>,
    /// Versions that it deleted.
    deleted: u64,
    /// Bytes of these versions.
    bytes: u64,
    /// Versions that it skipped, with the reason: the first 200.
    skipped: Vec<SkippedView>,
    /// Reason why it ended early.
    error: Option<String>,
}

/// A version that a run skipped.
#[derive(Serialize, ToSchema)]
pub(crate) struct SkippedView {
    /// Id of the repository.
    repository: String,
    package: String,
    version: String,
    /// Time in ms since 1970; null if unknown.
    published_at: Option<i64>,
    /// Time in ms since 1970; null if never.
    last_downloaded_at: Option<i64>,
    /// Bytes of its files.
    bytes: u64,
    /// Reason, for people.
    because: String,
}

impl From<Skipped> for SkippedView {
    fn from(skipped: Skipped) -> SkippedView {
        SkippedView {
            repository: skipped.repository,
            package: skipped.package,
            version: skipped.version,
            published_at: skipped.published_at,
            last_downloaded_at: skipped.last_downloaded_at,
            bytes: skipped.bytes,
            because: skipped.reason,
        }
    }
}

impl From<PolicyRun> for RunView {
    fn from(PolicyRun { row, skipped }: PolicyRun) -> RunView {
        RunView {
            id: row.id.to_string(),
            started_at: row.started_at,
            ended_at: row.ended_at,
            deleted: row.deleted,
            bytes: row.bytes,
            skipped: skipped.into_iter().map(SkippedView::from).collect(),
            error: row.error,
        }
    }
}

/// Creates a policy. It is paused at first. Requires manage-repositories, or the right to manage
/// each of its repositories.
#[utoipa::path(post, path = "/v1/retention-policies", operation_id = "create_retention_policy",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    request_body = CreatePolicy,
    responses((status = 201, body = PolicyView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
    let body: CreatePolicy = call.body()?;
    call.only(&[])?;
    let (name, rule) = body.request()?;
    let made = retention::create(call.actor()?, name, rule).await?;
    Ok((StatusCode::CREATED, Json(PolicyView::from(made))).into_response())
}

/// Lists the policies that the caller may manage.
#[utoipa::path(get, path = "/v1/retention-policies", operation_id = "list_retention_policies",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<PolicyView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let listed = retention::list(call.actor()?, paging::request::<PolicyId>(&call)?).await?;
    Ok(Json(Page::of(listed, |policy| policy.row.id.to_string(), PolicyView::from)).into_response())
}

/// Returns a policy.
#[utoipa::path(get, path = "/v1/retention-policies/{id}", operation_id = "show_retention_policy",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path)),
    responses((status = 200, body = PolicyView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let found = retention::find(call.actor()?, call.path("id")).await?;
    Ok(Json(PolicyView::from(found)).into_response())
}

/// Changes a policy. Editing its rule pauses it; it can be enforced only after its current version
/// was previewed.
#[utoipa::path(patch, path = "/v1/retention-policies/{id}", operation_id = "change_retention_policy",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path)),
    request_body = ChangePolicy,
    responses((status = 200, body = PolicyView), (status = 409, body = ErrorBody)))]
async fn change(mut call: Call) -> HandlerResult {
    let body: ChangePolicy = call.body()?;
    call.only(&[])?;
    let changed = retention::change(call.actor()?, call.path("id"), body.request()?).await?;
    Ok(Json(PolicyView::from(changed)).into_response())
}

/// Deletes a policy with its runs. Versions that it deleted can still be restored.
#[utoipa::path(delete, path = "/v1/retention-policies/{id}", operation_id = "delete_retention_policy",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call) -> HandlerResult {
    call.only(&[])?;
    retention::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Previews the versions that a policy would delete now, with the same evaluation as a run.
#[utoipa::path(post, path = "/v1/retention-policies/{id}/preview", operation_id = "preview_retention_policy",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path)),
    responses((status = 200, body = PreviewView)))]
async fn preview(call: Call) -> HandlerResult {
    call.only(&[])?;
    let preview = retention::preview(call.actor()?, call.path("id")).await?;
    Ok(Json(PreviewView::from(preview)).into_response())
}

/// Runs an enforced policy now. The response does not wait for the run to end.
#[utoipa::path(post, path = "/v1/retention-policies/{id}/runs", operation_id = "run_retention_policy",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path)),
    responses((status = 202, body = PolicyView), (status = 409, body = ErrorBody)))]
async fn run(call: Call) -> HandlerResult {
    call.only(&[])?;
    let found = retention::run(call.actor()?, call.path("id")).await?;
    Ok((StatusCode::ACCEPTED, Json(PolicyView::from(found))).into_response())
}

/// Lists the last hundred runs of a policy, newest first.
#[utoipa::path(get, path = "/v1/retention-policies/{id}/runs", operation_id = "list_retention_runs",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<RunView>)))]
async fn runs(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let page = paging::request::<RunId>(&call)?;
    let listed = retention::runs(call.actor()?, call.path("id"), page).await?;
    Ok(Json(Page::of(listed, |run| run.row.id.to_string(), RunView::from)).into_response())
}
