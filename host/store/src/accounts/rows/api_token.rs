use std::fmt;

use crate::accounts::rows::texts::read_list;
use crate::db::Columns;
use crate::error::StoreError;
use crate::ids::{ApiTokenId, MemberId, OrganizationId};

/// An API token. Its `Debug` hides the secret's hash.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiTokenRow {
    pub id: ApiTokenId,
    pub organization: OrganizationId,
    /// Member or service account whose permissions bound the token.
    pub owner: MemberId,
    pub secret_sha256: [u8; 32],
    pub name: String,
    /// Scopes by their names in the API.
    pub scopes: Vec<String>,
    /// Actions that the token may do without a fresh confirmation, by their names in the API.
    pub sensitive: Vec<String>,
    /// E-mail address of the member who created the token.
    pub created_by: String,
    /// Expiry in ms since 1970.
    pub expires_at: i64,
    /// End of the overlap after a rotation, in ms since 1970.
    pub ends_at: Option<i64>,
    /// Time in ms since 1970.
    pub revoked_at: Option<i64>,
    /// Time in ms since 1970.
    pub created_at: i64,
    /// Last use in ms since 1970; some seconds behind.
    pub last_used_at: Option<i64>,
}

impl fmt::Debug for ApiTokenRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiTokenRow").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Columns of `api_tokens` that [`api_token`] reads.
pub(crate) const API_TOKEN_COLUMNS: &[&str] = &[
    "id",
    "organization",
    "owner",
    "secret_sha256",
    "name",
    "scopes",
    "sensitive",
    "created_by",
    "expires_at",
    "ends_at",
    "revoked_at",
    "created_at",
    "last_used_at",
];

pub(crate) fn api_token(columns: &mut Columns<'_>) -> Result<ApiTokenRow, StoreError> {
    Ok(ApiTokenRow {
        id: ApiTokenId(columns.int("id")?),
        organization: OrganizationId(columns.int("organization")?),
        owner: MemberId(columns.int("owner")?),
        secret_sha256: columns.hash("secret_sha256")?,
        name: columns.text("name")?,
        scopes: read_list(&columns.text("scopes")?, "scopes")?,
        sensitive: read_list(&columns.text("sensitive")?, "sensitive")?,
        created_by: columns.text("created_by")?,
        expires_at: columns.int("expires_at")?,
        ends_at: columns.opt_int("ends_at")?,
        revoked_at: columns.opt_int("revoked_at")?,
        created_at: columns.int("created_at")?,
        last_used_at: columns.opt_int("last_used_at")?,
    })
}
