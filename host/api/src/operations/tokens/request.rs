//! A token that is wanted.

use packhouse_store::{MemberRow, NewToken, RepositoryId, Scope};
use packhouse_wire::catalogue;

use crate::error::ApiError;

/// The longest life of a service key: 90 days in ms.
const SERVICE_KEY_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// What a service key belongs to.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Backing {
    /// The organization.
    Organization,
    /// One repository, by what was written as its id.
    Repository(String),
}

/// A token that is wanted, as far as what is asked for shows that it may be.
#[derive(Debug)]
pub struct TokenRequest {
    /// What the token is called.
    pub name: String,
    /// What it may do.
    pub scope: Scope,
    /// For which clients it is.
    pub format: String,
    /// Ids of repositories as they were written: whether they are there is judged later.
    pub repositories: Vec<String>,
    /// When it expires, in ms since 1970; none for never.
    pub expires_at: Option<i64>,
    /// Of a service key.
    pub backing: Option<Backing>,
}

impl TokenRequest {
    /// The token to be made: the member's own, or a key that the member makes.
    pub fn token(
        self,
        secret_sha256: [u8; 32],
        member: &MemberRow,
        repositories: Vec<RepositoryId>,
    ) -> NewToken {
        let backing_repository = match &self.backing {
            Some(Backing::Repository(_)) => repositories.first().copied(),
            _ => None,
        };
        NewToken {
            secret_sha256,
            name: self.name,
            scope: self.scope,
            format: self.format,
            owner: self.backing.is_none().then_some(member.id),
            created_by: member.email.clone(),
            backing_repository,
            backing: self.backing.map(|backing| match backing {
                Backing::Organization => "org".to_owned(),
                Backing::Repository(_) => "repo".to_owned(),
            }),
            repositories,
            expires_at: self.expires_at,
        }
    }
}

/// A service key expires, at most 90 days from `now` (ms since 1970): 400 `service_key_must_expire`.
pub(crate) fn service_key_expiry(expires_at: Option<i64>, now: i64) -> Result<(), ApiError> {
    match expires_at {
        Some(at) if at <= now.saturating_add(SERVICE_KEY_MS) => Ok(()),
        _ => Err(ApiError::from(&catalogue::SERVICE_KEY_MUST_EXPIRE)),
    }
}
