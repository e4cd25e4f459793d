use std::fmt;

use crate::db::Columns;
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId};

/// A member. Its `Debug` hides the password's hash.
#[derive(Clone, PartialEq, Eq)]
pub struct MemberRow {
    pub id: MemberId,
    pub organization: OrganizationId,
    /// E-mail address in lower case; unique in the organization.
    pub email: String,
    pub name: String,
    /// Argon2id in PHC form, or empty if no password is accepted.
    pub password_hash: String,
    /// Permissions as the API's JSON.
    pub permissions: String,
    /// Time in ms since 1970.
    pub created_at: i64,
}

impl fmt::Debug for MemberRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemberRow").field("id", &self.id).field("email", &self.email).finish_non_exhaustive()
    }
}

/// Columns of `members` that [`member`] reads.
pub(crate) const MEMBER_COLUMNS: &[&str] =
    &["id", "organization", "email", "name", "password_hash", "permissions", "created_at"];

pub(crate) fn member(columns: &mut Columns<'_>) -> Result<MemberRow, StoreError> {
    Ok(MemberRow {
        id: MemberId(columns.int("id")?),
        organization: OrganizationId(columns.int("organization")?),
        email: columns.text("email")?,
        name: columns.text("name")?,
        password_hash: columns.text("password_hash")?,
        permissions: columns.text("permissions")?,
        created_at: columns.int("created_at")?,
    })
}
