//! Repositories: finding, listing, creating, changing and deleting them.

mod change;
mod health;
pub(crate) mod rules;

use packhouse_identity::access::Rights;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_identity::permissions::{RepositoryAction, RepositoryPermission};
use packhouse_store::{NewRepository, RepositoryId, RepositoryRow, RepositoryUsage};
use packhouse_wire::catalogue;

use super::{Actor, PageRequest, RowPage};
use crate::error::ApiError;
pub use change::{RepositoryChange, change, judge as judge_change, leads_elsewhere};
pub use health::{MemberHealth, RepositoryHealth, health_of};
pub use packhouse_upstream::HealthState;
pub use rules::PROXY;

/// Kind of a repository that shows the packages of its members.
const GROUP: &str = "group";

#[derive(Debug)]
pub struct RepositoryWithUsage {
    pub row: RepositoryRow,
    /// Counters; `None` for a group.
    pub usage: Option<RepositoryUsage>,
}

/// Rows that are read in one statement.
const READ_AT_ONCE: u32 = 201;

/// Creates a repository. A public one also needs read access to all repositories: 403
/// `role_mismatch`. 409 if the name is in use.
pub async fn create(actor: &Actor, new: NewRepository) -> Result<RepositoryRow, ApiError> {
    actor.needs(ManageRepositories)?;
    if new.public {
        may_make_public(actor, actor.permissions().rights_in_a_new_one(&new.name))?;
    }
    let (store, organization) = (&actor.app.store, actor.organization());
    if store.look_up(organization, &new.name, None).await?.repository.is_some() {
        return Err(ApiError::from(&catalogue::REPOSITORY_ALREADY_EXISTS));
    }
    rules::members_exist(actor, &new.members, &new.format).await?;
    let event = actor.event("create_repository", new.name.clone());
    let row = store.create_repository(organization, new, Some(event)).await?;
    // Another call may have used the name since the look-up; the database decides.
    row.ok_or(ApiError::from(&catalogue::REPOSITORY_ALREADY_EXISTS))
}

/// Returns a page of the repositories that the actor may see.
pub async fn list(
    actor: &Actor,
    page: PageRequest<RepositoryId>,
) -> Result<RowPage<RepositoryRow>, ApiError> {
    actor.judged_own();
    let (mut found, mut after) = (Vec::new(), page.after);
    while found.len() < page.one_further() as usize {
        let rows = actor.app.store.list_repositories(actor.organization(), after, READ_AT_ONCE).await?;
        after = rows.last().map(|row| row.id);
        let last = rows.len() < READ_AT_ONCE as usize;
        found.extend(rows.into_iter().filter(|row| may_see(actor, row)));
        if last {
            break;
        }
    }
    Ok(page.cut(found))
}

/// Returns a repository that the actor may see; otherwise 404 `not_found`.
pub async fn show(actor: &Actor, id: &str) -> Result<RepositoryRow, ApiError> {
    let row = find(actor, id).await?;
    actor.judged_own();
    Ok(row)
}

