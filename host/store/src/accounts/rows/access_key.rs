//! An access key.

use std::fmt;

use crate::db::Columns;
use crate::error::StoreError;
use crate::ids::{AccessKeyId, KeyOwnerId, OrganizationId};

/// An access key. Its `Debug` hides the secret's hash.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKeyRow {
    /// Its identifier.
    pub id: AccessKeyId,
    /// Where it is good.
    pub organization: OrganizationId,
    /// SHA-256 of the secret.
    pub secret_sha256: [u8; 32],
    /// As people call it.
    pub name: Option<String>,
    /// The subscriber or group that it belongs to.
    pub owner: KeyOwnerId,
    /// E-mail of who made it.
    pub created_by: String,
    /// ms since 1970; none: never.
    pub expires_at: Option<i64>,
    /// ms since 1970: the end of the overlap after a rotation.
    pub ends_at: Option<i64>,
    /// ms since 1970.
    pub revoked_at: Option<i64>,
    /// ms since 1970.
    pub created_at: i64,
    /// ms since 1970; behind the truth by some seconds.
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

/// The columns of `access_keys` that [`key`] reads.
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
