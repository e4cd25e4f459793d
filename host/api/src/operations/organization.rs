//! The actor's organization: its name, its quota and its usage.

use packhouse_identity::permissions::Permission::{ManageOwnerAccount, ManageRepositories};
use packhouse_store::{OrganizationRow, UsageRow};
use packhouse_wire::catalogue;

use super::{Actor, members, repositories};
use crate::error::ApiError;

#[derive(Clone, Debug)]
pub struct Organization {
    pub row: OrganizationRow,
    /// Public address, without a trailing slash.
    pub base_url: String,
}

/// Changes to an organization; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct OrganizationChange {
    pub name: Option<String>,
    /// Quota of all its repositories together, in bytes; the inner `None` means no limit.
    pub quota_bytes: Option<Option<u64>>,
    /// True if members who sign in with a password must have a second factor.
    pub require_second_factor: Option<bool>,
}

/// Usage of the organization's repositories.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Bytes of all listed files, as in [`packhouse_store::RepositoryUsage`].
    pub bytes: u64,
    /// Stored bytes; equal content counts once. Up to 30 s old.
    pub stored_bytes: u64,
    pub packages: u64,
    pub versions: u64,
    pub downloads: u64,
    pub repositories: Vec<UsageRow>,
}

/// Returns the actor's organization, which every member may see.
pub async fn show(actor: &Actor) -> Result<Organization, ApiError> {
    actor.judged_own();
    own(actor).await
}

/// Changes the organization. Needs manage-owner-account. 409 `organization_already_exists` if
/// another organization has this name; 409 `servers_too_old` if a server does not know second
/// factors and one is to be required.
pub async fn change(actor: &Actor, change: OrganizationChange) -> Result<Organization, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let Organization { row, base_url } = own(actor).await?;
    let name = change.name.unwrap_or_else(|| row.name.clone());
    let quota_bytes = change.quota_bytes.unwrap_or(row.quota_bytes);
    let require = change.require_second_factor.unwrap_or(row.require_second_factor);
    if require && !row.require_second_factor {
        members::servers_know(actor, "second factors").await?;
    }
    let event = actor.event("change_organization", name.clone());
    if !actor.app.store.change_organization(row.id, &name, quota_bytes, Some(event)).await? {
        return Err(ApiError::from(&catalogue::ORGANIZATION_ALREADY_EXISTS));
    }
    if require != row.require_second_factor {
        let event = actor.event("require_second_factor", if require { "yes" } else { "no" });
        if !actor.app.store.set_require_second_factor(row.id, require, Some(event)).await? {
            return Err(ApiError::from(&catalogue::NOT_FOUND));
        }
    }
    let row = OrganizationRow { name, quota_bytes, require_second_factor: require, ..row };
    Ok(Organization { row, base_url })
}

/// Returns the usage of the organization's repositories. Needs manage-repositories.
pub async fn usage(actor: &Actor) -> Result<Usage, ApiError> {
    actor.needs(ManageRepositories)?;
    let store = &actor.app.store;
    let repositories = store.usage(actor.organization()).await?;
    let sum = |of: fn(&UsageRow) -> u64| repositories.iter().map(of).fold(0, u64::saturating_add);
    Ok(Usage {
        bytes: sum(|row| row.usage.bytes),
        stored_bytes: store.stored_bytes(actor.organization()).await?,
        packages: sum(|row| row.usage.packages),
        versions: sum(|row| row.usage.versions),
        downloads: sum(|row| row.usage.downloads),
        repositories,
    })
}

async fn own(actor: &Actor) -> Result<Organization, ApiError> {
    let all = actor.app.store.organizations().await?;
    let row = all.into_iter().find(|row| row.id == actor.organization());
    let row = row.ok_or(ApiError::from(&catalogue::NOT_FOUND))?;
    let base_url = repositories::base_url(actor).await?;
    Ok(Organization { row, base_url })
}
