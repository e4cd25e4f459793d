//! Reasons for refusing an ID token. Users read these sentences in the log of a failed build. The
//! sentences contain nothing from the token except claims, and claims only after the signature was
//! verified.

use packhouse_store::StoreError;

/// Reason why the server does not issue a token for an ID token.
#[derive(Debug, thiserror::Error)]
pub enum IdTokenRefusal {
    /// The text is not an ID token.
    #[error("it is not an ID token: {0}")]
    Malformed(&'static str),
    /// The selected publishers do not name the token's issuer.
    #[error("no trusted publisher here names its issuer")]
    UnknownIssuer,
    #[error("{0}")]
    Invalid(String),
    /// The token was exchanged or revoked before.
    #[error("it was already exchanged or revoked; each ID token can be used once")]
    Reused,
    /// The token is valid, but no publisher matches.
    #[error("{0}")]
    NoPublisher(String),
    /// The server cannot fetch the issuer's keys.
    #[error("the keys of its issuer cannot be fetched: {0}")]
    Issuer(String),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl IdTokenRefusal {
    pub(super) fn invalid(sentence: impl Into<String>) -> IdTokenRefusal {
        IdTokenRefusal::Invalid(sentence.into())
    }

    pub(super) fn publisher(sentence: &str) -> IdTokenRefusal {
        IdTokenRefusal::NoPublisher(sentence.to_owned())
    }

    /// Returns one word for programs. The words are those of the services that first had such an
    /// exchange.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            IdTokenRefusal::Malformed(_) => "invalid-payload",
            IdTokenRefusal::Invalid(_) | IdTokenRefusal::Issuer(_) => "invalid-token",
            IdTokenRefusal::Reused => "invalid-reuse-token",
            IdTokenRefusal::UnknownIssuer | IdTokenRefusal::NoPublisher(_) => "invalid-publisher",
            IdTokenRefusal::Store(_) => "unavailable",
        }
    }
}
