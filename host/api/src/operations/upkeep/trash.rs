//! Trash: deleted versions that can be restored.

use packhouse_identity::permissions::RepositoryAction;
use packhouse_store::{RepositoryRow, Restored, TrashEntry, TrashId};
use packhouse_wire::catalogue;

use super::super::{Actor, PageRequest, RowPage, repositories};
use super::plugin::VersionRef;
use super::{event, judge_package};
use crate::error::ApiError;

/// Returns a page of the versions that can be restored, the latest deletion first. Needs delete in
/// the repository, or the right to manage it.
pub async fn trash(
    actor: &Actor,
    repository: &str,
    page: PageRequest<TrashId>,
) -> Result<RowPage<TrashEntry>, ApiError> {
    let repository = with_trash(actor, repository).await?;
    let found = actor.app.store.trash(repository.id, page.after, page.one_further()).await?;
    Ok(page.cut(found))
}

/// Restores a version with every record as it was. Needs delete for its package in the repository,
/// like its deletion, or the right to manage the repository. 409 `version_already_exists` if it was
/// published again, 403 `quota_exceeded` if the quota has no room for it.
pub async fn restore(actor: &Actor, repository: &str, entry: &str) -> Result<TrashEntry, ApiError> {
    let repository = with_trash(actor, repository).await?;
    let id = entry.parse::<TrashId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let store = &actor.app.store;
    let entry = store.trash_entry(repository.id, id).await?.ok_or(&catalogue::NOT_FOUND)?;
    if !actor.manages(&repository) {
        judge_package(actor, &repository, &entry.name, RepositoryAction::Delete)?;
    }
    let named = VersionRef { package: &entry.name, version: &entry.version };
    let event = event(actor, &repository, "restore_version", named);
    match store.restore_trash(repository.id, id, &event).await? {
        Restored::Done => Ok(entry),
        Restored::Exists => Err(ApiError::from(&catalogue::VERSION_ALREADY_EXISTS)),
        Restored::Gone => Err(ApiError::from(&catalogue::NOT_FOUND)),
    }
}

/// Finds a repository in which the actor may delete, or which the actor may manage: 404 if the
/// actor may not see it, otherwise 403 `role_mismatch`.
async fn with_trash(actor: &Actor, repository: &str) -> Result<RepositoryRow, ApiError> {
    let repository = repositories::find(actor, repository).await?;
    let held = actor.rights_in(&repository).delete || actor.manages(&repository);
    actor.judge(held, &catalogue::ROLE_MISMATCH)?;
    Ok(repository)
}
