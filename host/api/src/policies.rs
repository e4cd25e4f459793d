//! Policies over versions: rules, their exceptions, and the components that judge.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::permissions::Permission::{ManageRepositories, ManageServer};
use packhouse_store::{ExceptionId, ExceptionRow, RuleId, now_ms};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::policies::{self, ListedComponent, Preview, PreviewItem, Rule};
use crate::operations::retention::Reach;
use crate::paging::{self, Page};
use crate::plugins::ComponentBytes;
use crate::retention::bodies::ReachBody;

pub(crate) mod bodies;
mod recordings;

use bodies::{ChangeRule, CreateException, CreateRule};

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    let mut all = recordings::endpoints();
    all.extend([
        routes!(create),
        routes!(list),
        routes!(show),
        routes!(change),
        routes!(remove),
        routes!(preview),
        routes!(except),
        routes!(exceptions),
        routes!(end_exception),
        routes!(components),
        routes!(install),
        routes!(remove_component),
    ]);
    all
}

/// A policy: a component with its settings, where it holds and how strictly.
#[derive(Serialize, ToSchema)]
pub(crate) struct RuleView {
    id: String,
    name: String,
    /// The name of one beside the program, or the digest of one that was installed.
    component: String,
    /// As the component describes them.
    #[schema(value_type = Object)]
    settings: Value,
    /// Ids, or `*` for every repository.
    #[schema(value_type = ReachBody)]
    repositories: Reach,
    /// Patterns of packages; null: all.
    packages: Option<Vec<String>>,
    /// `paused`, `warn` or `enforced`.
    mode: &'static str,
    /// Whether it was previewed as it is, and so may be enforced.
    previewed: bool,
    /// What went wrong with its component on this server last: what it could not judge did not pass. Null where nothing did.
    failure: Option<FailureView>,
    /// An e-mail.
    created_by: String,
    /// In ms since 1970.
    created_at: i64,
}

/// What went wrong with a policy.
#[derive(Serialize, ToSchema)]
pub(crate) struct FailureView {
    /// In ms since 1970.
    at: i64,
    /// How often since it was changed, or the server started.
    times: u64,
    error: String,
}

impl From<Rule> for RuleView {
    fn from(Rule { row, failure }: Rule) -> RuleView {
        RuleView {
            id: row.id.to_string(),
            repositories: policies::reach_of(&row.text),
            name: row.name,
            component: row.text.component,
            settings: serde_json::from_str(&row.text.settings).unwrap_or_default(),
            packages: row.text.packages,
            mode: row.mode.word(),
            previewed: row.previewed,
            failure: failure.map(|failure| FailureView {
                at: failure.at,
                times: failure.times,
                error: failure.error,
            }),
            created_by: row.created_by,
            created_at: row.created_at,
        }
    }
}

/// What a policy would do to all that is there.
#[derive(Serialize, ToSchema)]
pub(crate) struct RulePreviewView {
    /// Versions that do not pass, or pass with a warning: the first 1,000.
    items: Vec<RulePreviewItemView>,
    /// Versions that it is about.
    versions: u64,
    denied: u64,
    held: u64,
    warned: u64,
    /// Versions that it could not judge, and that do not pass.
    unavailable: u64,
    /// How many more do not pass, or with a warning, in repositories that the caller may not read: `items` leaves them out.
    hidden: u64,
    /// Whether there are more than `items`.
    truncated: bool,
}

/// A version that does not pass, or with a warning.
#[derive(Serialize, ToSchema)]
pub(crate) struct RulePreviewItemView {
    /// The repository's id.
    repository: String,
    package: String,
    version: String,
    /// `denied`, `held`, `warned` or `policy_unavailable`.
    ruling: &'static str,
    /// Why, for people.
    because: String,
    /// From when on it may be judged otherwise, in ms since 1970.
    until: Option<i64>,
}

impl From<PreviewItem> for RulePreviewItemView {
    fn from(item: PreviewItem) -> RulePreviewItemView {
        let PreviewItem { repository, package, version, ruling, because, until, .. } = item;
        RulePreviewItemView { repository, package, version, ruling, because, until }
    }
}

