//! Policies for versions: rules, their exceptions, and the components that judge.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::permissions::Permission::{ManageRepositories, ManageServer};
use packhouse_store::{ExceptionId, ExceptionRow, RuleId, now_ms};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::policies::{self, ListedComponent, Preview, PreviewItem, Rule};
use crate::operations::retention::Reach;
use crate::paging::{self, Page};
use crate::plugins::ComponentBytes;
use crate::retention::bodies::ReachBody;
use crate::scope::Family;

pub(crate) mod bodies;
mod recordings;

use bodies::{ChangeRule, CreateException, CreateRule};

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

/// A policy: a component with its settings, its scope and its mode.
#[derive(Serialize, ToSchema)]
pub(crate) struct RuleView {
    id: String,
    name: String,
    /// Name of a component beside the program, or digest of an installed one.
    component: String,
    /// Settings in the form that the component describes.
    #[schema(value_type = Object)]
    settings: Value,
    /// Repository ids, or `*` for every repository.
    #[schema(value_type = ReachBody)]
    repositories: Reach,
    /// Patterns of package names; null for all.
    packages: Option<Vec<String>>,
    /// `paused`, `warn` or `enforced`.
    mode: &'static str,
    /// True if the current version was previewed and can be enforced.
    previewed: bool,
    /// Last failure of its component on this server; null if it has not failed. Versions that it
    /// could not judge were refused.
    failure: Option<FailureView>,
    /// E-mail address of the creator.
    created_by: String,
    /// Time in ms since 1970.
    created_at: i64,
}

/// A failure of a policy.
#[derive(Serialize, ToSchema)]
pub(crate) struct FailureView {
    /// Time in ms since 1970.
    at: i64,
    /// Number of failures since the policy changed or the server started.
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

/// Effect of a policy on the existing versions.
#[derive(Serialize, ToSchema)]
pub(crate) struct RulePreviewView {
    /// Versions that would be refused or pass with a warning: the first 1,000.
    items: Vec<RulePreviewItemView>,
    /// Versions to which it applies.
    versions: u64,
    denied: u64,
    held: u64,
    warned: u64,
    /// Versions that it could not judge and would refuse.
    unavailable: u64,
    /// Number of further such versions in repositories that the caller may not read; `items` leaves
    /// them out.
    hidden: u64,
    /// True if there are more than `items`.
    truncated: bool,
}

/// A version that would be refused or pass with a warning.
#[derive(Serialize, ToSchema)]
pub(crate) struct RulePreviewItemView {
    /// Id of the repository.
    repository: String,
    package: String,
    version: String,
    /// `denied`, `held`, `warned` or `policy_unavailable`.
    ruling: &'static str,
    /// Reason, for people.
    because: String,
    /// Time in ms since 1970 from which the ruling may change.
    until: Option<i64>,
}

impl From<PreviewItem> for RulePreviewItemView {
    fn from(item: PreviewItem) -> RulePreviewItemView {
        let PreviewItem { repository, package, version, ruling, reason, until, .. } = item;
        RulePreviewItemView { repository, package, version, ruling, because: reason, until }
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

/// An exception from a policy.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExceptionView {
    id: String,
    /// Id of the repository; null for all repositories.
    repository: Option<String>,
    /// A pattern.
    package: String,
    /// A pattern.
    version: String,
    reason: String,
    /// Time in ms since 1970.
    until: i64,
    /// `active` or `expired`.
    state: &'static str,
    /// E-mail address of the creator.
    created_by: String,
    /// Time in ms since 1970.
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

/// A policy component.
#[derive(Serialize, ToSchema)]
pub(crate) struct PolicyComponentView {
    /// Reference used in policies: the name of a component beside the program, otherwise the
    /// digest.
    component: String,
    name: String,
    version: String,
    digest: String,
    summary: String,
    /// A JSON Schema of its settings.
    #[schema(value_type = Option<Object>)]
    settings: Value,
    /// Fingerprint of the trusted key that signed it; null if it is not signed.
    signed_by: Option<String>,
    /// E-mail address of the member who installed it; null for a component beside the program.
    installed_by: Option<String>,
    /// Time in ms since 1970.
    installed_at: Option<i64>,
    /// Calls on this server since it started; null if it is not loaded.
    calls: Option<u64>,
    /// Failed calls among them.
    failures: Option<u64>,
    /// Reason why it cannot run.
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
            signed_by: listed.signed_by,
            installed_by,
            installed_at,
            calls,
            failures,
            error: listed.error,
        }
    }
}

/// Creates a policy. It is paused at first.
#[utoipa::path(post, path = "/v1/policies", operation_id = "create_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    request_body = CreateRule,
    responses((status = 201, body = RuleView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
    let body: CreateRule = call.body()?;
    call.only(&[])?;
    let made = policies::create(call.actor()?, body.request()?).await?;
    Ok((StatusCode::CREATED, Json(RuleView::from(made))).into_response())
}

/// Lists the organization's policies.
#[utoipa::path(get, path = "/v1/policies", operation_id = "list_policies",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<RuleView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let listed = policies::list(call.actor()?, paging::request::<RuleId>(&call)?).await?;
    Ok(Json(Page::of(listed, |rule| rule.row.id.to_string(), RuleView::from)).into_response())
}

/// Returns a policy.
#[utoipa::path(get, path = "/v1/policies/{id}", operation_id = "show_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path)),
    responses((status = 200, body = RuleView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let found = policies::find(call.actor()?, call.path("id")).await?;
    Ok(Json(RuleView::from(found)).into_response())
}

/// Changes a policy. Editing its rule pauses it; it can be enforced only after its current version
/// was previewed.
#[utoipa::path(patch, path = "/v1/policies/{id}", operation_id = "change_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path)),
    request_body = ChangeRule,
    responses((status = 200, body = RuleView), (status = 409, body = ErrorBody)))]
