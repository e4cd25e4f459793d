//! Endpoints for service accounts, below `/v1/service-accounts`.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::permissions::Permission::ManageMembers;
use packhouse_identity::permissions::Permissions;
use packhouse_store::MemberId;
use packhouse_wire::catalogue;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::fields;
use crate::members::bodies;
use crate::operations::service_accounts::{
    self, ServiceAccount, ServiceAccountChange, ServiceAccountRequest,
};
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(create), routes!(list), routes!(show), routes!(change), routes!(remove)]
}

/// Maximum number of teams in a body.
const MOST_TEAMS: usize = 1_000;

/// A service account to create, with its permissions.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateServiceAccount {
    /// 1 to 256 characters without `@`, unique among the service accounts of the organization.
    name: String,
    /// Permissions, at most those of the caller.
    permissions: Permissions,
    /// Ids of teams whose permissions it has as well.
    #[serde(default)]
    teams: Vec<String>,
}

impl CreateServiceAccount {
    pub(crate) fn request(self) -> Result<ServiceAccountRequest, ApiError> {
        Ok(ServiceAccountRequest {
            name: name(self.name)?,
            permissions: bodies::permissions(self.permissions)?,
            teams: teams(self.teams)?,
        })
    }
}

/// Changes to a service account. Absent fields stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeServiceAccount {
    /// 1 to 256 characters without `@`, unique among the service accounts of the organization.
    name: Option<String>,
    /// All its own permissions, at most those of the caller.
    permissions: Option<Permissions>,
    /// Ids of all its teams.
    teams: Option<Vec<String>>,
}

impl ChangeServiceAccount {
    pub(crate) fn change(self) -> Result<ServiceAccountChange, ApiError> {
        Ok(ServiceAccountChange {
            name: self.name.map(name).transpose()?,
            permissions: self.permissions.map(bodies::permissions).transpose()?,
            teams: self.teams.map(teams).transpose()?,
        })
    }
}

/// Checks a name. It must not look like an e-mail address, because the audit log names persons by
/// their e-mail address and service accounts by their name.
fn name(text: String) -> Result<String, ApiError> {
    if text.contains('@') {
        let code = &catalogue::INVALID_NAME;
        let message = "The name of a service account must not contain `@`.".to_owned();
        return Err(ApiError::Refused { code, message, retry_after: None });
    }
    fields::name(&Some(Value::String(text)))
}

fn teams(ids: Vec<String>) -> Result<Vec<String>, ApiError> {
    if ids.len() > MOST_TEAMS {
        return Err(ApiError::invalid(&format!("`teams` can have at most {MOST_TEAMS} ids.")));
    }
    Ok(ids)
}

/// A service account with its permissions and teams.
#[derive(Serialize, ToSchema)]
pub(crate) struct ServiceAccountView {
    id: String,
    name: String,
    /// The account's own permissions, without those of teams.
    permissions: Permissions,
    /// Ids of the teams whose permissions it has as well.
    teams: Vec<String>,
    /// Its own permissions together with those of all its teams.
    effective_permissions: Permissions,
    created_at: i64,
}

impl From<ServiceAccount> for ServiceAccountView {
    fn from(ServiceAccount { row, teams }: ServiceAccount) -> ServiceAccountView {
        let permissions = Permissions::read(&row.permissions);
        let mut effective = permissions.clone();
        for team in &teams {
            let Permissions { organization, repositories } = Permissions::read(&team.permissions);
            effective.organization.extend(organization);
            effective.repositories.extend(repositories);
        }
        ServiceAccountView {
            id: row.id.to_string(),
            name: row.name,
            permissions,
            teams: teams.iter().map(|team| team.id.to_string()).collect(),
            effective_permissions: effective.deduplicated(),
            created_at: row.created_at,
        }
    }
}

/// Creates a service account, an account of a program without e-mail address and password. It acts
/// through API tokens.
#[utoipa::path(post, path = "/v1/service-accounts", operation_id = "create_service_account",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    request_body = CreateServiceAccount,
    responses((status = 201, body = ServiceAccountView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
    let body: CreateServiceAccount = call.body()?;
    call.only(&[])?;
    let account = service_accounts::create(call.actor()?, body.request()?).await?;
    Ok((StatusCode::CREATED, Json(ServiceAccountView::from(account))).into_response())
}

/// Lists the organization's service accounts page by page.
#[utoipa::path(get, path = "/v1/service-accounts", operation_id = "list_service_accounts",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<ServiceAccountView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let page = paging::request::<MemberId>(&call)?;
    let listed = service_accounts::list(call.actor()?, page).await?;
    let id = |account: &ServiceAccount| account.row.id.to_string();
    Ok(Json(Page::of(listed, id, ServiceAccountView::from)).into_response())
}

/// Returns a service account with its permissions and teams.
#[utoipa::path(get, path = "/v1/service-accounts/{id}", operation_id = "show_service_account",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path)),
    responses((status = 200, body = ServiceAccountView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let account = service_accounts::show(call.actor()?, call.path("id")).await?;
    Ok(Json(ServiceAccountView::from(account)).into_response())
}

/// Changes a service account. Neither its old nor its new permissions may exceed the caller's.
#[utoipa::path(patch, path = "/v1/service-accounts/{id}", operation_id = "change_service_account",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path)),
    request_body = ChangeServiceAccount,
    responses((status = 200, body = ServiceAccountView), (status = 409, body = ErrorBody)))]
async fn change(mut call: Call) -> HandlerResult {
    let body: ChangeServiceAccount = call.body()?;
    call.only(&[])?;
    let change = body.change()?;
    let account = service_accounts::change(call.actor()?, call.path("id"), change).await?;
    Ok(Json(ServiceAccountView::from(account)).into_response())
}

/// Deletes a service account. Its API tokens are refused from the next request on.
#[utoipa::path(delete, path = "/v1/service-accounts/{id}", operation_id = "delete_service_account",
    extensions(("x-right" = json!(Holds(ManageMembers))), ("x-scope" = json!(Family::Members))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn remove(call: Call) -> HandlerResult {
    call.only(&[])?;
    service_accounts::remove(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