impl From<Preview> for RulePreviewView {
    fn from(preview: Preview) -> RulePreviewView {
        RulePreviewView {
            denied: preview.count("denied"),
            held: preview.count("held"),
            warned: preview.count("warned"),
            unavailable: preview.count("policy_unavailable"),
            versions: preview.versions,
            hidden: preview.hidden,
            truncated: preview.truncated,
            items: preview.items.into_iter().map(RulePreviewItemView::from).collect(),
        }
    }
}

/// What passes a policy nevertheless.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExceptionView {
    id: String,
    /// The repository's id; null: everywhere.
    repository: Option<String>,
    /// A pattern.
    package: String,
    /// A pattern.
    version: String,
    reason: String,
    /// In ms since 1970.
    until: i64,
    /// `active` or `expired`.
    state: &'static str,
    /// An e-mail.
    created_by: String,
    /// In ms since 1970.
    created_at: i64,
}

impl From<ExceptionRow> for ExceptionView {
    fn from(row: ExceptionRow) -> ExceptionView {
        let ExceptionRow { id, new, created_at, .. } = row;
        ExceptionView {
            id: id.to_string(),
            repository: new.repository.map(|id| id.to_string()),
            package: new.package,
            version: new.version,
            reason: new.reason,
            until: new.until,
            state: if new.until > now_ms() { "active" } else { "expired" },
            created_by: new.created_by,
            created_at,
        }
    }
}

/// A component of a policy.
#[derive(Serialize, ToSchema)]
pub(crate) struct PolicyComponentView {
    /// What policies name: its name for one beside the program, else its digest.
    component: String,
    name: String,
    version: String,
    digest: String,
    summary: String,
    /// A JSON Schema of its settings.
    #[schema(value_type = Option<Object>)]
    settings: Value,
    /// An e-mail; null for one beside the program.
    installed_by: Option<String>,
    /// In ms since 1970.
    installed_at: Option<i64>,
    /// On this server since it started; null where it is not loaded.
    calls: Option<u64>,
    /// How many of these failed.
    failures: Option<u64>,
    /// Why it cannot be run.
    error: Option<String>,
}

impl From<ListedComponent> for PolicyComponentView {
    fn from(listed: ListedComponent) -> PolicyComponentView {
        let (installed_by, installed_at) = listed.installed.unzip();
        let (calls, failures) = listed.calls.unzip();
        PolicyComponentView {
            component: listed.component,
            name: listed.name,
            version: listed.version,
            digest: listed.digest,
            summary: listed.summary,
            settings: listed.settings,
            installed_by,
            installed_at,
            calls,
            failures,
            error: listed.error,
        }
    }
}

/// Every component of a policy.
#[derive(Serialize, ToSchema)]
pub(crate) struct PolicyComponents {
    items: Vec<PolicyComponentView>,
    /// Always null: there are few.
    next: Option<String>,
}

/// Makes a policy, which is paused.
#[utoipa::path(post, path = "/v1/policies", operation_id = "create_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    request_body = CreateRule,
    responses((status = 201, body = RuleView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> Answer {
    let body: CreateRule = call.body()?;
    call.only(&[])?;
    let made = policies::create(call.actor()?, body.request()?).await?;
    Ok((StatusCode::CREATED, Json(RuleView::from(made))).into_response())
}

/// Lists the organization's policies.
#[utoipa::path(get, path = "/v1/policies", operation_id = "list_policies",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<RuleView>)))]
async fn list(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let listed = policies::list(call.actor()?, paging::request::<RuleId>(&call)?).await?;
    Ok(Json(Page::of(listed, |rule| rule.row.id.to_string(), RuleView::from)).into_response())
}

/// Shows a policy.
#[utoipa::path(get, path = "/v1/policies/{id}", operation_id = "show_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    responses((status = 200, body = RuleView)))]
async fn show(call: Call) -> Answer {
    call.only(&[])?;
    let found = policies::find(call.actor()?, call.path("id")).await?;
    Ok(Json(RuleView::from(found)).into_response())
}

/// Changes a policy. One that says something else is paused; it is enforced only once it was previewed as it is.
#[utoipa::path(patch, path = "/v1/policies/{id}", operation_id = "change_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    request_body = ChangeRule,
    responses((status = 200, body = RuleView), (status = 409, body = ErrorBody)))]
