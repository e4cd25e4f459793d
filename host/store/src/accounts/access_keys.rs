//! Access keys: the read-only credentials of subscribers and of groups of them.

use std::fmt;

use crate::accounts::AuditEvent;
use crate::accounts::event::remember;
use crate::accounts::rows::access_key::{AccessKeyRow, KEY_COLUMNS, key};
use crate::boxed;
use crate::db::{Transaction, Value, columns_of, values};
use crate::error::StoreError;
use crate::ids::{AccessKeyId, KeyOwnerId, OrganizationId, new_id, now_ms};
use crate::store::Store;

/// Fields of an access key to be created.
#[derive(Clone)]
pub struct NewAccessKey {
    pub secret_sha256: [u8; 32],
    pub name: Option<String>,
    /// The subscriber or group that the key belongs to.
    pub owner: KeyOwnerId,
    /// E-mail address of the member who creates the key.
    pub created_by: String,
    /// Expiry in ms since 1970; `None` if the key never expires.
    pub expires_at: Option<i64>,
}

impl fmt::Debug for NewAccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewAccessKey").field("owner", &self.owner).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeyRotation {
    Rotated(Box<AccessKeyRow>),
    /// The key was changed or deleted since it was read. The call changed nothing.
    Changed,
}

impl Store {
    /// Creates an access key. Returns `None` if the owner no longer exists.
    #[boxed]
    pub async fn create_access_key(
        &self,
        organization: OrganizationId,
        new: NewAccessKey,
        audit: Option<AuditEvent>,
    ) -> Result<Option<AccessKeyRow>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let made = insert(&mut transaction, organization, new).await?;
        if made.is_some() {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(made)
    }

    /// Returns the owner's key with this identifier, even if it is expired or revoked.
    #[boxed]
    pub async fn find_access_key(
        &self,
        owner: KeyOwnerId,
        id: AccessKeyId,
    ) -> Result<Option<AccessKeyRow>, StoreError> {
        let found = self.access_keys("k.owner = $1 AND k.id = $2", values![owner.0, id.0]).await?;
        Ok(found.into_iter().next())
    }

    /// Lists at most `limit` keys of an owner by creation time, after the identifier `after`.
    #[boxed]
    pub async fn list_access_keys(
        &self,
        owner: KeyOwnerId,
        after: Option<AccessKeyId>,
        limit: u32,
    ) -> Result<Vec<AccessKeyRow>, StoreError> {
        let values = values![owner.0, after.map_or(i64::MIN, |after| after.0), i64::from(limit)];
        self.access_keys("k.owner = $1 AND k.id > $2 ORDER BY k.id LIMIT $3", values).await
    }

    /// Revokes a key at `now` (ms since 1970). Returns false if it does not exist or is revoked
    /// already. In that case, too, waits until every server has acknowledged the revocation. The
    /// server that revoked the key may have stopped before it notified the others.
    #[boxed]
    pub async fn revoke_access_key(
        &self,
        owner: KeyOwnerId,
        id: AccessKeyId,
        now: i64,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let revoke =
            "UPDATE access_keys SET revoked_at = $3 WHERE owner = $1 AND id = $2 AND revoked_at IS NULL";
        let revoked = self.change_access_key(revoke, values![owner.0, id.0, now], audit).await?;
        if !revoked {
            self.announce_again(format!("k{}", id.0)).await?;
        }
        Ok(revoked)
    }

    /// Sets the expiry of a key. Returns false if the key was changed since it was read.
    #[boxed]
    pub async fn set_access_key_expiry(
        &self,
        read: &AccessKeyRow,
        expires_at: Option<i64>,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let set = "UPDATE access_keys SET expires_at = $3 WHERE owner = $1 AND id = $2 \
                   AND ends_at IS NOT DISTINCT FROM $4 AND revoked_at IS NOT DISTINCT FROM $5 \
                   AND expires_at IS NOT DISTINCT FROM $6";
        self.change_access_key(set, as_read(read, expires_at), audit).await
    }

    /// Creates a successor and ends `old` at `ends_at` (ms since 1970), unless the row changed
    /// since it was read. With `at_once`, the old key is revoked instead, because a server whose
    /// clock is behind would still accept a key that has just ended.
    #[boxed]
    pub async fn rotate_access_key(
        &self,
        old: &AccessKeyRow,
        ends_at: i64,
        at_once: bool,
        successor: NewAccessKey,
        audit: Option<AuditEvent>,
    ) -> Result<KeyRotation, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let end = "UPDATE access_keys SET ends_at = $3, revoked_at = CASE WHEN $7 = 1 THEN $3 ELSE revoked_at END \
                   WHERE owner = $1 AND id = $2 \
                   AND ends_at IS NOT DISTINCT FROM $4 AND revoked_at IS NOT DISTINCT FROM $5 \
                   AND expires_at IS NOT DISTINCT FROM $6";
        let mut values = as_read(old, Some(ends_at));
        values.push(Value::from(i64::from(at_once)));
        if transaction.execute(end, values).await? == 0 {
            return Ok(KeyRotation::Changed);
        }
        let Some(row) = insert(&mut transaction, old.organization, successor).await? else {
            return Ok(KeyRotation::Changed);
        };
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(KeyRotation::Rotated(Box::new(row)))
    }

    async fn change_access_key(
        &self,
        sql: &'static str,
        values: Vec<Value>,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let changed = transaction.execute(sql, values).await? == 1;
        if changed {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(changed)
    }

    async fn access_keys(
        &self,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<AccessKeyRow>, StoreError> {
        let sql = format!("SELECT {} FROM access_keys k WHERE {condition}", columns_of("k", KEY_COLUMNS));
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(|row| key(&mut row.columns_of("k"))).collect()
    }
}

/// Statement values: the row's key, the new value, and the values that the row must still have.
fn as_read(read: &AccessKeyRow, value: Option<i64>) -> Vec<Value> {
    values![read.owner.0, read.id.0, value, read.ends_at, read.revoked_at, read.expires_at]
}

/// Returns `None` if the owner does not exist.
async fn insert(
    transaction: &mut Transaction,
    organization: OrganizationId,
    new: NewAccessKey,
) -> Result<Option<AccessKeyRow>, StoreError> {
    let row = AccessKeyRow {
        id: AccessKeyId(new_id()),
        organization,
        secret_sha256: new.secret_sha256,
        name: new.name,
        owner: new.owner,
        created_by: new.created_by,
        expires_at: new.expires_at,
        ends_at: None,
        revoked_at: None,
        created_at: now_ms(),
        last_used_at: None,
    };
    let owned =
        format!("SELECT id FROM key_owners WHERE organization = $1 AND id = $2{}", transaction.for_update());
    if transaction.fetch_one(owned, values![organization.0, row.owner.0]).await?.is_none() {
        return Ok(None);
    }
    let insert = "INSERT INTO access_keys (id, organization, secret_sha256, name, owner, created_by, expires_at, created_at) \
                  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let values = values![
        row.id.0,
        organization.0,
        &row.secret_sha256,
        row.name.as_deref(),
        row.owner.0,
        row.created_by.as_str(),
        row.expires_at,
        row.created_at,
    ];
    transaction.execute(insert, values).await?;
    Ok(Some(row))
}