async fn change(mut call: Call) -> HandlerResult {
    let body: ChangeRule = call.body()?;
    call.only(&[])?;
    let changed = policies::change(call.actor()?, call.path("id"), body.request()?).await?;
    Ok(Json(RuleView::from(changed)).into_response())
}

/// Deletes a policy with its exceptions.
#[utoipa::path(delete, path = "/v1/policies/{id}", operation_id = "delete_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call) -> HandlerResult {
    call.only(&[])?;
    policies::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Previews the effect of a policy on the existing versions, with the same evaluation as for
/// requests.
#[utoipa::path(post, path = "/v1/policies/{id}/preview", operation_id = "preview_policy",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path)),
    responses((status = 200, body = RulePreviewView)))]
async fn preview(call: Call) -> HandlerResult {
    call.only(&[])?;
    let preview = policies::preview(call.actor()?, call.path("id")).await?;
    Ok(Json(RulePreviewView::from(preview)).into_response())
}

/// Adds an exception: matching versions pass the policy until the exception expires.
#[utoipa::path(post, path = "/v1/policies/{id}/exceptions", operation_id = "create_policy_exception",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path)),
    request_body = CreateException,
    responses((status = 201, body = ExceptionView), (status = 409, body = ErrorBody)))]
async fn except(mut call: Call) -> HandlerResult {
    let body: CreateException = call.body()?;
    call.only(&[])?;
    let made = policies::except(call.actor()?, call.path("id"), body.request(now_ms())?).await?;
    Ok((StatusCode::CREATED, Json(ExceptionView::from(made))).into_response())
}

/// Lists the exceptions of a policy, including those that ended within the last year.
#[utoipa::path(get, path = "/v1/policies/{id}/exceptions", operation_id = "list_policy_exceptions",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<ExceptionView>)))]
async fn exceptions(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let page = paging::request::<ExceptionId>(&call)?;
    let listed = policies::exceptions(call.actor()?, call.path("id"), page).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), ExceptionView::from)).into_response())
}

/// Revokes an exception.
#[utoipa::path(delete, path = "/v1/policies/{id}/exceptions/{exception}", operation_id = "delete_policy_exception",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path), ("exception" = String, Path)),
    responses((status = 204)))]
async fn end_exception(call: Call) -> HandlerResult {
    call.only(&[])?;
    policies::end_exception(call.actor()?, call.path("id"), call.path("exception")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Lists the policy components: those beside the program and the installed ones.
#[utoipa::path(get, path = "/v1/policy-components", operation_id = "list_policy_components",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("limit" = Option<u32>, Query), ("after" = Option<String>, Query)),
    responses((status = 200, body = Page<PolicyComponentView>)))]
async fn components(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let items = policies::components(call.actor()?).await?;
    let items = items.into_iter().map(PolicyComponentView::from).collect();
    let key = |component: &PolicyComponentView| [&*component.component, &component.digest].join(" ");
    Ok(Json(paging::page_of(&call, items, key)?).into_response())
}

/// Installs a policy component on every server. It does not judge anything until a policy names its
/// digest.
#[utoipa::path(post, path = "/v1/policy-components", operation_id = "install_policy_component",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Policies))),
    params(("X-Plugin-Signature" = Option<String>, Header, description = "Signature of the bytes, ECDSA on \
        P-256 over SHA-256, as DER in base64")),
    request_body(content((ComponentBytes = "application/wasm"))),
    responses((status = 201, body = PolicyComponentView), (status = 409, body = ErrorBody),
        (status = 415, description = "`unsupported_media_type`: the body is not declared as \
            `application/wasm`", body = ErrorBody),
        (status = 422, description = "`plugin_refused`: the component is not a policy, is not signed by a \
            trusted key, or cannot run on this server; see `error`", body = ErrorBody)))]
async fn install(call: Call) -> HandlerResult {
    let bytes = call.component().ok_or(&packhouse_wire::catalogue::NOT_A_COMPONENT)?;
    call.only(&[])?;
    let signature = call.signature()?;
    let made = policies::install(call.actor()?, bytes, signature.as_deref()).await?;
    Ok((StatusCode::CREATED, Json(PolicyComponentView::from(made))).into_response())
}

/// Removes a component that is not used by a policy.
#[utoipa::path(delete, path = "/v1/policy-components/{digest}", operation_id = "remove_policy_component",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Policies))),
    params(("digest" = String, Path)),
    responses((status = 204), (status = 409, body = ErrorBody)))]
async fn remove_component(call: Call) -> HandlerResult {
    call.only(&[])?;
    policies::remove_component(call.actor()?, call.path("digest")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
