//! Access keys of subscribers and subscriber groups: credentials that can only read what their
//! owner was granted. All operations need manage-subscribers. Changes of a key need a fresh
//! confirmation of `manage_access_keys`.

mod rotate;

use packhouse_identity::access::CredentialState;
use packhouse_identity::{self as identity, Minted};
use packhouse_store::{
    AccessKeyId, AccessKeyRow, AuditEvent, KeyOwnerId, KeyOwnerKind, KeyOwnerRow, NewAccessKey,
};
use packhouse_wire::catalogue;

use super::confirmations::{Action, Confirmation};
use super::{Actor, NewCredential, PageRequest, RowPage, key_owners};
use crate::error::ApiError;
pub use rotate::rotate;

/// Owner of the keys of an operation.
#[derive(Clone, Copy, Debug)]
pub struct KeyOwnerRef<'a> {
    pub kind: KeyOwnerKind,
    /// Id as text, not yet checked.
    pub id: &'a str,
}

impl KeyOwnerRef<'_> {
    async fn find(self, actor: &Actor) -> Result<KeyOwnerRow, ApiError> {
        key_owners::find(actor, self.kind, self.id).await
    }
}

#[derive(Debug)]
pub struct AccessKeyRequest {
    pub name: Option<String>,
    /// Expiry in ms since 1970; `None` for never.
    pub expires_at: Option<i64>,
}

/// New expiry of a key.
#[derive(Clone, Copy, Debug)]
pub struct ExpiryChange {
    /// New expiry in ms since 1970; `None` for never.
    pub expires_at: Option<i64>,
    /// Expiry that the client read before.
    pub expected: Option<i64>,
}

/// State of the key at `now` (ms since 1970).
pub fn state(row: &AccessKeyRow, now: i64) -> CredentialState {
    CredentialState::at(now, row.revoked_at, row.expires_at, row.ends_at)
}

/// Creates an access key. 403 `repo_access_denied` if it reaches a repository that the actor may
/// not read.
pub async fn create(
    actor: &Actor,
    confirmation: &Confirmation,
    owner: KeyOwnerRef<'_>,
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
        created_by: actor.name().to_owned(),
        expires_at: request.expires_at,
    };
    let event = actor.event("create_access_key", owner.name);
    let made = actor.app.store.create_access_key(owner.organization, new, Some(event)).await?;
    let row = made.ok_or(ApiError::from(&catalogue::NOT_FOUND))?;
    Ok(NewCredential { row, secret: Some(secret), replaced: None })
}

/// Returns a page of an owner's keys, without secrets.
pub async fn list(
    actor: &Actor,
    owner: KeyOwnerRef<'_>,
    page: PageRequest<AccessKeyId>,
) -> Result<RowPage<AccessKeyRow>, ApiError> {
    let owner = owner.find(actor).await?;
    Ok(page.cut(actor.app.store.list_access_keys(owner.id, page.after, page.one_further()).await?))
}

/// Returns an owner's key, without its secret. 404 `access_key_not_found` if it does not exist.
pub async fn show(actor: &Actor, owner: KeyOwnerRef<'_>, key: &str) -> Result<AccessKeyRow, ApiError> {
    let owner = owner.find(actor).await?;
    find(actor, owner.id, key).await
}

/// Changes the expiry of a key if its present expiry is the expected one; otherwise 409
/// `access_key_changed`. A key that was revoked, was rotated or has expired keeps its end: 409
/// `access_key_revoked`.
pub async fn change(
    actor: &Actor,
    confirmation: &Confirmation,
    owner: KeyOwnerRef<'_>,
    key: &str,
    change: ExpiryChange,
) -> Result<AccessKeyRow, ApiError> {
    confirmation.judge(actor, Action::ManageAccessKeys).await?;
    let owner = owner.find(actor).await?;
    loop {
        let row = find(actor, owner.id, key).await?;
        if state(&row, actor.app.store.now_ms()) != CredentialState::Active {
            return Err(ApiError::from(&catalogue::ACCESS_KEY_REVOKED));
        }
        if row.expires_at != change.expected {
            return Err(ApiError::from(&catalogue::ACCESS_KEY_CHANGED));
        }
        let event = event(actor, "change_access_key", &owner, row.id);
        if actor.app.store.set_access_key_expiry(&row, change.expires_at, Some(event)).await? {
            return Ok(AccessKeyRow { expires_at: change.expires_at, ..row });
        }
        // Another call changed it in the meantime; check again with the new state.
    }
}

/// Revokes a key. It is refused from the next request on. Revoking it again has no effect.
pub async fn revoke(
    actor: &Actor,
    confirmation: &Confirmation,
    owner: KeyOwnerRef<'_>,
    key: &str,
) -> Result<(), ApiError> {
    confirmation.judge(actor, Action::ManageAccessKeys).await?;
    let owner = owner.find(actor).await?;
    let row = find(actor, owner.id, key).await?;
    let event = event(actor, "revoke_access_key", &owner, row.id);
    actor.app.store.revoke_access_key(owner.id, row.id, actor.now, Some(event)).await?;
    Ok(())
}

/// Finds an owner's key. 404 `access_key_not_found` also for another owner's key.
async fn find(actor: &Actor, owner: KeyOwnerId, key: &str) -> Result<AccessKeyRow, ApiError> {
    let id = key.parse::<AccessKeyId>().map_err(|_| &catalogue::ACCESS_KEY_NOT_FOUND)?;
    let row = actor.app.store.find_access_key(owner, id).await?;
    row.ok_or(ApiError::from(&catalogue::ACCESS_KEY_NOT_FOUND))
}

/// Checks that the actor may read everything that a key of this owner reaches, because the actor
/// receives the secret.
async fn may_hold(actor: &Actor, owner: KeyOwnerId) -> Result<(), ApiError> {
    let reach = actor.app.store.key_reach(owner).await?;
    let rows = actor.app.store.find_repositories(actor.organization(), &reach).await?;
    let readable = rows.len() == reach.len() && rows.iter().all(|row| actor.rights_in(row).read);
    actor.judge(readable, &catalogue::REPO_ACCESS_DENIED)
}

/// Audit event about a key: the subject is the owner's name, the detail the key's id.
fn event(actor: &Actor, action: &str, owner: &KeyOwnerRow, key: AccessKeyId) -> AuditEvent {
    let detail = serde_json::json!({"access_key": key.to_string()}).to_string();
    AuditEvent { detail, ..actor.event(action, owner.name.as_str()) }
}
