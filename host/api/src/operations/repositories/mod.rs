//! Repositories: finding, listing, making, changing and deleting them.

mod change;
pub(crate) mod rules;

use packhouse_identity::access::Rights;
use packhouse_identity::permissions::Permission::{self, ManageRepositories};
use packhouse_store::{NewRepository, RepositoryId, RepositoryRow, RepositoryUsage};
use packhouse_wire::catalogue;

use super::{Actor, Listed, PageRequest};
use crate::error::ApiError;
pub use change::{RepositoryChange, change};
pub use rules::PROXY;

/// A repository of others.
const GROUP: &str = "group";

/// A repository with what is counted of it.
#[derive(Debug)]
pub struct RepositoryWithUsage {
    /// The repository.
    pub row: RepositoryRow,
    /// What it holds; none of a group.
    pub usage: Option<RepositoryUsage>,
}

/// Rows read in one statement.
const READ_AT_ONCE: u32 = 201;

/// Makes a repository. A public one needs read in every repository besides: 403 `role_mismatch`. 409 for a name in use.
pub async fn create(actor: &Actor, new: NewRepository) -> Result<RepositoryRow, ApiError> {
    actor.needs(ManageRepositories)?;
    if new.public {
        may_open(actor, actor.permissions().rights_in_a_new_one())?;
    }
    let (store, organization) = (&actor.app.store, actor.organization());
    if store.look_up(organization, &new.name, None).await?.repository.is_some() {
        return Err(ApiError::from(&catalogue::REPOSITORY_ALREADY_EXISTS));
    }
    rules::members_exist(actor, &new.members, &new.format).await?;
    let event = actor.event("create_repository", new.name.clone());
    let row = store.create_repository(organization, new, Some(event)).await?;
    // Another call may have been first since the look-up: the database alone decides.
    row.ok_or(ApiError::from(&catalogue::REPOSITORY_ALREADY_EXISTS))
}

/// A page of the repositories that the actor may know of.
pub async fn list(actor: &Actor, page: PageRequest<RepositoryId>) -> Result<Listed<RepositoryRow>, ApiError> {
    actor.judged_own();
    let (mut found, mut after) = (Vec::new(), page.after);
    while found.len() < page.one_further() as usize {
        let rows = actor.app.store.list_repositories(actor.organization(), after, READ_AT_ONCE).await?;
        after = rows.last().map(|row| row.id);
        let last = rows.len() < READ_AT_ONCE as usize;
        found.extend(rows.into_iter().filter(|row| knows(actor, row.id)));
        if last {
            break;
        }
    }
    Ok(page.cut(found))
}

/// The repository of this id, for whoever may know of it: 404 `not_found` otherwise.
pub async fn show(actor: &Actor, id: &str) -> Result<RepositoryRow, ApiError> {
    let row = find(actor, id).await?;
    actor.judged_own();
    Ok(row)
}

