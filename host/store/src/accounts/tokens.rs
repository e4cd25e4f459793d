use std::fmt;

use crate::accounts::AuditEvent;
use crate::accounts::event::remember;
use crate::accounts::rows::texts::list_json;
use crate::accounts::rows::token::{Scope, TOKEN_COLUMNS, TokenRow, token};
use crate::accounts::token_events;
use crate::boxed;
use crate::db::{Transaction, Value, columns_of, values};
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, RepositoryId, TokenId, new_id, now_ms};
use crate::publishers::spend_credential;
use crate::store::Store;
use crate::webhooks::Listeners;

/// Fields of a token to be created.
#[derive(Clone)]
pub struct NewToken {
    pub secret_sha256: [u8; 32],
    pub name: String,
    pub scope: Scope,
    /// `generic` or the name of a format.
    pub format: String,
    /// Member whose permissions bound the token.
    pub owner: Option<MemberId>,
    /// E-mail address of the member who creates the token.
    pub created_by: String,
    /// `org`, `repo` or `legacy`; `None` for a member's token.
    pub backing: Option<String>,
    /// Repository of a `repo` backing.
    pub backing_repository: Option<RepositoryId>,
    /// Repositories that the token reaches.
    pub repositories: Vec<RepositoryId>,
    /// Expiry in ms since 1970; `None` if the token never expires.
    pub expires_at: Option<i64>,
    /// Patterns of the packages that the token may publish and delete; `None` for all.
    pub packages: Option<Vec<String>>,
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewToken").field("name", &self.name).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rotation {
    Rotated(Box<TokenRow>),
    /// The token was changed since it was read. The call changed nothing.
    Changed,
    /// The token no longer exists.
    Gone,
}

