//! The actor's organization: its name, its quota and what its repositories hold.

use packhouse_identity::permissions::Permission::{ManageOwnerAccount, ManageRepositories};
use packhouse_store::{OrganizationRow, UsageRow};
use packhouse_wire::catalogue;

use super::{Actor, repositories};
use crate::error::ApiError;

/// The actor's organization.
#[derive(Clone, Debug)]
pub struct Organization {
    /// Its row.
    pub row: OrganizationRow,
    /// Its public address, without a slash at its end.
    pub base_url: String,
}

/// What is to be another of an organization; none: as it is.
#[derive(Clone, Debug, Default)]
pub struct OrganizationChange {
    /// Its name.
    pub name: Option<String>,
    /// Bytes that its repositories may hold together; none within: no bound.
    pub quota_bytes: Option<Option<u64>>,
}

/// What the organization's repositories hold.
#[derive(Clone, Debug)]
pub struct Usage {
    /// Of all files that are shown, as [`packhouse_store::RepositoryUsage`] has it.
    pub bytes: u64,
    /// Of what is stored, each content once; up to 30 seconds old.
    pub stored_bytes: u64,
    /// Packages.
    pub packages: u64,
    /// Versions.
    pub versions: u64,
    /// Fetches of versions.
    pub downloads: u64,
    /// The same by repository.
    pub repositories: Vec<UsageRow>,
}

/// The actor's organization, which every member may see.
pub async fn show(actor: &Actor) -> Result<Organization, ApiError> {
    actor.judged_own();
    own(actor).await
}

/// Changes the organization. Needs manage-owner-account; 409 `organization_already_exists` for another's name.
pub async fn change(actor: &Actor, change: OrganizationChange) -> Result<Organization, ApiError> {
    actor.needs(ManageOwnerAccount)?;
    let Organization { row, base_url } = own(actor).await?;
    let name = change.name.unwrap_or_else(|| row.name.clone());
    let quota_bytes = change.quota_bytes.unwrap_or(row.quota_bytes);
    let event = actor.event("change_organization", name.clone());
    if !actor.app.store.change_organization(row.id, &name, quota_bytes, Some(event)).await? {
        return Err(ApiError::from(&catalogue::ORGANIZATION_ALREADY_EXISTS));
    }
    Ok(Organization { row: OrganizationRow { name, quota_bytes, ..row }, base_url })
}

/// What the organization's repositories hold. Needs manage-repositories.
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