/// Finds a repository by its name, if the actor may see it; otherwise 404 `not_found`.
pub async fn named(actor: &Actor, name: &str) -> Result<RepositoryRow, ApiError> {
    actor.judged_own();
    let found = actor.app.store.look_up(actor.organization(), name, None).await?.repository.clone();
    let id = found.map(|found| found.id).ok_or(&catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_repository(actor.organization(), id).await?;
    row.filter(|row| may_see(actor, row)).ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Finds a repository to manage. 403 `insufficient_permissions` for an actor who manages no
/// repository, whatever the id; then 404 `not_found`; then 403 `insufficient_permissions` for a
/// repository that the actor may see and does not manage.
pub async fn managed(actor: &Actor, id: &str) -> Result<RepositoryRow, ApiError> {
    manages_some(actor)?;
    let row = find(actor, id).await?;
    if !actor.manages(&row) {
        actor.needs(ManageRepositories)?;
    }
    Ok(row)
}

/// Checks that the actor manages all repositories, or may manage some of them: 403
/// `insufficient_permissions` otherwise. It does not depend on an object, so it is checked before
/// the object is looked up.
pub(super) fn manages_some(actor: &Actor) -> Result<(), ApiError> {
    let permissions = actor.permissions();
    let manages_one = |entry: &RepositoryPermission| entry.actions.contains(&RepositoryAction::Manage);
    if !permissions.holds(ManageRepositories) && permissions.repositories.iter().any(manages_one) {
        actor.judged_own();
        return Ok(());
    }
    actor.needs(ManageRepositories)
}

/// Returns whether the actor may manage the repository with this id and this name.
pub(super) fn may_manage(actor: &Actor, id: RepositoryId, name: &str) -> bool {
    actor.permissions().holds(ManageRepositories) || actor.permissions().rights(id, name).manage
}

/// Finds a proxy to manage. 404 `not_found` also for a repository of another kind.
pub async fn managed_proxy(actor: &Actor, id: &str) -> Result<RepositoryRow, ApiError> {
    let repository = managed(actor, id).await?;
    match repository.kind.as_str() {
        PROXY => Ok(repository),
        _ => Err(ApiError::from(&catalogue::NOT_FOUND)),
    }
}

/// Finds a repository to read: 404 if the actor may not see it, otherwise 403 `role_mismatch`.
pub async fn readable(actor: &Actor, id: &str) -> Result<RepositoryRow, ApiError> {
    let repository = find(actor, id).await?;
    actor.judge(may_read(actor, &repository), &catalogue::ROLE_MISMATCH)?;
    Ok(repository)
}

/// Returns whether the actor may read the content of a repository, including package names.
pub(crate) fn may_read(actor: &Actor, repository: &RepositoryRow) -> bool {
    repository.public || actor.rights_in(repository).read
}

/// Deletes a repository with its content. Needs manage-repositories. 409 `repository_in_use` if it
/// is a member of a group.
pub async fn remove(actor: &Actor, id: &str) -> Result<(), ApiError> {
    actor.needs(ManageRepositories)?;
    let row = find(actor, id).await?;
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

/// Returns a page of the repositories that the actor may see, with their counters. A group has
/// none, because it has no content of its own.
pub async fn list_with_usage(
    actor: &Actor,
    page: PageRequest<RepositoryId>,
) -> Result<RowPage<RepositoryWithUsage>, ApiError> {
    let listed = list(actor, page).await?;
    with_usage(actor, listed).await
}

/// Returns a page of the repositories that the actor may see, ordered by name, with their counters.
/// The page begins after the name on which the previous page ended.
pub async fn list_by_name(
    actor: &Actor,
    page: &PageRequest<String>,
) -> Result<RowPage<RepositoryWithUsage>, ApiError> {
    actor.judged_own();
    let (mut found, mut after) = (Vec::new(), page.after.clone());
    while found.len() < page.one_further() as usize {
        let (store, organization) = (&actor.app.store, actor.organization());
        let rows = store.list_repositories_by_name(organization, after.as_deref(), READ_AT_ONCE).await?;
        after = rows.last().map(|row| row.name.clone());
        let last = rows.len() < READ_AT_ONCE as usize;
        found.extend(rows.into_iter().filter(|row| may_see(actor, row)));
        if last {
            break;
        }
    }
    with_usage(actor, page.cut(found)).await
}

/// Adds the counters to a page of repositories, with one statement.
async fn with_usage(
    actor: &Actor,
    listed: RowPage<RepositoryRow>,
) -> Result<RowPage<RepositoryWithUsage>, ApiError> {
    let RowPage { rows, more } = listed;
    let ids: Vec<RepositoryId> = rows.iter().map(|row| row.id).collect();
    let mut usage = actor.app.store.repository_usage(actor.organization(), &ids).await?;
    let with = |row: RepositoryRow| {
        let usage = usage.remove(&row.id).filter(|_| row.kind != GROUP);
        RepositoryWithUsage { row, usage }
    };
    Ok(RowPage { rows: rows.into_iter().map(with).collect(), more })
}

/// Returns the counters of a repository; `None` for a group. Whoever may see the repository may see
/// them.
pub async fn usage_of(actor: &Actor, row: &RepositoryRow) -> Result<Option<RepositoryUsage>, ApiError> {
    let usage = actor.app.store.repository_usage(actor.organization(), &[row.id]).await?;
    Ok(usage.get(&row.id).copied().filter(|_| row.kind != GROUP))
}

/// Address of a repository for its clients, with a trailing slash.
pub async fn address(actor: &Actor, row: &RepositoryRow) -> Result<String, ApiError> {
    Ok(format!("{}/repositories/{}/", base_url(actor).await?, row.name))
}

/// Public address of the actor's organization, without a trailing slash.
pub async fn base_url(actor: &Actor) -> Result<String, ApiError> {
    let organizations = actor.app.store.organizations().await?;
    Ok(actor.base_url(organizations.iter().find(|row| row.id == actor.organization())))
}

/// Finds a repository that the actor may see; otherwise 404 `not_found`. The caller checks further
/// rights.
pub(super) async fn find(actor: &Actor, id: &str) -> Result<RepositoryRow, ApiError> {
    let id = id.parse::<RepositoryId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_repository(actor.organization(), id).await?;
    row.filter(|row| may_see(actor, row)).ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Checks that the actor may make a repository public: the actor must be able to read it, which
/// managing repositories does not include. 403 `role_mismatch`.
fn may_make_public(actor: &Actor, rights: Rights) -> Result<(), ApiError> {
    actor.judge(rights.read, &catalogue::ROLE_MISMATCH)
}

/// Returns whether the actor may see the repository: with any right in it, or with
/// manage-repositories.
fn may_see(actor: &Actor, row: &RepositoryRow) -> bool {
    let rights = actor.rights_in(row);
    let any = rights.read || rights.publish || rights.delete || rights.manage;
    any || actor.permissions().holds(ManageRepositories)
}