/// The repository of this name, for whoever may know of it: 404 `not_found` otherwise.
pub async fn named(actor: &Actor, name: &str) -> Result<RepositoryRow, ApiError> {
    actor.judged_own();
    let found = actor.app.store.look_up(actor.organization(), name, None).await?.repository.clone();
    let id = found.map(|found| found.id).ok_or(&catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_repository(actor.organization(), id).await?;
    row.filter(|row| knows(actor, row.id)).ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// The repository of this id, for who manages repositories: 403 `insufficient_permissions`, then 404 `not_found`.
pub async fn managed(actor: &Actor, id: &str) -> Result<RepositoryRow, ApiError> {
    actor.needs(ManageRepositories)?;
    find(actor, id).await
}

/// The proxy of this id, for who manages repositories: 404 `not_found` for a repository of another kind.
pub async fn managed_proxy(actor: &Actor, id: &str) -> Result<RepositoryRow, ApiError> {
    let repository = managed(actor, id).await?;
    match repository.kind.as_str() {
        PROXY => Ok(repository),
        _ => Err(ApiError::from(&catalogue::NOT_FOUND)),
    }
}

/// The repository of this id, for who may read there: 404 where the actor may not know of it, else 403 `role_mismatch`.
pub async fn readable(actor: &Actor, id: &str) -> Result<RepositoryRow, ApiError> {
    let repository = find(actor, id).await?;
    actor.judge(may_read(actor, &repository), &catalogue::ROLE_MISMATCH)?;
    Ok(repository)
}

/// Whether the actor may read what is in a repository, and so be told the names of its packages.
pub(crate) fn may_read(actor: &Actor, repository: &RepositoryRow) -> bool {
    repository.public || actor.permissions().rights(repository.id).read
}

/// Deletes a repository with all that it holds. 409 `repository_in_use` for a member of a group.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let row = managed(actor, id).await?;
    let (store, organization) = (&actor.app.store, actor.organization());
    if !store.groups_of(organization, row.id).await?.is_empty() {
        return Err(ApiError::from(&catalogue::REPOSITORY_IN_USE));
    }
    let event = actor.event("delete_repository", row.name);
    if store.delete_repository(organization, row.id, Some(event)).await? {
        Ok(())
    } else {
        Err(ApiError::from(&catalogue::NOT_FOUND))
    }
}

/// A page of the repositories that the actor may know of, each with its counters; a group has none, for it holds nothing of its own.
pub async fn list_with_usage(
    actor: &Actor,
    page: PageRequest<RepositoryId>,
) -> Result<Listed<RepositoryWithUsage>, ApiError> {
    let Listed { rows, more } = list(actor, page).await?;
    let ids: Vec<RepositoryId> = rows.iter().map(|row| row.id).collect();
    let mut usage = actor.app.store.repository_usage(actor.organization(), &ids).await?;
    let with = |row: RepositoryRow| {
        let usage = usage.remove(&row.id).filter(|_| row.kind != GROUP);
        RepositoryWithUsage { row, usage }
    };
    Ok(Listed { rows: rows.into_iter().map(with).collect(), more })
}

/// The counters of the repository; none of a group. Who may know of a repository may know them.
pub async fn usage_of(actor: &Actor, row: &RepositoryRow) -> Result<Option<RepositoryUsage>, ApiError> {
    let usage = actor.app.store.repository_usage(actor.organization(), &[row.id]).await?;
    Ok(usage.get(&row.id).copied().filter(|_| row.kind != GROUP))
}

/// The address of a repository for its clients, with a slash at its end.
pub async fn address(actor: &Actor, row: &RepositoryRow) -> Result<String, ApiError> {
    Ok(format!("{}/repositories/{}/", base_url(actor).await?, row.name))
}

/// The public address of the actor's organization, without a slash at its end.
pub async fn base_url(actor: &Actor) -> Result<String, ApiError> {
    let organizations = actor.app.store.organizations().await?;
    let own =
        organizations.into_iter().find(|row| row.id == actor.organization()).and_then(|row| row.base_url);
    Ok(own.map_or_else(|| actor.app.base_url(), |url| url.trim_end_matches('/').to_owned()))
}

/// The repository of this id, where the actor may know of it: 404 `not_found` otherwise. What may be done there is judged afterwards.
pub(super) async fn find(actor: &Actor, id: &str) -> Result<RepositoryRow, ApiError> {
    let id = id.parse::<RepositoryId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_repository(actor.organization(), id).await?;
    row.filter(|row| knows(actor, row.id)).ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Judges whether the actor may open a repository to everyone: nobody gives what they may not read themselves, and who manages
/// repositories does not thereby read them. 403 `role_mismatch`.
fn may_open(actor: &Actor, rights: Rights) -> Result<(), ApiError> {
    actor.judge(rights.read, &catalogue::ROLE_MISMATCH)
}

/// Whether the actor may know of the repository: any right in it, or managing all of them.
fn knows(actor: &Actor, id: RepositoryId) -> bool {
    let rights = actor.permissions().rights(id);
    let any = rights.read || rights.publish || rights.delete;
    any || actor.permissions().holds(Permission::ManageRepositories)
}
