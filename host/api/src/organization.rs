//! The caller's organization and its usage.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_config::repository_settings::effective;
use packhouse_identity::permissions::Permission::{ManageOwnerAccount, ManageRepositories};
use packhouse_store::UsageRow;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::{Holds, SignedIn};
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::fields::{self, Field, given};
use crate::operations::organization::{self, Organization, OrganizationChange, Usage};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(show), routes!(change), routes!(usage)]
}

/// The caller's organization.
#[derive(Serialize, ToSchema)]
pub(crate) struct OwnOrganizationView {
    id: String,
    name: String,
    /// Address of its repositories, without a slash at its end.
    base_url: String,
    created_at: i64,
    /// Quota of all its repositories together, in bytes; null for no limit.
    quota_bytes: Option<u64>,
    /// True if members who sign in with a password must have a second factor.
    require_second_factor: bool,
}

impl From<Organization> for OwnOrganizationView {
    fn from(Organization { row, base_url }: Organization) -> OwnOrganizationView {
        OwnOrganizationView {
            id: row.id.to_string(),
            name: row.name,
            base_url,
            created_at: row.created_at,
            quota_bytes: row.quota_bytes,
            require_second_factor: row.require_second_factor,
        }
    }
}

/// Changes to an organization.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeOrganization {
    /// 1 to 256 characters; unique among the organizations.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// Quota in bytes; null for no limit.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    quota_bytes: Field,
    /// True to require a second factor of every member who signs in with a password. Members
    /// without one can then only set one up.
    require_second_factor: Option<bool>,
}

impl ChangeOrganization {
    pub(crate) fn change(self) -> Result<OrganizationChange, ApiError> {
        let name = self.name.is_some().then(|| fields::name(&self.name)).transpose()?;
        let quota_bytes = self.quota_bytes.as_ref().map(quota).transpose()?;
        Ok(OrganizationChange { name, quota_bytes, require_second_factor: self.require_second_factor })
    }
}

/// Maximum quota: the largest integer that JSON numbers represent exactly.
const MAX_QUOTA: u64 = (1 << 53) - 1;

fn quota(value: &Value) -> Result<Option<u64>, ApiError> {
    if value.is_null() {
        return Ok(None);
    }
    let bytes = value.as_u64().filter(|bytes| *bytes <= MAX_QUOTA);
    bytes.map(Some).ok_or_else(|| {
        ApiError::invalid("`quota_bytes` must be an integer number of bytes, or null for no limit.")
    })
}

/// Returns the caller's organization.
#[utoipa::path(get, path = "/v1/organization", operation_id = "show_organization",
    extensions(("x-right" = json!(SignedIn)), ("x-scope" = json!(Family::Organization))),
    responses((status = 200, body = OwnOrganizationView)))]
async fn show(call: Call) -> HandlerResult {
    call.only(&[])?;
    let organization = organization::show(call.actor()?).await?;
    Ok(Json(OwnOrganizationView::from(organization)).into_response())
}

/// Changes the caller's organization.
#[utoipa::path(patch, path = "/v1/organization", operation_id = "change_organization",
    extensions(("x-right" = json!(Holds(ManageOwnerAccount))), ("x-scope" = json!(Family::Organization))),
    request_body = ChangeOrganization,
    responses((status = 200, body = OwnOrganizationView), (status = 409, body = ErrorBody)))]
async fn change(mut call: Call) -> HandlerResult {
    let body: ChangeOrganization = call.body()?;
    call.only(&[])?;
    let changed = organization::change(call.actor()?, body.change()?).await?;
    Ok(Json(OwnOrganizationView::from(changed)).into_response())
}

/// Usage of the organization's repositories.
#[derive(Serialize, ToSchema)]
pub(crate) struct UsageView {
    /// Bytes of all listed files; each path counts once in a repository.
    bytes: u64,
    /// Stored bytes; equal content counts once. Up to 30 s old.
    stored_bytes: u64,
    packages: u64,
    versions: u64,
    /// Downloads of versions.
    downloads: u64,
    repositories: Vec<RepositoryUsageView>,
}

/// Usage of a repository.
#[derive(Serialize, ToSchema)]
pub(crate) struct RepositoryUsageView {
    id: String,
    name: String,
    bytes: u64,
    packages: u64,
    versions: u64,
    downloads: u64,
    /// Quota of the repository in bytes; null for no limit of its own.
    quota_bytes: Option<u64>,
}

impl From<UsageRow> for RepositoryUsageView {
    fn from(UsageRow { id, name, settings, usage }: UsageRow) -> RepositoryUsageView {
        let settings = effective(&settings, false, None);
        RepositoryUsageView {
            id: id.to_string(),
            name,
            bytes: usage.bytes,
            packages: usage.packages,
            versions: usage.versions,
            downloads: usage.downloads,
            quota_bytes: settings.get("quota_bytes").and_then(Value::as_u64),
        }
    }
}

/// Returns the usage of the organization's repositories.
#[utoipa::path(get, path = "/v1/usage", operation_id = "show_usage",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Repositories))),
    responses((status = 200, body = UsageView)))]
async fn usage(call: Call) -> HandlerResult {
    call.only(&[])?;
    let Usage { bytes, stored_bytes, packages, versions, downloads, repositories } =
        organization::usage(call.actor()?).await?;
    let repositories = repositories.into_iter().map(RepositoryUsageView::from).collect();
    let view = UsageView { bytes, stored_bytes, packages, versions, downloads, repositories };
    Ok(Json(view).into_response())
}
