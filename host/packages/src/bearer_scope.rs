//! Rights that a bearer token passes on from the credential that it was issued for.

use packhouse_identity::ScopeGrant;

/// Way in which a credential arrived: directly, or in a bearer token from a token service.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum BearerScope {
    Direct,
    /// Bearer token that the server does not accept.
    Refused,
    /// Bearer token that grants only these scopes.
    Granted(Vec<ScopeGrant>),
}
