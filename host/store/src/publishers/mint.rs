//! Exchange of an ID token for a token. One transaction writes the use of the ID token, the owner
//! of the workflow's repository and the new token.

use std::fmt;

use crate::accounts::{AuditEvent, NewToken, TokenRow, insert_token, read_token, remember, token_events};
use crate::boxed;
use crate::db::{Transaction, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, PublisherId, TokenId};
use crate::store::Store;
use crate::webhooks::Listeners;

/// Retention of expired tokens in ms, so that people can look up a token named in the log for a
/// day.
const RETAINED_MS: i64 = 24 * 60 * 60 * 1000;
/// Retention of a revoked ID token after its expiry in ms, because clocks differ.
const SPENT_RETAINED_MS: i64 = 60 * 1000;
/// Maximum rows of each table that one call deletes.
const SWEPT: i64 = 100;

/// An ID token that can be exchanged only once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpentIdToken {
    /// Hash of the issuer and the identifier.
    pub sha256: [u8; 32],
    /// Time until which the ID token could be exchanged, in ms since 1970.
    pub until: i64,
}

/// A publisher of a token, and the owner of the workflow's repository according to the ID token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublisherUse {
    pub id: PublisherId,
    /// Owner id, if the provider has such ids.
    pub owner_id: Option<String>,
}

/// A token to be issued.
#[derive(Clone)]
pub struct TokenToMint {
    /// The token. If a valid token of the same hash and grants exists, it is returned instead.
    pub token: NewToken,
    /// Grants of the token, as JSON.
    pub grants: String,
    /// Publishers that the ID token matched.
    pub publishers: Vec<PublisherUse>,
    /// The ID token that is exchanged.
    pub id_token: SpentIdToken,
    /// True if the exchange spends the ID token; false if the ID token itself is the secret of the
    /// issued token.
    pub spends: bool,
}

impl fmt::Debug for TokenToMint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenToMint").field("grants", &self.grants).finish_non_exhaustive()
    }
}

/// Outcome of the exchange of an ID token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mint {
    /// The token was issued, or existed already.
    Made(Box<TokenRow>),
    /// The ID token was exchanged before.
    Spent,
    /// A publisher was deleted meanwhile, or is now bound to another owner.
    Changed,
}

impl Store {
    /// Issues a token atomically. The first use of a publisher binds it to the owner of the
    /// workflow's repository.
    #[boxed]
    pub async fn mint_token(
        &self,
        organization: OrganizationId,
        mint: TokenToMint,
        audit: Option<AuditEvent>,
    ) -> Result<Mint, StoreError> {
        let TokenToMint { token, grants, publishers, id_token, spends } = mint;
        let now = self.now_ms();
        let mut transaction = self.inner.db.begin().await?;
        let is_fresh = if spends {
            spend(&mut transaction, id_token).await?
        } else {
            let find = "SELECT expires_at FROM spent_id_tokens WHERE id_sha256 = $1";
            transaction.fetch_one(find, values![&id_token.sha256]).await?.is_none()
        };
        if !is_fresh {
            return Ok(Mint::Spent);
        }
        for PublisherUse { id, owner_id } in &publishers {
            let used = "UPDATE trusted_publishers SET owner_id = COALESCE(owner_id, $3), last_used_at = $4 \
                        WHERE organization = $1 AND id = $2 AND (owner_id IS NULL OR owner_id = $3)";
            let values = values![organization.0, id.0, owner_id.as_deref(), now];
            if transaction.execute(used, values).await? == 0 {
                return Ok(Mint::Changed);
            }
        }
        if let Some(same) = make_room(&mut transaction, &token, &grants).await? {
            return Ok(Mint::Made(Box::new(same)));
        }
        sweep(&mut transaction, now).await?;
        let mut row = insert_token(&mut transaction, organization, token).await?;
        let reach = "UPDATE tokens SET grants = $2 WHERE id = $1";
        transaction.execute(reach, values![row.id.0, grants.as_str()]).await?;
        for PublisherUse { id, .. } in &publishers {
            let stand = "INSERT INTO publisher_tokens (publisher, token) VALUES ($1, $2)";
            transaction.execute(stand, values![id.0, row.id.0]).await?;
        }
        row.grants = Some(grants);
        let listeners = Listeners::of(&mut transaction, organization).await?;
        let hooks = token_events::created(&mut transaction, &listeners, &row, None, audit.as_ref()).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify(hooks);
        Ok(Mint::Made(Box::new(row)))
    }
}

impl Store {
    /// Marks an ID token as spent.
    #[boxed]
    pub async fn spend_id_token(&self, id_token: SpentIdToken) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        spend(&mut transaction, id_token).await?;
        transaction.commit().await
    }
}

/// Marks an ID token as spent; false if it was spent before.
async fn spend(transaction: &mut Transaction, id_token: SpentIdToken) -> Result<bool, StoreError> {
    let SpentIdToken { sha256, until } = id_token;
    let insert = "INSERT INTO spent_id_tokens (id_sha256, expires_at) VALUES ($1, $2) ON CONFLICT (id_sha256) DO NOTHING";
    Ok(transaction.execute(insert, values![&sha256, until]).await? == 1)
}

/// Marks an ID token as spent if it is the secret of this token. The revocation lasts until the ID
/// token has expired.
pub(crate) async fn spend_credential(transaction: &mut Transaction, id: TokenId) -> Result<(), StoreError> {
    #[derive(serde::Deserialize)]
    struct Grant {
        id_token: Option<String>,
    }
    let find = "SELECT grants, expires_at FROM tokens WHERE id = $1 AND grants IS NOT NULL";
    let Some(row) = transaction.fetch_one(find, values![id.0]).await? else { return Ok(()) };
    let mut columns = row.columns();
    let grants: Vec<Grant> = serde_json::from_str(&columns.text("grants")?).unwrap_or_default();
    let until = columns.opt_int("expires_at")?.unwrap_or(i64::MAX);
    let named = grants.into_iter().find_map(|grant| hex::decode(grant.id_token?).ok());
    if let Some(sha256) = named.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok()) {
        spend(transaction, SpentIdToken { sha256, until: until.saturating_add(SPENT_RETAINED_MS) }).await?;
    }
    Ok(())
}

/// Returns the token of this hash if it is valid and has the same grants. Otherwise deletes it and
/// returns `None`, so that the new token can take its place.
async fn make_room(
    transaction: &mut Transaction,
    token: &NewToken,
    grants: &str,
) -> Result<Option<TokenRow>, StoreError> {
    let Some(row) = read_token(transaction, &token.secret_sha256).await? else { return Ok(None) };
    if row.revoked_at.is_none() && row.grants.as_deref() == Some(grants) {
        return Ok(Some(row));
    }
    let delete = "DELETE FROM tokens WHERE id = $1 AND grants IS NOT NULL";
    transaction.execute(delete, values![row.id.0]).await?;
    Ok(None)
}

/// Deletes expired rows. The number of deleted rows is bounded, so that no request waits long.
async fn sweep(transaction: &mut Transaction, now: i64) -> Result<(), StoreError> {
    let spent = "DELETE FROM spent_id_tokens WHERE id_sha256 IN \
                 (SELECT id_sha256 FROM spent_id_tokens WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";
    transaction.execute(spent, values![now, SWEPT]).await?;
    let ended = "DELETE FROM tokens WHERE id IN \
                 (SELECT id FROM tokens WHERE grants IS NOT NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2)";
    transaction.execute(ended, values![now.saturating_sub(RETAINED_MS), SWEPT]).await?;
    Ok(())
}
