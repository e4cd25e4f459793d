//! Giving a token out for an ID token: that it is spent, who owns the workflow's repository, and the token itself are written together.

use std::fmt;

use crate::accounts::{AuditEvent, NewToken, TokenRow, insert_token, read_token, remember, told};
use crate::boxed;
use crate::db::{Transaction, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, PublisherId, TokenId};
use crate::store::Store;
use crate::webhooks::Listeners;

/// How long a token that has ended is kept, in ms: what the log names is found for a day.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;
/// For how long after its end a revoked ID token is remembered, in ms: clocks differ.
const KEPT_SPENT_MS: i64 = 60 * 1000;
/// Rows that one call sweeps away at most, of each table.
const SWEPT: i64 = 100;

/// An ID token that is exchanged, and never again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SpentIdToken {
    /// Of its issuer and its identifier.
    pub sha256: [u8; 32],
    /// Until when it could be exchanged, in ms since 1970.
    pub until: i64,
}

/// A publisher behind a token, and who owns the workflow's repository as the ID token says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PublisherUse {
    /// The publisher.
    pub id: PublisherId,
    /// The owner's number, where such count.
    pub owner_id: Option<String>,
}

/// A token to be given out.
#[derive(Clone)]
pub struct TokenToMint {
    /// The token. One of its hash that is there already is answered instead, where it works and reaches the same.
    pub token: NewToken,
    /// What it reaches, as JSON.
    pub grants: String,
    /// Who stands behind it.
    pub publishers: Vec<PublisherUse>,
    /// The ID token that it is for.
    pub id_token: SpentIdToken,
    /// Whether that is spent by it; else it is the secret itself.
    pub spends: bool,
}

impl fmt::Debug for TokenToMint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenToMint").field("grants", &self.grants).finish_non_exhaustive()
    }
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mint {
    /// The token is there.
    Made(Box<TokenRow>),
    /// The ID token was exchanged before.
    Spent,
    /// A publisher was deleted meanwhile, or belongs to another owner by now.
    Changed,
}

impl Store {
    /// Gives a token out: all of it or nothing. The first use of a publisher settles who owns the workflow's repository.
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
        let hooks = told::created(&mut transaction, &listeners, &row, None, audit.as_ref()).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.bell.ring(hooks);
        Ok(Mint::Made(Box::new(row)))
    }
}

impl Store {
    /// Notes that an ID token counts no more.
    #[boxed]
    pub async fn spend_id_token(&self, id_token: SpentIdToken) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        spend(&mut transaction, id_token).await?;
        transaction.commit().await
    }
}

/// Spends an ID token; false where it was spent before.
async fn spend(transaction: &mut Transaction, id_token: SpentIdToken) -> Result<bool, StoreError> {
    let SpentIdToken { sha256, until } = id_token;
    let insert = "INSERT INTO spent_id_tokens (id_sha256, expires_at) VALUES ($1, $2) ON CONFLICT (id_sha256) DO NOTHING";
    Ok(transaction.execute(insert, values![&sha256, until]).await? == 1)
}

/// Spends the ID token that is the secret of this token, where it is one: its revocation counts until the ID token has expired.
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
        spend(transaction, SpentIdToken { sha256, until: until.saturating_add(KEPT_SPENT_MS) }).await?;
    }
    Ok(())
}

/// The token of this hash, if it works and reaches the same; else none, and one that stands in the way is gone.
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

/// Sweeps away what has ended: a bounded number of rows, so that nobody waits long.
async fn sweep(transaction: &mut Transaction, now: i64) -> Result<(), StoreError> {
    let spent = "DELETE FROM spent_id_tokens WHERE id_sha256 IN \
                 (SELECT id_sha256 FROM spent_id_tokens WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";
    transaction.execute(spent, values![now, SWEPT]).await?;
    let ended = "DELETE FROM tokens WHERE id IN \
                 (SELECT id FROM tokens WHERE grants IS NOT NULL AND expires_at <= $1 ORDER BY expires_at LIMIT $2)";
    transaction.execute(ended, values![now.saturating_sub(KEPT_MS), SWEPT]).await?;
    Ok(())
}
