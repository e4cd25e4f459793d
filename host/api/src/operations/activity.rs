//! Publishes and downloads on each of the last 30 days, for a package, a repository, or the whole
//! organization.

use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{ActivityOf, DayOfActivity};

use super::{Actor, packages, repositories};
use crate::error::ApiError;

/// Activity of the organization. Needs manage-repositories.
pub async fn of_organization(actor: &Actor) -> Result<Vec<DayOfActivity>, ApiError> {
    actor.needs(ManageRepositories)?;
    days_of(actor, ActivityOf::Organization(actor.organization())).await
}

/// Activity of a repository. Needs read access to it.
pub async fn of_repository(actor: &Actor, id: &str) -> Result<Vec<DayOfActivity>, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    days_of(actor, ActivityOf::Repository(repository.id)).await
}

/// Activity of a package. 404 `not_found` if it does not exist. Needs read access to the
/// repository.
pub async fn of_package(actor: &Actor, id: &str, package: &str) -> Result<Vec<DayOfActivity>, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    packages::known(actor, &repository, package).await?;
    days_of(actor, ActivityOf::Package(repository.id, package)).await
}

async fn days_of(actor: &Actor, of: ActivityOf<'_>) -> Result<Vec<DayOfActivity>, ApiError> {
    Ok(actor.app.store.activity(of).await?)
}
