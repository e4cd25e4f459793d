//! API tokens: credentials with which programs call the management API. A token acts for its owner,
//! a member or a service account, within its scopes.

mod request;
mod rights;
mod rotate;

use packhouse_identity::access::CredentialState;
use packhouse_identity::permissions::Permission;
use packhouse_identity::{self as identity, Minted};
use packhouse_store::{ApiTokenId, ApiTokenRow, MemberRow};
use packhouse_wire::catalogue;

use super::caller::name_of;
use super::confirmations::{Action, Confirmation};
use super::{Actor, NewCredential, PageRequest, RowPage, members};
use crate::error::ApiError;
pub use crate::scope::ApiScope;
pub(crate) use request::within_lifetime;
pub use request::{ApiTokenOwner, ApiTokenRequest};
pub use rotate::rotate;

/// Maximum number of valid API tokens of one owner.
const MOST: usize = 100;
/// Rows that are read in one statement.
const READ_AT_ONCE: u32 = 201;

/// API token with the name of its owner.
#[derive(Debug)]
pub struct OwnedApiToken {
    pub row: ApiTokenRow,
    /// E-mail address of a member, or name of a service account.
    pub owner: String,
}

impl OwnedApiToken {
    fn new(row: ApiTokenRow, owner: &MemberRow) -> OwnedApiToken {
        OwnedApiToken { row, owner: name_of(owner).to_owned() }
    }
}

/// State of the token at `now` (ms since 1970).
pub fn state(row: &ApiTokenRow, now: i64) -> CredentialState {
    CredentialState::at(now, row.revoked_at, Some(row.expires_at), row.ends_at)
}

/// Creates an API token for the actor, or for a service account whose permissions the actor holds
/// as well: otherwise 403 `role_mismatch`. 403 `scope_mismatch_api` if the credential is itself an
/// API token, 409 `servers_too_old`, 409 `too_many_api_tokens`.
pub async fn create(
    actor: &Actor,
    confirmation: &Confirmation,
    request: ApiTokenRequest,
) -> Result<NewCredential<OwnedApiToken>, ApiError> {
    actor.needs_session()?;
    confirmation.judge(actor, Action::CreateApiToken).await?;
    let owner = rights::owner_of_new(actor, &request.owner).await?;
    members::servers_know(actor, "API tokens").await?;
    bounded(actor, &owner).await?;
    let Minted { secret, sha256 } = identity::mint_api_token();
    let token = request.token(sha256, &owner, actor.name());
    let event = actor.event(Action::CreateApiToken.name(), token.name.clone());
    let row = actor.app.store.create_api_token(actor.organization(), token, Some(event)).await?;
    Ok(NewCredential { row: OwnedApiToken::new(row, &owner), secret: Some(secret), replaced: None })
}

/// Returns a page of the actor's own API tokens, or of those of the member or service account with
/// the id `owner`, which needs manage-members. 404 `not_found` if there is no such owner.
pub async fn list(
    actor: &Actor,
    owner: Option<&str>,
    page: PageRequest<ApiTokenId>,
) -> Result<RowPage<OwnedApiToken>, ApiError> {
    let owner = listed_owner(actor, owner).await?;
    let (store, organization) = (&actor.app.store, actor.organization());
    let rows = store.list_api_tokens(organization, Some(owner.id), page.after, page.one_further()).await?;
    Ok(page.cut(rows.into_iter().map(|row| OwnedApiToken::new(row, &owner)).collect()))
}

/// Like [`list`], but the newest token comes first.
pub async fn list_newest(
    actor: &Actor,
    owner: Option<&str>,
    page: PageRequest<ApiTokenId>,
) -> Result<RowPage<OwnedApiToken>, ApiError> {
    let owner = listed_owner(actor, owner).await?;
    let (store, organization) = (&actor.app.store, actor.organization());
    let rows = store.list_newest_api_tokens(organization, owner.id, page.after, page.one_further()).await?;
    Ok(page.cut(rows.into_iter().map(|row| OwnedApiToken::new(row, &owner)).collect()))
}

/// Returns the account whose tokens are to be listed. Another one than the actor's needs
/// manage-members.
async fn listed_owner(actor: &Actor, owner: Option<&str>) -> Result<MemberRow, ApiError> {
    match owner.filter(|id| *id != ME && !members::is_own(actor, id)) {
        None => {
            actor.judged_own();
            Ok(actor.member().clone())
        }
        Some(id) => {
            actor.needs(Permission::ManageMembers)?;
            members::find_any(actor, id).await
        }
    }
}

/// Revokes an API token: the actor's own, or with manage-members one of a member or service account
/// that does not hold more than the actor. It is refused from the next request on. Revoking it
/// again has no effect.
pub async fn revoke(actor: &Actor, id: &str) -> Result<(), ApiError> {
    actor.needs_session()?;
    let row = find(actor, id).await?;
    rights::may_revoke(actor, &row).await?;
    let event = actor.event("revoke_api_token", row.name.clone());
    actor.app.store.revoke_api_token(row.organization, row.id, actor.now, Some(event)).await?;
    Ok(())
}

/// Name of the caller in place of an owner's id.
const ME: &str = "me";

/// Finds an API token in the actor's organization; otherwise 404 `not_found`.
async fn find(actor: &Actor, id: &str) -> Result<ApiTokenRow, ApiError> {
    let id = id.parse::<ApiTokenId>().map_err(|_| &catalogue::NOT_FOUND)?;
    let row = actor.app.store.find_api_token(actor.organization(), id).await?;
    row.ok_or(ApiError::from(&catalogue::NOT_FOUND))
}

/// 409 `too_many_api_tokens` if the owner cannot have another valid API token.
async fn bounded(actor: &Actor, owner: &MemberRow) -> Result<(), ApiError> {
    let (store, mut valid, mut after) = (&actor.app.store, 0, None);
    loop {
        let rows = store.list_api_tokens(owner.organization, Some(owner.id), after, READ_AT_ONCE).await?;
        valid += rows.iter().filter(|row| state(row, actor.now).works()).count();
        if valid >= MOST {
            return Err(ApiError::with(&catalogue::TOO_MANY_API_TOKENS, &MOST.to_string()));
        }
        if rows.len() < READ_AT_ONCE as usize {
            return Ok(());
        }
        after = rows.last().map(|row| row.id);
    }
}
