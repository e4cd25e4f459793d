//! Credentials that expire soon, for the people who renew them.

use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId};
use crate::store::Store;

/// Times of expiry to search for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ExpiryRange {
    /// Start in ms since 1970 (excluded).
    pub after: i64,
    /// End in ms since 1970.
    pub until: i64,
}

/// A service key that expires soon.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExpiringKey {
    pub name: String,
    /// Name of the repository to which it belongs; `None` for a key of the organization.
    pub repository: Option<String>,
    /// Expiry in ms since 1970.
    pub expires_at: i64,
}

/// An API token that expires soon.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExpiringApiToken {
    pub name: String,
    pub owner: MemberId,
    /// E-mail address of a member, or name of a service account.
    pub owner_name: String,
    /// Expiry in ms since 1970.
    pub expires_at: i64,
}

const KEYS: &str = "SELECT t.name, t.expires_at, r.name AS repository FROM tokens t \
    LEFT JOIN repositories r ON r.id = t.backing_repository WHERE t.organization = $1 AND t.owner IS NULL \
    AND t.backing IN ('org', 'repo') AND t.revoked_at IS NULL AND t.ends_at IS NULL \
    AND t.expires_at > $2 AND t.expires_at <= $3 ORDER BY t.expires_at, t.id LIMIT $4";

impl Store {
    /// At most `limit` valid service keys of the organization that expire in this range, the first
    /// to expire first. The result leaves out keys that a rotation replaced.
    #[boxed]
    pub async fn expiring_keys(
        &self,
        organization: OrganizationId,
        range: ExpiryRange,
        limit: u32,
    ) -> Result<Vec<ExpiringKey>, StoreError> {
        let values = values![organization.0, range.after, range.until, i64::from(limit)];
        let rows = self.inner.db.fetch(KEYS, values).await?;
        rows.iter().map(key).collect()
    }

    /// At most `limit` valid API tokens that expire in this range, the first to expire first: those
    /// of this owner, or of all owners in the organization. The result leaves out tokens that a
    /// rotation replaced.
    #[boxed]
    pub async fn expiring_api_tokens(
        &self,
        organization: OrganizationId,
        owner: Option<MemberId>,
        range: ExpiryRange,
        limit: u32,
    ) -> Result<Vec<ExpiringApiToken>, StoreError> {
        let mut values = values![organization.0, range.after, range.until, i64::from(limit)];
        let of_owner = match owner {
            Some(owner) => {
                values.push(owner.0.into());
                " AND a.owner = $5"
            }
            None => "",
        };
        let sql = format!(
            "SELECT a.name, a.owner, a.expires_at, CASE WHEN m.kind = 'service' THEN m.name ELSE m.email END AS owner_name \
             FROM api_tokens a JOIN members m ON m.id = a.owner WHERE a.organization = $1{of_owner} \
             AND a.revoked_at IS NULL AND a.ends_at IS NULL AND a.expires_at > $2 AND a.expires_at <= $3 \
             ORDER BY a.expires_at, a.id LIMIT $4"
        );
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(api_token).collect()
    }
}

fn key(row: &Row) -> Result<ExpiringKey, StoreError> {
    let mut columns = row.columns();
    Ok(ExpiringKey {
        name: columns.text("name")?,
        expires_at: columns.int("expires_at")?,
        repository: columns.opt_text("repository")?,
    })
}

fn api_token(row: &Row) -> Result<ExpiringApiToken, StoreError> {
    let mut columns = row.columns();
    Ok(ExpiringApiToken {
        name: columns.text("name")?,
        owner: MemberId(columns.int("owner")?),
        expires_at: columns.int("expires_at")?,
        owner_name: columns.text("owner_name")?,
    })
}
