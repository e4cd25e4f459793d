//! A token or service key.

use std::fmt;

use crate::db::Columns;
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, RepositoryId, TokenId};

/// What a token may do where it reaches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// Read packages.
    pub read: bool,
    /// Publish and delete packages.
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
    /// Its identifier.
    pub id: TokenId,
    /// Where it is good.
    pub organization: OrganizationId,
    /// SHA-256 of the secret.
    pub secret_sha256: [u8; 32],
    /// As its owner calls it.
    pub name: String,
    /// What it may do.
    pub scope: Scope,
    /// `generic` or a format's name.
    pub format: String,
    /// The member whose rights bound it; none for a service key or a legacy token.
    pub owner: Option<MemberId>,
    /// E-mail of who made it.
    pub created_by: String,
    /// `None` for a member's token; `org`, `repo` or `legacy`.
    pub backing: Option<String>,
    /// The repository behind a `repo` backing.
    pub backing_repository: Option<RepositoryId>,
    /// The repositories that it reaches.
    pub repositories: Vec<RepositoryId>,
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
    /// Of a token that trusted publishers stand behind: what it reaches, as JSON.
    pub grants: Option<String>,
}

impl fmt::Debug for TokenRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRow").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// The columns of `tokens` that [`token`] reads.
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
];

/// Without its repositories, which are a table of their own.
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
    })
}
