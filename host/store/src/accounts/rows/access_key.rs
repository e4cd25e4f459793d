use std::fmt;

use crate::db::Columns;
use crate::error::StoreError;
use crate::ids::{AccessKeyId, KeyOwnerId, OrganizationId};

/// An access key. Its `Debug` hides the secret's hash.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKeyRow {
    pub id: AccessKeyId,
    pub organization: OrganizationId,
    pub secret_sha256: [u8; 32],
    pub name: Option<String>,
    /// Subscriber or group that the key belongs to.
    pub owner: KeyOwnerId,
    /// E-mail address of the member who created the key.
    pub created_by: String,
    /// Expiry in ms since 1970; `None` if the key never expires.
    pub expires_at: Option<i64>,
    /// End of the overlap after a rotation, in ms since 1970.
    pub ends_at: Option<i64>,
    /// Time in ms since 1970.
    pub revoked_at: Option<i64>,
    /// Time in ms since 1970.
    pub created_at: i64,
    /// Last use in ms since 1970; some seconds behind.
    pub last_used_at: Option<i64>,
}

impl fmt::Debug for AccessKeyRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessKeyRow")
            .field("id", &self.id)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// Columns of `access_keys` that [`key`] reads.
pub(crate) const KEY_COLUMNS: &[&str] = &[
    "id",
    "organization",
    "secret_sha256",
    "name",
    "owner",
    "created_by",
    "expires_at",
    "ends_at",
    "revoked_at",
    "created_at",
    "last_used_at",
];

pub(crate) fn key(columns: &mut Columns<'_>) -> Result<AccessKeyRow, StoreError> {
    Ok(AccessKeyRow {
        id: AccessKeyId(columns.int("id")?),
        organization: OrganizationId(columns.int("organization")?),
        secret_sha256: columns.hash("secret_sha256")?,
        name: columns.opt_text("name")?,
        owner: KeyOwnerId(columns.int("owner")?),
        created_by: columns.text("created_by")?,
        expires_at: columns.opt_int("expires_at")?,
        ends_at: columns.opt_int("ends_at")?,
        revoked_at: columns.opt_int("revoked_at")?,
        created_at: columns.int("created_at")?,
        last_used_at: columns.opt_int("last_used_at")?,
    })
}
