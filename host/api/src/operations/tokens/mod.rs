//! Repository tokens and service keys.

mod list;
pub(super) mod packages;
mod request;
mod rights;
mod rotate;

use packhouse_identity::access::CredentialState;
use packhouse_identity::{self as identity, Minted};
use packhouse_store::{TokenId, TokenRow};
use packhouse_wire::catalogue;

use super::confirmations::{Action, Confirmation};
use super::{Actor, NewCredential};
use crate::error::ApiError;
pub use list::{KeyKind, TokenFilter, list, list_newest};
pub(crate) use request::service_key_expiry;
pub use request::{Backing, TokenRequest};
use rights::TokenReach;
pub use rotate::rotate;

/// Backing of a token that was imported without an owner.
pub const LEGACY: &str = "legacy";

/// Token with the e-mail address of its owner.
#[derive(Debug)]
pub struct OwnedToken {
    pub row: TokenRow,
    /// `None` for a service key.
    pub owner: Option<String>,
}

/// State of the token at `now` (ms since 1970).
pub fn state(row: &TokenRow, now: i64) -> CredentialState {
    CredentialState::at(now, row.revoked_at, row.expires_at, row.ends_at)
}

/// Creates a token for the actor, or with a backing a service key. 403 `repo_access_denied`,
/// `service_key_forbidden` or `role_mismatch` if it would exceed the actor's rights. A service
/// account has no tokens of its own: 403 `role_mismatch`.
pub async fn create(
    actor: &Actor,
    confirmation: &Confirmation,
    request: TokenRequest,
) -> Result<NewCredential<OwnedToken>, ApiError> {
    confirmation.judge(actor, Action::CreateToken).await?;
    if request.backing.is_none() {
        actor.needs_person()?;
    }
    let TokenReach { repositories, packages } = rights::may_create(actor, &request).await?;
    let Minted { secret, sha256 } = identity::mint();
    let token = TokenRequest { packages, ..request }.token(sha256, actor.member(), repositories);
    let event = actor.event(Action::CreateToken.name(), token.name.clone());
    let row = actor.app.store.create_token(actor.organization(), token, Some(event)).await?;
    let owner = row.owner.map(|_| actor.member().email.clone());
    Ok(NewCredential { row: OwnedToken { row, owner }, secret: Some(secret), replaced: None })
}

/// Revokes a token. It is refused from the next request on. Revoking it again has no effect.
pub async fn revoke(actor: &Actor, id: &str) -> Result<(), ApiError> {
    let row = managed(actor, id).await?;
    let event = actor.event("revoke_token", row.name.clone());
    actor.app.store.revoke_token(row.organization, row.id, actor.now, Some(event)).await?;
    Ok(())
}

/// Finds a token that the actor may manage. 404 `not_found` if it does not exist, 403 as for its
/// revocation.
pub(super) async fn managed(actor: &Actor, id: &str) -> Result<TokenRow, ApiError> {
    let row = find(actor, id).await?;
    rights::may_manage(actor, &row).await?;
    Ok(row)
}

/// Finds a token in the actor's organization; otherwise 404 `not_found`.
async fn find(actor: &Actor, id: &str) -> Result<TokenRow, ApiError> {
    let id = id.parse::<TokenId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_token(actor.organization(), id).await?;
    row.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}