impl Store {
    #[boxed]
    pub async fn create_token(
        &self,
        organization: OrganizationId,
        token: NewToken,
        audit: Option<AuditEvent>,
    ) -> Result<TokenRow, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let row = insert(&mut transaction, organization, token).await?;
        let listeners = Listeners::of(&mut transaction, organization).await?;
        let hooks = token_events::created(&mut transaction, &listeners, &row, None, audit.as_ref()).await?;
        remember(&mut transaction, named(audit, row.id)).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify(hooks);
        Ok(row)
    }

    /// Returns the token with this identifier in this organization, in any state.
    #[boxed]
    pub async fn find_token(
        &self,
        organization: OrganizationId,
        id: TokenId,
    ) -> Result<Option<TokenRow>, StoreError> {
        let found = self.tokens("t.organization = $1 AND t.id = $2", values![organization.0, id.0]).await?;
        Ok(found.into_iter().next())
    }

    /// Lists at most `limit` tokens by creation time, after the identifier `after`. Lists the
    /// owner's tokens, or, without an owner, the service keys with this backing.
    #[boxed]
    pub async fn list_tokens(
        &self,
        organization: OrganizationId,
        owner: Option<MemberId>,
        backing: Option<&str>,
        after: Option<TokenId>,
        limit: u32,
    ) -> Result<Vec<TokenRow>, StoreError> {
        let after = after.map_or(i64::MIN, |after| after.0);
        match owner {
            Some(owner) => {
                let condition = "t.organization = $1 AND t.owner = $2 AND t.id > $3 ORDER BY t.id LIMIT $4";
                self.tokens(condition, values![organization.0, owner.0, after, i64::from(limit)]).await
            }
            None => {
                let condition = "t.organization = $1 AND t.owner IS NULL AND t.backing = $2 AND t.id > $3 \
                                 ORDER BY t.id LIMIT $4";
                self.tokens(condition, values![organization.0, backing, after, i64::from(limit)]).await
            }
        }
    }

    /// Revokes a token at `now` (ms since 1970). Returns false if it does not exist or is revoked
    /// already. In that case, too, waits until every server has acknowledged the revocation. The
    /// server that revoked the token may have stopped before it notified the others.
    #[boxed]
    pub async fn revoke_token(
        &self,
        organization: OrganizationId,
        id: TokenId,
        now: i64,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let revoke =
            "UPDATE tokens SET revoked_at = $3 WHERE organization = $1 AND id = $2 AND revoked_at IS NULL";
        let revoked = transaction.execute(revoke, values![organization.0, id.0, now]).await? == 1;
        if revoked {
            spend_credential(&mut transaction, id).await?;
            let listeners = Listeners::of(&mut transaction, organization).await?;
            let hooks = token_events::revoked(&mut transaction, &listeners, &[id], audit.as_ref()).await?;
            remember(&mut transaction, named(audit, id)).await?;
            transaction.commit().await?;
            self.inner.delivery_notifier.notify(hooks);
        } else {
            drop(transaction);
            self.announce_again(format!("t{}", id.0)).await?;
        }
        Ok(revoked)
    }

    /// Revokes a token minted for a trusted publisher, found by the hash of its secret. Returns
    /// false if it does not exist or is already revoked. The audit event gets the token's creator
    /// and name.
    #[boxed]
    pub async fn revoke_minted(
        &self,
        organization: OrganizationId,
        secret_sha256: &[u8; 32],
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let condition = "t.organization = $1 AND t.secret_sha256 = $2 AND t.grants IS NOT NULL";
        let found = self.tokens(condition, values![organization.0, secret_sha256]).await?;
        let Some(row) = found.into_iter().next() else { return Ok(false) };
        let named = |event: AuditEvent| AuditEvent {
            actor: row.created_by.clone(),
            credential: format!("token:{}", row.id),
            subject: row.name.clone(),
            ..event
        };
        self.revoke_token(organization, row.id, self.now_ms(), audit.map(named)).await
    }

    /// Creates a successor and ends `old` at `ends_at` (ms since 1970), unless the row changed
    /// since it was read. With `at_once`, the old token is revoked instead, because a server whose
    /// clock is behind would still accept a token that has just ended.
    #[boxed]
    pub async fn rotate_token(
        &self,
        old: &TokenRow,
        ends_at: i64,
        at_once: bool,
        successor: NewToken,
        audit: Option<AuditEvent>,
    ) -> Result<Rotation, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let end = "UPDATE tokens SET ends_at = $3, revoked_at = CASE WHEN $7 = 1 THEN $3 ELSE revoked_at END \
                   WHERE organization = $1 AND id = $2 \
                   AND ends_at IS NOT DISTINCT FROM $4 AND revoked_at IS NOT DISTINCT FROM $5 \
                   AND expires_at IS NOT DISTINCT FROM $6";
        let revokes = at_once && old.revoked_at.is_none();
        let at_once = i64::from(at_once);
        let as_read = values![
            old.organization.0,
            old.id.0,
            ends_at,
            old.ends_at,
            old.revoked_at,
            old.expires_at,
            at_once
        ];
        if transaction.execute(end, as_read).await? == 0 {
            let find = "SELECT id FROM tokens WHERE organization = $1 AND id = $2";
            let there = transaction.fetch_one(find, values![old.organization.0, old.id.0]).await?.is_some();
            return Ok(if there { Rotation::Changed } else { Rotation::Gone });
        }
        let row = insert(&mut transaction, old.organization, successor).await?;
        let listeners = Listeners::of(&mut transaction, old.organization).await?;
        let mut hooks =
            token_events::created(&mut transaction, &listeners, &row, Some(old.id), audit.as_ref()).await?;
        let ended: &[TokenId] = if revokes { &[old.id] } else { &[] };
        hooks.extend(token_events::revoked(&mut transaction, &listeners, ended, audit.as_ref()).await?);
        let audit = audit.map(|event| AuditEvent {
            detail: format!(r#"{{"token":"{}","replaced":"{}"}}"#, row.id, old.id),
            ..event
        });
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify(hooks);
        Ok(Rotation::Rotated(Box::new(row)))
    }

    /// Lists at most `limit` tokens of the organization in any state by creation time, after the
    /// identifier `after`.
    #[boxed]
    pub async fn all_tokens(
        &self,
        organization: OrganizationId,
        after: Option<TokenId>,
        limit: u32,
    ) -> Result<Vec<TokenRow>, StoreError> {
        let after = after.map_or(i64::MIN, |after| after.0);
        let condition = "t.organization = $1 AND t.id > $2 ORDER BY t.id LIMIT $3";
        self.tokens(condition, values![organization.0, after, i64::from(limit)]).await
    }

    /// Creates tokens whose secrets were issued elsewhere, all or none, and returns their number. A
    /// token whose secret is already stored is skipped.
    #[boxed]
    pub async fn import_tokens(
        &self,
        organization: OrganizationId,
        tokens: Vec<NewToken>,
        audit: Option<AuditEvent>,
    ) -> Result<u64, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let (mut made, mut hooks) = (0, Vec::new());
        let listeners = Listeners::of(&mut transaction, organization).await?;
        for token in tokens {
            let known = "SELECT id FROM tokens WHERE secret_sha256 = $1";
            if transaction.fetch_one(known, values![&token.secret_sha256]).await?.is_none() {
                let row = insert(&mut transaction, organization, token).await?;
                hooks.extend(
                    token_events::created(&mut transaction, &listeners, &row, None, audit.as_ref()).await?,
                );
                made += 1;
            }
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.inner.delivery_notifier.notify(hooks);
        Ok(made)
    }

    /// Deletes the rows of tokens that expired, ended or were revoked before `before` (ms since
    /// 1970), and returns their number.
    #[boxed]
    pub async fn purge_tokens(
        &self,
        organization: OrganizationId,
        before: i64,
        audit: Option<AuditEvent>,
    ) -> Result<u64, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let purge = "DELETE FROM tokens WHERE organization = $1 \
                     AND (expires_at < $2 OR revoked_at < $2 OR ends_at < $2)";
        let purged = transaction.execute(purge, values![organization.0, before]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(purged)
    }

    pub(super) async fn tokens(
        &self,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<TokenRow>, StoreError> {
        let sql = format!("SELECT {} FROM tokens t WHERE {condition}", columns_of("t", TOKEN_COLUMNS));
        let rows = self.inner.db.fetch(sql, values).await?;
        let mut tokens: Vec<TokenRow> =
            rows.iter().map(|row| token(&mut row.columns_of("t"))).collect::<Result<_, _>>()?;
        if tokens.is_empty() {
            return Ok(tokens);
        }
        let names: Vec<String> = (1..tokens.len() + 1).map(|at| format!("${at}")).collect();
        let sql = format!(
            "SELECT token, repository FROM token_repositories WHERE token IN ({}) ORDER BY repository",
            names.join(",")
        );
        let ids = tokens.iter().map(|token| Value::from(token.id.0)).collect();
        for row in self.inner.db.fetch(sql, ids).await? {
            let mut columns = row.columns();
            let (id, repository) = (TokenId(columns.int("token")?), RepositoryId(columns.int("repository")?));
            if let Some(token) = tokens.iter_mut().find(|token| token.id == id) {
                token.repositories.push(repository);
            }
        }
        Ok(tokens)
    }
}

