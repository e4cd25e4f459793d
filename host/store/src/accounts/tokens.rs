//! Tokens and service keys.

use std::fmt;

use crate::accounts::AuditEvent;
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, RepositoryId, TokenId};
use crate::store::Store;

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
}

impl fmt::Debug for TokenRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenRow").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// A token to be made.
#[derive(Clone)]
pub struct NewToken {
    /// SHA-256 of the secret.
    pub secret_sha256: [u8; 32],
    /// As its owner calls it.
    pub name: String,
    /// What it may do.
    pub scope: Scope,
    /// `generic` or a format's name.
    pub format: String,
    /// The member whose rights bound it.
    pub owner: Option<MemberId>,
    /// E-mail of who makes it.
    pub created_by: String,
    /// `None` for a member's token; `org`, `repo` or `legacy`.
    pub backing: Option<String>,
    /// The repository behind a `repo` backing.
    pub backing_repository: Option<RepositoryId>,
    /// The repositories that it reaches.
    pub repositories: Vec<RepositoryId>,
    /// ms since 1970; none: never.
    pub expires_at: Option<i64>,
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewToken").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What became of a rotation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rotation {
    /// The successor is made.
    Rotated(Box<TokenRow>),
    /// The token changed since it was read; nothing is changed.
    Changed,
    /// There is no such token any more.
    Gone,
}

impl Store {
    /// Makes a token.
    pub async fn create_token(
        &self,
        organization: OrganizationId,
        token: NewToken,
        audit: Option<AuditEvent>,
    ) -> Result<TokenRow, StoreError> {
        let _ = (organization, token, audit);
        unimplemented!()
    }

    /// The token of this identifier in this organization, whatever its state.
    pub async fn find_token(
        &self,
        organization: OrganizationId,
        id: TokenId,
    ) -> Result<Option<TokenRow>, StoreError> {
        let _ = (organization, id);
        unimplemented!()
    }

    /// Tokens in the order of their making, after the identifier `after`, at most `limit`: of this owner, or with no owner the
    /// service keys of this backing.
    pub async fn list_tokens(
        &self,
        organization: OrganizationId,
        owner: Option<MemberId>,
        backing: Option<&str>,
        after: Option<TokenId>,
        limit: u32,
    ) -> Result<Vec<TokenRow>, StoreError> {
        let _ = (organization, owner, backing, after, limit);
        unimplemented!()
    }

    /// Revokes a token at `now` (ms since 1970); false when there is none such or it is revoked already.
    pub async fn revoke_token(
        &self,
        organization: OrganizationId,
        id: TokenId,
        now: i64,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let _ = (organization, id, now, audit);
        unimplemented!()
    }

    /// Makes a successor and lets `old` end at `ends_at` (ms since 1970), if the row is still as it was read.
    pub async fn rotate_token(
        &self,
        old: &TokenRow,
        ends_at: i64,
        successor: NewToken,
        audit: Option<AuditEvent>,
    ) -> Result<Rotation, StoreError> {
        let _ = (old, ends_at, successor, audit);
        unimplemented!()
    }

    /// Notes that a token was used at `now` (ms since 1970). Costs no SQL: written now and then, together with others.
    pub fn token_used(&self, id: TokenId, now: i64) {
        let _ = (id, now);
    }
}
