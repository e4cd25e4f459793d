//! Request for a new API token.

use packhouse_store::{MemberRow, NewApiToken};
use packhouse_wire::catalogue;

use super::{ApiScope, ME};
use crate::error::ApiError;
use crate::operations::confirmations::Action;

const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Maximum lifetime of an API token in ms.
const LIFETIME_MS: i64 = 365 * DAY_MS;
/// Maximum lifetime in ms of an API token that does sensitive actions.
const SENSITIVE_LIFETIME_MS: i64 = 90 * DAY_MS;

/// Owner of a new API token.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ApiTokenOwner {
    /// The caller owns the token.
    Me,
    /// The service account with this unchecked id owns it.
    ServiceAccount(String),
}

impl ApiTokenOwner {
    /// Reads `me`, or the id of a service account.
    pub fn read(text: &str) -> ApiTokenOwner {
        if text == ME { ApiTokenOwner::Me } else { ApiTokenOwner::ServiceAccount(text.to_owned()) }
    }
}

/// New API token, as far as it can be checked without the store.
#[derive(Debug)]
pub struct ApiTokenRequest {
    pub name: String,
    pub owner: ApiTokenOwner,
    pub scopes: Vec<ApiScope>,
    /// Actions that need no further confirmation: some of [`Action::OF_API_TOKENS`].
    pub sensitive: Vec<Action>,
    /// Expiry in ms since 1970.
    pub expires_at: i64,
}

impl ApiTokenRequest {
    /// Builds the token. `created_by` is the name of the member who creates it.
    pub(super) fn token(self, secret_sha256: [u8; 32], owner: &MemberRow, created_by: &str) -> NewApiToken {
        NewApiToken {
            owner: owner.id,
            secret_sha256,
            name: self.name,
            scopes: self.scopes.into_iter().map(|scope| scope.name().to_owned()).collect(),
            sensitive: self.sensitive.into_iter().map(|action| action.name().to_owned()).collect(),
            created_by: created_by.to_owned(),
            expires_at: self.expires_at,
        }
    }
}

/// Checks that an API token expires within a year, or within 90 days if it does sensitive actions.
/// `now` and `expires_at` are in ms since 1970; `None` means never. Otherwise 400
/// `api_token_must_expire`.
pub(crate) fn within_lifetime(
    expires_at: Option<i64>,
    is_sensitive: bool,
    now: i64,
) -> Result<i64, ApiError> {
    let lifetime = if is_sensitive { SENSITIVE_LIFETIME_MS } else { LIFETIME_MS };
    let expires_at = expires_at.filter(|at| *at <= now.saturating_add(lifetime));
    expires_at.ok_or(ApiError::from(&catalogue::API_TOKEN_MUST_EXPIRE))
}
