use std::fmt;

use crate::accounts::rows::texts::read_list;
use crate::db::Columns;
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, RepositoryId, TokenId};

/// Permissions of a token in the repositories that it reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    pub read: bool,
    /// Permission to publish and to delete packages.
    pub write: bool,
}

impl Scope {
    pub(crate) fn bits(self) -> i64 {
        i64::from(self.read) | i64::from(self.write) << 1
    }

    pub(crate) fn from_bits(bits: i64) -> Scope {
        Scope { read: bits & 1 != 0, write: bits & 2 != 0 }
    }
}

/// A token. Its `Debug` hides the secret's hash.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenRow {
    pub id: TokenId,
    pub organization: OrganizationId,
    pub secret_sha256: [u8; 32],
    pub name: String,
    pub scope: Scope,
    /// `generic` or the name of a format.
    pub format: String,
    /// Member whose permissions bound the token; `None` for a service key or a legacy token.
    pub owner: Option<MemberId>,
    /// E-mail address of the member who created the token.
    pub created_by: String,
    /// `org`, `repo` or `legacy`; `None` for a member's token.
    pub backing: Option<String>,
    /// Repository of a `repo` backing.
    pub backing_repository: Option<RepositoryId>,
    /// Repositories that the token reaches.
    pub repositories: Vec<RepositoryId>,
    /// Expiry in ms since 1970; `None` if the token never expires.
    pub expires_at: Option<i64>,
    /// End of the overlap after a rotation, in ms since 1970.
    pub ends_at: Option<i64>,
    /// Time in ms since 1970.
    pub revoked_at: Option<i64>,
    /// Time in ms since 1970.
    pub created_at: i64,
    /// Last use in ms since 1970; some seconds behind.
    pub last_used_at: Option<i64>,
    /// Access of a token minted for trusted publishers, as JSON.
    pub grants: Option<String>,
    /// Patterns of the packages that the token may publish and delete; `None` for all. They do not
    /// limit reads.
    pub packages: Option<Vec<String>>,
}

impl fmt::Debug for TokenRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRow").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// Columns of `tokens` that [`token`] reads.
pub(crate) const TOKEN_COLUMNS: &[&str] = &[
    "id",
    "organization",
    "secret_sha256",
    "name",
    "scope",
    "format",
    "owner",
    "created_by",
    "backing",
    "backing_repository",
    "expires_at",
    "ends_at",
    "revoked_at",
    "created_at",
    "last_used_at",
    "grants",
    "packages",
];

/// Reads a token without its repositories, which are in a table of their own.
pub(crate) fn token(columns: &mut Columns<'_>) -> Result<TokenRow, StoreError> {
    Ok(TokenRow {
        id: TokenId(columns.int("id")?),
        organization: OrganizationId(columns.int("organization")?),
        secret_sha256: columns.hash("secret_sha256")?,
        name: columns.text("name")?,
        scope: Scope::from_bits(columns.int("scope")?),
        format: columns.text("format")?,
        owner: columns.opt_int("owner")?.map(MemberId),
        created_by: columns.text("created_by")?,
        backing: columns.opt_text("backing")?,
        backing_repository: columns.opt_int("backing_repository")?.map(RepositoryId),
        repositories: Vec::new(),
        expires_at: columns.opt_int("expires_at")?,
        ends_at: columns.opt_int("ends_at")?,
        revoked_at: columns.opt_int("revoked_at")?,
        created_at: columns.int("created_at")?,
        last_used_at: columns.opt_int("last_used_at")?,
        grants: columns.opt_text("grants")?,
        packages: columns.opt_text("packages")?.map(|json| read_list(&json, "packages")).transpose()?,
    })
}
