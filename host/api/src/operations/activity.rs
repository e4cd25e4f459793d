//! What happened on each of the last days: publishes and downloads of a package, a repository, or all of the organization's repositories.

use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{ActivityOf, DayOfActivity};

use super::{Actor, packages, repositories};
use crate::error::ApiError;

/// Of the organization. Needs manage-repositories.
pub async fn of_organization(actor: &Actor) -> Result<Vec<DayOfActivity>, ApiError> {
    actor.needs(ManageRepositories)?;
    told(actor, ActivityOf::Organization(actor.organization())).await
}

/// Of the repository of this id. Needs read there.
pub async fn of_repository(actor: &Actor, id: &str) -> Result<Vec<DayOfActivity>, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    told(actor, ActivityOf::Repository(repository.id)).await
}

/// Of a package: 404 `not_found` where there is none. Needs read there.
pub async fn of_package(actor: &Actor, id: &str, package: &str) -> Result<Vec<DayOfActivity>, ApiError> {
    let repository = repositories::readable(actor, id).await?;
    packages::known(actor, &repository, package).await?;
    told(actor, ActivityOf::Package(repository.id, package)).await
}

async fn told(actor: &Actor, of: ActivityOf<'_>) -> Result<Vec<DayOfActivity>, ApiError> {
    Ok(actor.app.store.activity(of).await?)
}
