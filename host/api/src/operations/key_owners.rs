//! Subscribers and subscriber groups: the owners of access keys, with the repositories that they
//! were granted. A group also has subscribers, and has no e-mail address. All operations need
//! manage-subscribers.

use packhouse_identity::permissions::Permission::ManageSubscribers;
use packhouse_store::{KeyOwnerChange, KeyOwnerId, KeyOwnerKind, KeyOwnerRow, NewKeyOwner, RepositoryId};
use packhouse_wire::catalogue;

use super::{Actor, PageRequest, RowPage};
use crate::error::ApiError;

/// List of ids from a request.
#[derive(Debug)]
pub struct Ids<T> {
    /// Well-formed ids, each of them once.
    pub known: Vec<T>,
    /// True if the list also had a malformed id, which matches nothing.
    pub impossible: bool,
}

/// New subscriber or group, or changes to one; `None` leaves a field unchanged.
#[derive(Debug)]
pub struct KeyOwnerRequest {
    pub name: Option<String>,
    /// Contact e-mail address; the inner `None` removes it.
    pub email: Option<Option<String>>,
    /// Complete list of its repositories.
    pub repositories: Option<Ids<RepositoryId>>,
    /// Complete list of a group's subscribers.
    pub subscribers: Option<Ids<KeyOwnerId>>,
}

/// Creates a subscriber or group. 403 `repo_access_denied` if it would reach a repository that the
/// actor may not read.
pub async fn create(
    actor: &Actor,
    kind: KeyOwnerKind,
    request: KeyOwnerRequest,
) -> Result<KeyOwnerRow, ApiError> {
    actor.needs(ManageSubscribers)?;
    let change = judge(actor, request, None).await?;
    let new = NewKeyOwner {
        kind,
        name: change.name.unwrap_or_default(),
        email: change.email.flatten(),
        repositories: change.repositories.unwrap_or_default(),
        subscribers: change.subscribers.unwrap_or_default(),
    };
    let event = actor.event(&format!("create_{}", kind.name()), new.name.clone());
    Ok(actor.app.store.create_key_owner(actor.organization(), new, Some(event)).await?)
}

/// Returns a page of subscribers or groups.
pub async fn list(
    actor: &Actor,
    kind: KeyOwnerKind,
    page: PageRequest<KeyOwnerId>,
) -> Result<RowPage<KeyOwnerRow>, ApiError> {
    actor.needs(ManageSubscribers)?;
    let (store, organization) = (&actor.app.store, actor.organization());
    Ok(page.cut(store.list_key_owners(organization, kind, page.after, page.one_further()).await?))
}

/// Finds a subscriber or group. 404 `not_found` if it does not exist in the actor's organization.
pub async fn find(actor: &Actor, kind: KeyOwnerKind, id: &str) -> Result<KeyOwnerRow, ApiError> {
    actor.needs(ManageSubscribers)?;
    let id = id.parse::<KeyOwnerId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_key_owner(actor.organization(), kind, id).await?;
    row.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Changes a subscriber or group.
pub async fn change(
    actor: &Actor,
    kind: KeyOwnerKind,
    id: &str,
    request: KeyOwnerRequest,
) -> Result<KeyOwnerRow, ApiError> {
    let row = find(actor, kind, id).await?;
    let change = judge(actor, request, Some(&row)).await?;
    let event = actor.event(&format!("change_{}", kind.name()), row.name);
    let changed =
        actor.app.store.change_key_owner(row.organization, kind, row.id, change, Some(event)).await?;
    changed.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Deletes a subscriber or group with its access keys, which are refused from the next request on.
pub async fn remove(actor: &Actor, kind: KeyOwnerKind, id: &str) -> Result<(), ApiError> {
    let row = find(actor, kind, id).await?;
    let event = actor.event(&format!("delete_{}", kind.name()), row.name);
    actor.app.store.delete_key_owner(row.organization, kind, row.id, Some(event)).await?;
    Ok(())
}

/// Checks a request. The actor cannot grant a repository that the actor may not read, neither
/// directly nor by adding a subscriber to a group that reaches it.
async fn judge(
    actor: &Actor,
    request: KeyOwnerRequest,
    row: Option<&KeyOwnerRow>,
) -> Result<KeyOwnerChange, ApiError> {
    let KeyOwnerRequest { name, email, repositories, subscribers } = request;
    let held = row.map_or(&[][..], |row| &row.repositories);
    let all = repositories.as_ref().map_or(held, |ids| &ids.known);
    let joins = subscribers
        .as_ref()
        .is_some_and(|ids| ids.known.iter().any(|id| row.is_none_or(|row| !row.subscribers.contains(id))));
    let given: Vec<RepositoryId> = all.iter().copied().filter(|id| joins || !held.contains(id)).collect();
    let impossible = repositories.as_ref().is_some_and(|ids| ids.impossible);
    let rows = actor.app.store.find_repositories(actor.organization(), &given).await?;
    let readable = rows.len() == given.len() && rows.iter().all(|row| actor.rights_in(row).read);
    actor.judge(!impossible && readable, &catalogue::REPO_ACCESS_DENIED)?;
    if let Some(ids) = &subscribers {
        let found = actor.app.store.find_subscribers(actor.organization(), &ids.known).await?.len();
        if ids.impossible || found != ids.known.len() {
            return Err(ApiError::invalid("`subscribers` lists a subscriber that does not exist."));
        }
    }
    Ok(KeyOwnerChange {
        name,
        email,
        repositories: repositories.map(|ids| ids.known),
        subscribers: subscribers.map(|ids| ids.known),
    })
}
