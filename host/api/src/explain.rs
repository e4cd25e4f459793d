//! `/v1/access/explain`: whether a member or a token may do something in a repository, and why.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_identity::permissions::RepositoryAction;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::OfObject;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::explain::{self, AccessGrant, AccessQuestion, AccessSubject, Explanation};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(explain)]
}

/// A grant of the action in the repository.
#[derive(Serialize, ToSchema)]
pub(crate) struct GrantView {
    /// `member`, `team`, `token` or `service_account`.
    kind: &'static str,
    /// Id of the member, team, token or service account.
    id: String,
    name: String,
    /// All actions that the grant gives in the repository.
    actions: Vec<RepositoryAction>,
    /// Patterns of the packages that may be published and deleted; null for all.
    packages: Option<Vec<String>>,
}

impl From<AccessGrant> for GrantView {
    fn from(AccessGrant { kind, id, name, actions, packages }: AccessGrant) -> GrantView {
        GrantView { kind: kind.name(), id, name, actions, packages }
    }
}

/// An explanation of a right.
#[derive(Serialize, ToSchema)]
pub(crate) struct ExplanationView {
    allowed: bool,
    /// Grants of the action in the repository, also those for other packages.
    grants: Vec<GrantView>,
    /// Code with which the server refuses it; null if it is allowed.
    denied_by: Option<&'static str>,
}

impl From<Explanation> for ExplanationView {
    fn from(Explanation { allowed, grants, denied_by }: Explanation) -> ExplanationView {
        ExplanationView { allowed, grants: grants.into_iter().map(GrantView::from).collect(), denied_by }
    }
}

/// Explains whether a member or a token may do something in a repository, and which grants give the
/// right. Requires manage-members, except for the caller's own account and tokens.
#[utoipa::path(get, path = "/v1/access/explain", operation_id = "explain_access",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Members))),
    params(("member" = Option<String>, Query, description = "Id of a member or a service account, or the \
            e-mail address of a member; required without `token`"),
        ("token" = Option<String>, Query, description = "Id of a token or a service key; required without \
            `member`"),
        ("repository" = String, Query, description = "Id of a repository"),
        ("action" = String, Query, description = "`read`, `publish`, `delete` or `manage`"),
        ("package" = Option<String>, Query, description = "Name of a package; without it, any package")),
    responses((status = 200, body = ExplanationView), (status = 404, body = ErrorBody)))]
async fn explain(call: Call) -> HandlerResult {
    call.only(&["member", "token", "repository", "action", "package"])?;
    let explanation = explain::explain(call.actor()?, question(&call)?).await?;
    Ok(Json(ExplanationView::from(explanation)).into_response())
}

fn question(call: &Call) -> Result<AccessQuestion<'_>, ApiError> {
    let subject = match (call.query("member"), call.query("token")) {
        (Some(id), None) => AccessSubject::Member(id),
        (None, Some(id)) => AccessSubject::Token(id),
        _ => return Err(ApiError::invalid("Send either `member` or `token`.")),
    };
    let wrong_repository = || ApiError::invalid("`repository` must be the id of a repository.");
    let repository = call.query("repository").ok_or_else(wrong_repository)?;
    let action = call.query("action").and_then(|text| serde_json::from_value(Value::from(text)).ok());
    let action: RepositoryAction = action
        .ok_or_else(|| ApiError::invalid("`action` must be `read`, `publish`, `delete` or `manage`."))?;
    let package = call.query("package");
    if package.is_some_and(str::is_empty) {
        return Err(ApiError::invalid("`package` must be the name of a package."));
    }
    Ok(AccessQuestion { subject, repository, action, package })
}
