//! What subscribers and groups have in common.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use packhouse_store::{KeyOwnerChange, KeyOwnerId, KeyOwnerKind, KeyOwnerRow, NewKeyOwner, RepositoryId};
use serde::Serialize;

use super::fields::Ids;
use crate::Answer;
use crate::call::Call;
use crate::error::ApiError;
use crate::paging::{self, Page};
use packhouse_wire::catalogue;

/// What a body asks for; none stays as it is.
pub(super) struct Wanted {
    pub(super) name: Option<String>,
    pub(super) email: Option<Option<String>>,
    pub(super) repositories: Option<Ids<RepositoryId>>,
    pub(super) subscribers: Option<Ids<KeyOwnerId>>,
}

/// Makes one.
pub(super) async fn create(call: &Call, kind: KeyOwnerKind, wanted: Wanted) -> Result<KeyOwnerRow, ApiError> {
    call.judge_permission()?;
    let change = judged(call, wanted, None).await?;
    let new = NewKeyOwner {
        kind,
        name: change.name.unwrap_or_default(),
        email: change.email.flatten(),
        repositories: change.repositories.unwrap_or_default(),
        subscribers: change.subscribers.unwrap_or_default(),
    };
    let event = call.event(&format!("create_{}", kind.name()), new.name.clone())?;
    Ok(call.app.store.create_key_owner(call.organization()?, new, event).await?)
}

/// Changes the one of the path's `{id}`.
pub(super) async fn change(call: &Call, kind: KeyOwnerKind, wanted: Wanted) -> Result<KeyOwnerRow, ApiError> {
    let row = find(call, kind).await?;
    call.judge_permission()?;
    let change = judged(call, wanted, Some(&row)).await?;
    let event = call.event(&format!("change_{}", kind.name()), row.name)?;
    let changed = call.app.store.change_key_owner(row.organization, kind, row.id, change, event).await?;
    changed.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// The one of the path's `{id}`: 404 `not_found` where there is none in the caller's organization. Before that, 403 without the
/// permission that the route's row names.
pub(crate) async fn find(call: &Call, kind: KeyOwnerKind) -> Result<KeyOwnerRow, ApiError> {
    call.judge_permission_of_organization()?;
    let id = call.path("id").parse::<KeyOwnerId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = call.app.store.find_key_owner(call.organization()?, kind, id).await?;
    row.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// Shows the one of the path's `{id}`.
pub(super) async fn show(call: &Call, kind: KeyOwnerKind) -> Result<KeyOwnerRow, ApiError> {
    call.only(&[])?;
    let row = find(call, kind).await?;
    call.judge_permission()?;
    Ok(row)
}

/// A page of them.
pub(super) async fn list<T: From<KeyOwnerRow> + Serialize>(call: &Call, kind: KeyOwnerKind) -> Answer {
    call.only(&["limit", "after"])?;
    let limit = paging::limit(call)?;
    let after = paging::after::<KeyOwnerId>(call)?;
    call.judge_permission()?;
    let rows = call.app.store.list_key_owners(call.organization()?, kind, after, limit + 1).await?;
    Ok(Json(Page::cut(rows, limit, |row| row.id.to_string(), T::from)).into_response())
}

/// Deletes the one of the path's `{id}` with its access keys.
pub(super) async fn remove(call: &Call, kind: KeyOwnerKind) -> Answer {
    call.only(&[])?;
    let row = find(call, kind).await?;
    call.judge_permission()?;
    let event = call.event(&format!("delete_{}", kind.name()), row.name)?;
    call.app.store.delete_key_owner(row.organization, kind, row.id, event).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// 201 with what was made.
pub(super) fn created<T: Serialize>(view: T) -> Response {
    (StatusCode::CREATED, Json(view)).into_response()
}

/// Judges what a body names. Nobody gives what they may not read themselves: neither a repository, nor by a place in a group
/// the group's repositories.
async fn judged(call: &Call, wanted: Wanted, row: Option<&KeyOwnerRow>) -> Result<KeyOwnerChange, ApiError> {
    let Wanted { name, email, repositories, subscribers } = wanted;
    let held = row.map_or(&[][..], |row| &row.repositories);
    let all = repositories.as_ref().map_or(held, |ids| &ids.known);
    let joins = subscribers
        .as_ref()
        .is_some_and(|ids| ids.known.iter().any(|id| row.is_none_or(|row| !row.subscribers.contains(id))));
    let given: Vec<RepositoryId> = all.iter().copied().filter(|id| joins || !held.contains(id)).collect();
    let impossible = repositories.as_ref().is_some_and(|ids| ids.impossible);
    let found = call.app.store.find_repositories(call.organization()?, &given).await?.len();
    let permissions = &call.caller()?.permissions;
    let readable = given.iter().all(|id| permissions.rights(*id).read);
    call.judge(!impossible && found == given.len() && readable, &catalogue::REPO_ACCESS_DENIED)?;
    if let Some(ids) = &subscribers {
        let found = call.app.store.find_subscribers(call.organization()?, &ids.known).await?.len();
        if ids.impossible || found != ids.known.len() {
            return Err(ApiError::invalid("`subscribers` names one that is not there."));
        }
    }
    Ok(KeyOwnerChange {
        name,
        email,
        repositories: repositories.map(|ids| ids.known),
        subscribers: subscribers.map(|ids| ids.known),
    })
}