/// Reads the token with this hash in this transaction, without its repositories.
pub(crate) async fn read_token(
    transaction: &mut Transaction,
    secret_sha256: &[u8; 32],
) -> Result<Option<TokenRow>, StoreError> {
    let sql = format!("SELECT {} FROM tokens t WHERE t.secret_sha256 = $1", columns_of("t", TOKEN_COLUMNS));
    let row = transaction.fetch_one(sql, values![secret_sha256]).await?;
    row.map(|row| token(&mut row.columns_of("t"))).transpose()
}

/// Adds the token's identifier to the event, because names are not unique.
fn named(audit: Option<AuditEvent>, id: TokenId) -> Option<AuditEvent> {
    audit.map(|event| AuditEvent { detail: format!(r#"{{"token":"{id}"}}"#), ..event })
}

pub(crate) async fn insert(
    transaction: &mut Transaction,
    organization: OrganizationId,
    token: NewToken,
) -> Result<TokenRow, StoreError> {
    let mut repositories = token.repositories;
    repositories.sort_unstable();
    repositories.dedup();
    let row = TokenRow {
        id: TokenId(new_id()),
        organization,
        secret_sha256: token.secret_sha256,
        name: token.name,
        scope: token.scope,
        format: token.format,
        owner: token.owner,
        created_by: token.created_by,
        backing: token.backing,
        backing_repository: token.backing_repository,
        repositories,
        expires_at: token.expires_at,
        ends_at: None,
        revoked_at: None,
        created_at: now_ms(),
        last_used_at: None,
        grants: None,
        packages: token.packages,
    };
    let insert = "INSERT INTO tokens (id, organization, secret_sha256, name, scope, format, owner, created_by, backing, \
                  backing_repository, expires_at, created_at, packages) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    let values = values![
        row.id.0,
        organization.0,
        &row.secret_sha256,
        row.name.as_str(),
        row.scope.bits(),
        row.format.as_str(),
        row.owner.map(|owner| owner.0),
        row.created_by.as_str(),
        row.backing.as_deref(),
        row.backing_repository.map(|repository| repository.0),
        row.expires_at,
        row.created_at,
        row.packages.as_deref().map(list_json),
    ];
    transaction.execute(insert, values).await?;
    let reach = |repository: &RepositoryId| [Value::from(row.id.0), Value::from(repository.0)];
    let before = "INSERT INTO token_repositories (token, repository) VALUES ";
    transaction.execute_rows(before, row.repositories.iter().map(reach).collect(), "").await?;
    Ok(row)
}
