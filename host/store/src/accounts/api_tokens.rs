//! API tokens, with which programs call the API as a member or a service account.

use std::fmt;

use crate::accounts::AuditEvent;
use crate::accounts::event::remember;
use crate::accounts::rows::api_token::{API_TOKEN_COLUMNS, ApiTokenRow, api_token};
use crate::accounts::rows::member::{MemberRow, member, member_columns};
use crate::accounts::rows::texts::list_json;
use crate::boxed;
use crate::db::{Row, Transaction, Value, columns_of, values};
use crate::error::StoreError;
use crate::ids::{ApiTokenId, MemberId, OrganizationId, new_id, now_ms};
use crate::store::Store;

/// Fields of an API token to be created.
#[derive(Clone)]
pub struct NewApiToken {
    /// Member or service account whose permissions bound the token.
    pub owner: MemberId,
    pub secret_sha256: [u8; 32],
    pub name: String,
    /// Scopes by their names in the API.
    pub scopes: Vec<String>,
    /// Actions that the token may do without a fresh confirmation, by their names in the API.
    pub sensitive: Vec<String>,
    /// E-mail address of the member who creates the token.
    pub created_by: String,
    /// Expiry in ms since 1970.
    pub expires_at: i64,
}

impl fmt::Debug for NewApiToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewApiToken")
            .field("owner", &self.owner)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApiTokenRotation {
    Rotated(Box<ApiTokenRow>),
    /// The token was changed since it was read. The call changed nothing.
    Changed,
    /// The token no longer exists.
    Gone,
}

