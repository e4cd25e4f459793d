//! Scopes of API tokens, and the family of each endpoint, which decides the scopes that open it.

use packhouse_wire::catalogue;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::endpoint::Endpoint;
use crate::error::ApiError;
use crate::operations::{Caller, CallerCredential};

/// Scope of an API token.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApiScope {
    /// Reads everything that its owner may read.
    Read,
    /// Repositories, groups, upstreams, hosts, caches, retention, quotas and backups.
    Repositories,
    /// Versions, tags and the trash.
    Packages,
    /// Members, teams, invitations, service accounts, subscribers and the audit log.
    Members,
    /// Repository tokens, service keys, access keys and trusted publishers.
    Tokens,
    /// Policies, and security advisories about packages.
    Policies,
    Webhooks,
    /// The organization, its sign-in, its directory and the jobs of the server.
    Organization,
    Plugins,
    /// Members and teams through SCIM.
    Scim,
    /// Everything that an API token may do.
    All,
}

impl ApiScope {
    /// All scopes, in the order of the documentation.
    pub const EVERY: [ApiScope; 11] = [
        ApiScope::Read,
        ApiScope::Repositories,
        ApiScope::Packages,
        ApiScope::Members,
        ApiScope::Tokens,
        ApiScope::Policies,
        ApiScope::Webhooks,
        ApiScope::Organization,
        ApiScope::Plugins,
        ApiScope::Scim,
        ApiScope::All,
    ];

    /// Name in the API and in the database.
    pub fn name(self) -> &'static str {
        match self {
            ApiScope::Read => "read",
            ApiScope::Repositories => "repositories",
            ApiScope::Packages => "packages",
            ApiScope::Members => "members",
            ApiScope::Tokens => "tokens",
            ApiScope::Policies => "policies",
            ApiScope::Webhooks => "webhooks",
            ApiScope::Organization => "organization",
            ApiScope::Plugins => "plugins",
            ApiScope::Scim => "scim",
            ApiScope::All => "all",
        }
    }

    /// Returns the scope with this name.
    pub fn of(name: &str) -> Option<ApiScope> {
        ApiScope::EVERY.into_iter().find(|scope| scope.name() == name)
    }
}

/// Family of an endpoint. Together with the question whether the endpoint only reads, it decides
/// which scopes open the endpoint.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Family {
    Repositories,
    Packages,
    Members,
    Tokens,
    Policies,
    Webhooks,
    Organization,
    Plugins,
    Scim,
    /// Endpoints that only read and belong to no other family.
    Read,
    /// Endpoints that every API token opens: about its owner, or about the token itself.
    Any,
    /// Endpoints that no API token opens, and endpoints that need no credential.
    None,
}

impl Family {
    /// Scopes that open an endpoint of this family. `reads` is true if the endpoint changes
    /// nothing.
    pub(crate) fn scopes(self, reads: bool) -> Vec<ApiScope> {
        let own = match self {
            Family::Any => return ApiScope::EVERY.to_vec(),
            Family::None => return Vec::new(),
            Family::Repositories => Some(ApiScope::Repositories),
            Family::Packages => Some(ApiScope::Packages),
            Family::Members => Some(ApiScope::Members),
            Family::Tokens => Some(ApiScope::Tokens),
            Family::Policies => Some(ApiScope::Policies),
            Family::Webhooks => Some(ApiScope::Webhooks),
            Family::Organization => Some(ApiScope::Organization),
            Family::Plugins => Some(ApiScope::Plugins),
            Family::Scim => Some(ApiScope::Scim),
            Family::Read => None,
        };
        reads.then_some(ApiScope::Read).into_iter().chain(own).chain([ApiScope::All]).collect()
    }
}

/// Checks the scopes of an API token: 403 `scope_mismatch_api` if none of them opens the endpoint.
pub(crate) fn judge(caller: &Caller, endpoint: &Endpoint) -> Result<(), ApiError> {
    let CallerCredential::ApiToken(token) = &caller.credential else { return Ok(()) };
    let scopes = endpoint.scopes();
    if scopes.iter().any(|scope| token.scopes.iter().any(|held| held == scope.name())) {
        return Ok(());
    }
    let names: Vec<&str> = scopes.into_iter().map(ApiScope::name).collect();
    let reason = if names.is_empty() {
        "it needs a session".to_owned()
    } else {
        format!("it needs one of the scopes {}", names.join(", "))
    };
    Err(ApiError::with(&catalogue::SCOPE_MISMATCH_API, &reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_opens_what_only_reads_and_a_family_opens_its_own() {
        use ApiScope::{All, Read, Scim, Tokens};
        assert_eq!(Family::Tokens.scopes(true), [Read, Tokens, All]);
        assert_eq!(Family::Tokens.scopes(false), [Tokens, All]);
        assert_eq!(Family::Scim.scopes(true), [Read, Scim, All]);
        assert_eq!(Family::Read.scopes(true), [Read, All]);
        assert_eq!(Family::Any.scopes(false), ApiScope::EVERY);
        assert!(Family::None.scopes(true).is_empty());
    }

    #[test]
    fn each_scope_has_its_own_name_everywhere() {
        for scope in ApiScope::EVERY {
            assert_eq!(ApiScope::of(scope.name()), Some(scope));
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.name());
        }
        assert_eq!(ApiScope::of("admin"), None);
    }
}
