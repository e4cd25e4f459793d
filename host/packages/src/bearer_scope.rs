//! What a bearer leaves of the rights of the credential that it was given out for.

use packhouse_identity::ScopeGrant;

/// Whether a credential came by itself, or in a bearer that a token service gave out.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum BearerScope {
    /// By itself.
    Direct,
    /// In a bearer that is not taken.
    Refused,
    /// In a bearer that grants this and no more.
    Granted(Vec<ScopeGrant>),
}
