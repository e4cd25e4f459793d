//! Retention: policies that delete what is old or not used.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{PolicyId, RunId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::retention::{self, Policy, PolicyRun, Preview, PreviewItem, Skipped};
use crate::paging::{self, Page};

pub(crate) mod bodies;

use bodies::{ChangePolicy, ConditionsBody, CreatePolicy, KeepBody, MatchBody};

/// The endpoints of this module.
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
    /// Ids, or `*` for every hosted repository.
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
    /// Whether it was previewed as it is, and so may be enforced.
    previewed: bool,
    /// An e-mail.
    created_by: String,
    /// In ms since 1970.
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

/// What a policy would delete now.
#[derive(Serialize, ToSchema)]
pub(crate) struct PreviewView {
    /// What one run deletes, in its order.
    items: Vec<PreviewItemView>,
    /// Versions that it is about and that stay.
    kept: u64,
    /// Versions that it deletes in all.
    versions: u64,
    /// Of these.
    bytes: u64,
    /// How many more one run deletes in repositories that the caller may not read: `items` leaves them out.
    hidden: u64,
    /// Whether it takes more than one run.
    truncated: bool,
}

/// A version that would be deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct PreviewItemView {
    /// The repository's id.
    repository: String,
    package: String,
    /// Of what lost its tags: its digest.
    version: String,
    /// In ms since 1970; null where it is not known.
    published_at: Option<i64>,
    /// In ms since 1970; null: never.
    last_downloaded_at: Option<i64>,
    /// Of its files.
    bytes: u64,
    /// Why, for people.
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
            because: item.because,
        }
    }
}

impl From<Preview> for PreviewView {
    fn from(Preview { items, hidden, kept, versions, bytes, truncated }: Preview) -> PreviewView {
        let items = items.into_iter().map(PreviewItemView::from).collect();
        PreviewView { items, hidden, kept, versions, bytes, truncated }
    }
}

/// What one run did.
#[derive(Serialize, ToSchema)]
pub(crate) struct RunView {
    id: String,
    /// In ms since 1970.
    started_at: i64,
    /// In ms since 1970; null while it goes on.
    ended_at: Option<i64>,
    /// Versions that it deleted.
    deleted: u64,
    /// Of these.
    bytes: u64,
    /// What it was to delete and did not, with why: the first 200.
    skipped: Vec<SkippedView>,
    /// Why it did not come to its end.
    error: Option<String>,
}

/// A version that was to be deleted and was not.
#[derive(Serialize, ToSchema)]
pub(crate) struct SkippedView {
    /// The repository's id.
    repository: String,
    package: String,
    version: String,
    /// In ms since 1970; null where it is not known.
    published_at: Option<i64>,
    /// In ms since 1970; null: never.
    last_downloaded_at: Option<i64>,
    /// Of its files.
    bytes: u64,
    /// Why, for people.
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
            because: skipped.because,
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

/// Makes a policy, which is paused.
#[utoipa::path(post, path = "/v1/retention-policies", operation_id = "create_retention_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    request_body = CreatePolicy,
    responses((status = 201, body = PolicyView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> Answer {
    let body: CreatePolicy = call.body()?;
    call.only(&[])?;
    let (name, rule) = body.request()?;
    let made = retention::create(call.actor()?, name, rule).await?;
    Ok((StatusCode::CREATED, Json(PolicyView::from(made))).into_response())
}

/// Lists the organization's policies.
#[utoipa::path(get, path = "/v1/retention-policies", operation_id = "list_retention_policies",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<PolicyView>)))]
async fn list(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let listed = retention::list(call.actor()?, paging::request::<PolicyId>(&call)?).await?;
    Ok(Json(Page::of(listed, |policy| policy.row.id.to_string(), PolicyView::from)).into_response())
}

/// Shows a policy.
#[utoipa::path(get, path = "/v1/retention-policies/{id}", operation_id = "show_retention_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    responses((status = 200, body = PolicyView)))]
async fn show(call: Call) -> Answer {
    call.only(&[])?;
    let found = retention::find(call.actor()?, call.path("id")).await?;
    Ok(Json(PolicyView::from(found)).into_response())
}

/// Changes a policy. One whose rule is changed is paused; it is enforced only once it was previewed as it is.
#[utoipa::path(patch, path = "/v1/retention-policies/{id}", operation_id = "change_retention_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    request_body = ChangePolicy,
    responses((status = 200, body = PolicyView), (status = 409, body = ErrorBody)))]
async fn change(mut call: Call) -> Answer {
    let body: ChangePolicy = call.body()?;
    call.only(&[])?;
    let changed = retention::change(call.actor()?, call.path("id"), body.request()?).await?;
    Ok(Json(PolicyView::from(changed)).into_response())
}

/// Deletes a policy, with what is known of its runs. What it deleted can still be brought back.
#[utoipa::path(delete, path = "/v1/retention-policies/{id}", operation_id = "delete_retention_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call) -> Answer {
    call.only(&[])?;
    retention::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Shows what a policy would delete now: the very evaluation that a run makes.
#[utoipa::path(post, path = "/v1/retention-policies/{id}/preview", operation_id = "preview_retention_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    responses((status = 200, body = PreviewView)))]
async fn preview(call: Call) -> Answer {
    call.only(&[])?;
    let shown = retention::preview(call.actor()?, call.path("id")).await?;
    Ok(Json(PreviewView::from(shown)).into_response())
}

/// Runs an enforced policy now. The answer does not wait for its end.
#[utoipa::path(post, path = "/v1/retention-policies/{id}/runs", operation_id = "run_retention_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    responses((status = 202, body = PolicyView), (status = 409, body = ErrorBody)))]
async fn run(call: Call) -> Answer {
    call.only(&[])?;
    let found = retention::run(call.actor()?, call.path("id")).await?;
    Ok((StatusCode::ACCEPTED, Json(PolicyView::from(found))).into_response())
}

/// Lists what a policy did, the latest run first: the last hundred runs.
#[utoipa::path(get, path = "/v1/retention-policies/{id}/runs", operation_id = "list_retention_runs",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<RunView>)))]
async fn runs(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let page = paging::request::<RunId>(&call)?;
    let listed = retention::runs(call.actor()?, call.path("id"), page).await?;
    Ok(Json(Page::of(listed, |run| run.row.id.to_string(), RunView::from)).into_response())
}