async fn change(mut call: Call) -> Answer {
    let body: ChangeRule = call.body()?;
    call.only(&[])?;
    let changed = policies::change(call.actor()?, call.path("id"), body.request()?).await?;
    Ok(Json(RuleView::from(changed)).into_response())
}

/// Deletes a policy with its exceptions.
#[utoipa::path(delete, path = "/v1/policies/{id}", operation_id = "delete_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call) -> Answer {
    call.only(&[])?;
    policies::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Shows what a policy would do to all that is there: the very judgement that requests meet.
#[utoipa::path(post, path = "/v1/policies/{id}/preview", operation_id = "preview_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    responses((status = 200, body = RulePreviewView)))]
async fn preview(call: Call) -> Answer {
    call.only(&[])?;
    let shown = policies::preview(call.actor()?, call.path("id")).await?;
    Ok(Json(RulePreviewView::from(shown)).into_response())
}

/// Lets versions pass a policy nevertheless, with a reason, until an end.
#[utoipa::path(post, path = "/v1/policies/{id}/exceptions", operation_id = "create_policy_exception",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    request_body = CreateException,
    responses((status = 201, body = ExceptionView), (status = 409, body = ErrorBody)))]
async fn except(mut call: Call) -> Answer {
    let body: CreateException = call.body()?;
    call.only(&[])?;
    let made = policies::except(call.actor()?, call.path("id"), body.request(now_ms())?).await?;
    Ok((StatusCode::CREATED, Json(ExceptionView::from(made))).into_response())
}

/// Lists the exceptions of a policy, those that ended within a year among them.
#[utoipa::path(get, path = "/v1/policies/{id}/exceptions", operation_id = "list_policy_exceptions",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<ExceptionView>)))]
async fn exceptions(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let page = paging::request::<ExceptionId>(&call)?;
    let listed = policies::exceptions(call.actor()?, call.path("id"), page).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), ExceptionView::from)).into_response())
}

/// Takes an exception back.
#[utoipa::path(delete, path = "/v1/policies/{id}/exceptions/{exception}", operation_id = "delete_policy_exception",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path), ("exception" = String, Path)),
    responses((status = 204)))]
async fn end_exception(call: Call) -> Answer {
    call.only(&[])?;
    policies::end_exception(call.actor()?, call.path("id"), call.path("exception")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Lists the components of policies: those beside the program, and those that were installed.
#[utoipa::path(get, path = "/v1/policy-components", operation_id = "list_policy_components",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    responses((status = 200, body = PolicyComponents)))]
async fn components(call: Call) -> Answer {
    call.only(&[])?;
    let items = policies::components(call.actor()?).await?;
    let items = items.into_iter().map(PolicyComponentView::from).collect();
    Ok(Json(PolicyComponents { items, next: None }).into_response())
}

/// Installs a component of a policy: it is kept, on every server, and judges nothing until a policy names its digest.
#[utoipa::path(post, path = "/v1/policy-components", operation_id = "install_policy_component",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    request_body(content((ComponentBytes = "application/wasm"))),
    responses((status = 201, body = PolicyComponentView), (status = 409, body = ErrorBody),
        (status = 415, description = "`unsupported_media_type`: the body is not declared as `application/wasm`", body = ErrorBody),
        (status = 422, description = "`plugin_refused`: it is no policy, or cannot be run here, and why", body = ErrorBody)))]
async fn install(call: Call) -> Answer {
    let bytes = call.component().ok_or(&packhouse_wire::catalogue::NOT_A_COMPONENT)?;
    call.only(&[])?;
    let made = policies::install(call.actor()?, bytes).await?;
    Ok((StatusCode::CREATED, Json(PolicyComponentView::from(made))).into_response())
}

/// Removes a component that no policy names.
#[utoipa::path(delete, path = "/v1/policy-components/{digest}", operation_id = "remove_policy_component",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    params(("digest" = String, Path)),
    responses((status = 204), (status = 409, body = ErrorBody)))]
async fn remove_component(call: Call) -> Answer {
    call.only(&[])?;
    policies::remove_component(call.actor()?, call.path("digest")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