impl Store {
    #[boxed]
    pub async fn create_api_token(
        &self,
        organization: OrganizationId,
        token: NewApiToken,
        audit: Option<AuditEvent>,
    ) -> Result<ApiTokenRow, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let row = insert(&mut transaction, organization, token).await?;
        remember(&mut transaction, named(audit, row.id)).await?;
        transaction.commit().await?;
        Ok(row)
    }

    /// Returns the API token with this identifier in this organization, in any state.
    #[boxed]
    pub async fn find_api_token(
        &self,
        organization: OrganizationId,
        id: ApiTokenId,
    ) -> Result<Option<ApiTokenRow>, StoreError> {
        let condition = "a.organization = $1 AND a.id = $2";
        let found = self.api_tokens(condition, values![organization.0, id.0]).await?;
        Ok(found.into_iter().next())
    }

    /// Returns the API token with this secret and its owner, in any state, in one statement.
    #[boxed]
    pub async fn api_token_by_secret(
        &self,
        secret_sha256: &[u8; 32],
    ) -> Result<Option<(ApiTokenRow, MemberRow)>, StoreError> {
        let sql = format!(
            "SELECT {}, {} FROM api_tokens a JOIN members m ON m.id = a.owner WHERE a.secret_sha256 = $1",
            columns_of("a", API_TOKEN_COLUMNS),
            member_columns("m")
        );
        let row = self.inner.db.find(sql, values![secret_sha256]).await?;
        let read = |row: Row| Ok((api_token(&mut row.columns_of("a"))?, member(&mut row.columns_of("m"))?));
        row.map(read).transpose()
    }

    /// Lists at most `limit` API tokens in any state by creation time, after the identifier
    /// `after`: those of this owner, or of all owners in the organization.
    #[boxed]
    pub async fn list_api_tokens(
        &self,
        organization: OrganizationId,
        owner: Option<MemberId>,
        after: Option<ApiTokenId>,
        limit: u32,
    ) -> Result<Vec<ApiTokenRow>, StoreError> {
        let (after, limit) = (after.map_or(i64::MIN, |after| after.0), i64::from(limit));
        match owner {
            Some(owner) => {
                let condition = "a.organization = $1 AND a.owner = $2 AND a.id > $3 ORDER BY a.id LIMIT $4";
                self.api_tokens(condition, values![organization.0, owner.0, after, limit]).await
            }
            None => {
                let condition = "a.organization = $1 AND a.id > $2 ORDER BY a.id LIMIT $3";
                self.api_tokens(condition, values![organization.0, after, limit]).await
            }
        }
    }

    /// Revokes an API token at `now` (ms since 1970). Returns false if it does not exist or is
    /// revoked already. Every request with an API token reads it from the database, so no server
    /// accepts it afterwards.
    #[boxed]
    pub async fn revoke_api_token(
        &self,
        organization: OrganizationId,
        id: ApiTokenId,
        now: i64,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let revoke = "UPDATE api_tokens SET revoked_at = $3 \
                      WHERE organization = $1 AND id = $2 AND revoked_at IS NULL";
        let revoked = transaction.execute(revoke, values![organization.0, id.0, now]).await? == 1;
        if revoked {
            remember(&mut transaction, named(audit, id)).await?;
            transaction.commit().await?;
        }
        Ok(revoked)
    }

    /// Creates a successor and ends `old` at `ends_at` (ms since 1970), unless the row changed
    /// since it was read. With `at_once`, the old token is revoked instead, because a server whose
    /// clock is behind would still accept a token that has just ended.
    #[boxed]
    pub async fn rotate_api_token(
        &self,
        old: &ApiTokenRow,
        ends_at: i64,
        at_once: bool,
        successor: NewApiToken,
        audit: Option<AuditEvent>,
    ) -> Result<ApiTokenRotation, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let end = "UPDATE api_tokens SET ends_at = $3, revoked_at = CASE WHEN $7 = 1 THEN $3 ELSE revoked_at END \
                   WHERE organization = $1 AND id = $2 \
                   AND ends_at IS NOT DISTINCT FROM $4 AND revoked_at IS NOT DISTINCT FROM $5 \
                   AND expires_at = $6";
        let as_read = values![
            old.organization.0,
            old.id.0,
            ends_at,
            old.ends_at,
            old.revoked_at,
            old.expires_at,
            i64::from(at_once)
        ];
        if transaction.execute(end, as_read).await? == 0 {
            let find = "SELECT id FROM api_tokens WHERE organization = $1 AND id = $2";
            let there = transaction.fetch_one(find, values![old.organization.0, old.id.0]).await?.is_some();
            return Ok(if there { ApiTokenRotation::Changed } else { ApiTokenRotation::Gone });
        }
        let row = insert(&mut transaction, old.organization, successor).await?;
        let audit = audit.map(|event| AuditEvent {
            detail: format!(r#"{{"api_token":"{}","replaced":"{}"}}"#, row.id, old.id),
            ..event
        });
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(ApiTokenRotation::Rotated(Box::new(row)))
    }

    pub(super) async fn api_tokens(
        &self,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<ApiTokenRow>, StoreError> {
        let sql =
            format!("SELECT {} FROM api_tokens a WHERE {condition}", columns_of("a", API_TOKEN_COLUMNS));
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(|row| api_token(&mut row.columns_of("a"))).collect()
    }
}

/// Adds the token's identifier to the event, because names are not unique.
fn named(audit: Option<AuditEvent>, id: ApiTokenId) -> Option<AuditEvent> {
    audit.map(|event| AuditEvent { detail: format!(r#"{{"api_token":"{id}"}}"#), ..event })
}

async fn insert(
    transaction: &mut Transaction,
    organization: OrganizationId,
    token: NewApiToken,
) -> Result<ApiTokenRow, StoreError> {
    let row = ApiTokenRow {
        id: ApiTokenId(new_id()),
        organization,
        owner: token.owner,
        secret_sha256: token.secret_sha256,
        name: token.name,
        scopes: token.scopes,
        sensitive: token.sensitive,
        created_by: token.created_by,
        expires_at: token.expires_at,
        ends_at: None,
        revoked_at: None,
        created_at: now_ms(),
        last_used_at: None,
    };
    let insert = "INSERT INTO api_tokens (id, organization, owner, secret_sha256, name, scopes, sensitive, created_by, \
                  expires_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let values = values![
        row.id.0,
        organization.0,
        row.owner.0,
        &row.secret_sha256,
        row.name.as_str(),
        list_json(&row.scopes),
        list_json(&row.sensitive),
        row.created_by.as_str(),
        row.expires_at,
        row.created_at,
    ];
    transaction.execute(insert, values).await?;
    Ok(row)
}
