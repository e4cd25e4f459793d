//! Access keys of subscribers and of groups of subscribers: credentials that read what their owner was given, and nothing else.
//! All of it needs manage-subscribers; whatever changes a key needs a fresh confirmation of `manage_access_keys`.

mod rotate;

use packhouse_identity::access::State;
use packhouse_identity::{self as identity, Minted};
use packhouse_store::{
    AccessKeyId, AccessKeyRow, AuditEvent, KeyOwnerId, KeyOwnerKind, KeyOwnerRow, NewAccessKey,
};
use packhouse_wire::catalogue;

use super::confirmations::{Action, Confirmation};
use super::{Actor, Listed, NewCredential, PageRequest, key_owners};
use crate::error::ApiError;
pub use rotate::rotate;

/// Whose keys an operation is about.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// A subscriber, or a group.
    pub kind: KeyOwnerKind,
    /// Its id, as it was written.
    pub id: &'a str,
}

impl Owner<'_> {
    async fn find(self, actor: &Actor) -> Result<KeyOwnerRow, ApiError> {
        key_owners::find(actor, self.kind, self.id).await
    }
}

/// An access key that is wanted.
#[derive(Debug)]
pub struct AccessKeyRequest {
    /// What it is called, if anything.
    pub name: Option<String>,
    /// When it expires, in ms since 1970; none for never.
    pub expires_at: Option<i64>,
}

/// Another expiry of a key.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryChange {
    /// From now on, in ms since 1970; none for never.
    pub expires_at: Option<i64>,
    /// As it was read.
    pub expected: Option<i64>,
}

/// The key's state at `now` (ms since 1970).
pub fn state(row: &AccessKeyRow, now: i64) -> State {
    State::at(now, row.revoked_at, row.expires_at, row.ends_at)
}

/// Makes an access key. 403 `repo_access_denied` where it reaches what the actor may not read.
pub async fn create(
    actor: &Actor,
    confirmation: &Confirmation,
    owner: Owner<'_>,
    request: AccessKeyRequest,
) -> Result<NewCredential<AccessKeyRow>, ApiError> {
    confirmation.judge(actor, Action::ManageAccessKeys).await?;
    let owner = owner.find(actor).await?;
    may_hold(actor, owner.id).await?;
    let Minted { secret, sha256 } = identity::mint();
    let new = NewAccessKey {
        secret_sha256: sha256,
        name: request.name,
        owner: owner.id,
        created_by: actor.member().email.clone(),
        expires_at: request.expires_at,
    };
    let event = actor.event("create_access_key", owner.name);
    let made = actor.app.store.create_access_key(owner.organization, new, Some(event)).await?;
    let row = made.ok_or(ApiError::from(&catalogue::NOT_FOUND))?;
    Ok(NewCredential { row, secret: Some(secret), replaced: None })
}

/// A page of an owner's keys. Never a secret.
pub async fn list(
    actor: &Actor,
    owner: Owner<'_>,
    page: PageRequest<AccessKeyId>,
) -> Result<Listed<AccessKeyRow>, ApiError> {
    let owner = owner.find(actor).await?;
    Ok(page.cut(actor.app.store.list_access_keys(owner.id, page.after, page.one_further()).await?))
}

/// The key of this id of this owner: 404 `access_key_not_found` where there is none. Never its secret.
pub async fn show(actor: &Actor, owner: Owner<'_>, key: &str) -> Result<AccessKeyRow, ApiError> {
    let owner = owner.find(actor).await?;
    find(actor, owner.id, key).await
}

/// Changes when a key expires, if the expiry that was read still holds: 409 `access_key_changed` otherwise, and `access_key_revoked`
/// for a key whose end is set or past, which keeps it.
pub async fn change(
    actor: &Actor,
    confirmation: &Confirmation,
    owner: Owner<'_>,
    key: &str,
    change: ExpiryChange,
) -> Result<AccessKeyRow, ApiError> {
    confirmation.judge(actor, Action::ManageAccessKeys).await?;
    let owner = owner.find(actor).await?;
    loop {
        let row = find(actor, owner.id, key).await?;
        if state(&row, actor.app.store.now_ms()) != State::Active {
            return Err(ApiError::from(&catalogue::ACCESS_KEY_REVOKED));
        }
        if row.expires_at != change.expected {
            return Err(ApiError::from(&catalogue::ACCESS_KEY_CHANGED));
        }
        let event = event(actor, "change_access_key", &owner, row.id);
        if actor.app.store.set_access_key_expiry(&row, change.expires_at, Some(event)).await? {
            return Ok(AccessKeyRow { expires_at: change.expires_at, ..row });
        }
        // Another call changed it meanwhile: judged anew, on what there is now.
    }
}

/// Revokes a key: it is refused from the next request on. Revoking it again changes nothing.
pub async fn revoke(
    actor: &Actor,
    confirmation: &Confirmation,
    owner: Owner<'_>,
    key: &str,
) -> Result<(), ApiError> {
    confirmation.judge(actor, Action::ManageAccessKeys).await?;
    let owner = owner.find(actor).await?;
    let row = find(actor, owner.id, key).await?;
    let event = event(actor, "revoke_access_key", &owner, row.id);
    actor.app.store.revoke_access_key(owner.id, row.id, actor.now, Some(event)).await?;
    Ok(())
}

/// The key of this id of this owner: 404 `access_key_not_found` for another's too.
async fn find(actor: &Actor, owner: KeyOwnerId, key: &str) -> Result<AccessKeyRow, ApiError> {
    let id = key.parse::<AccessKeyId>().map_err(|_| &catalogue::ACCESS_KEY_NOT_FOUND)?;
    let row = actor.app.store.find_access_key(owner, id).await?;
    row.ok_or(ApiError::from(&catalogue::ACCESS_KEY_NOT_FOUND))
}

/// Judges whether the actor may read all that a key of this owner reaches: whoever is shown its secret reads it.
async fn may_hold(actor: &Actor, owner: KeyOwnerId) -> Result<(), ApiError> {
    let reach = actor.app.store.key_reach(owner).await?;
    let readable = reach.into_iter().all(|repository| actor.permissions().rights(repository).read);
    actor.judge(readable, &catalogue::REPO_ACCESS_DENIED)
}

/// An event about a key, by its owner's name and with the key's id.
fn event(actor: &Actor, action: &str, owner: &KeyOwnerRow, key: AccessKeyId) -> AuditEvent {
    let detail = serde_json::json!({"access_key": key.to_string()}).to_string();
    AuditEvent { detail, ..actor.event(action, owner.name.as_str()) }
}
