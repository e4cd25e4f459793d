//! Request for a new token.

use packhouse_store::{MemberRow, NewToken, RepositoryId, Scope};
use packhouse_wire::catalogue;

use crate::error::ApiError;
use crate::operations::caller::name_of;

/// Maximum lifetime of a service key: 90 days in ms.
const SERVICE_KEY_MS: i64 = 90 * 24 * 60 * 60 * 1000;

/// Owner of a service key.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Backing {
    Organization,
    /// Repository with this unchecked id.
    Repository(String),
}

/// New token, as far as it can be checked without the store.
#[derive(Debug)]
pub struct TokenRequest {
    pub name: String,
    pub scope: Scope,
    /// Format of the clients that use it.
    pub format: String,
    /// Unchecked ids of repositories. A later check looks them up.
    pub repositories: Vec<String>,
    /// Patterns of the packages that it may publish and delete; `None` for all.
    pub packages: Option<Vec<String>>,
    /// Expiry in ms since 1970; `None` for never.
    pub expires_at: Option<i64>,
    /// Owner, if it is a service key.
    pub backing: Option<Backing>,
}

impl TokenRequest {
    /// Builds the token: the member's own, or a service key that the member creates.
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
            created_by: name_of(member).to_owned(),
            backing_repository,
            backing: self.backing.map(|backing| match backing {
                Backing::Organization => "org".to_owned(),
                Backing::Repository(_) => "repo".to_owned(),
            }),
            repositories,
            expires_at: self.expires_at,
            packages: self.packages,
        }
    }
}

/// Checks that a service key expires at most 90 days after `now` (ms since 1970); otherwise 400
/// `service_key_must_expire`.
pub(crate) fn service_key_expiry(expires_at: Option<i64>, now: i64) -> Result<(), ApiError> {
    match expires_at {
        Some(at) if at <= now.saturating_add(SERVICE_KEY_MS) => Ok(()),
        _ => Err(ApiError::from(&catalogue::SERVICE_KEY_MUST_EXPIRE)),
    }
}
