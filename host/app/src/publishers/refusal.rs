//! Why an ID token is refused. The sentences are for people, who read them where their build failed; nothing of the token itself is in
//! them but what it claims, and that only once its signature was right.

use packhouse_store::StoreError;

/// Why there is no token for an ID token.
#[derive(Debug, thiserror::Error)]
pub enum IdTokenRefusal {
    /// It cannot be read.
    #[error("it is no ID token: {0}")]
    Malformed(&'static str),
    /// No publisher that counts names its issuer.
    #[error("no trusted publisher here names its issuer")]
    UnknownIssuer,
    /// It is not to be believed.
    #[error("{0}")]
    Invalid(String),
    /// It was exchanged or revoked before.
    #[error("it was exchanged already, or revoked, and each counts once")]
    Reused,
    /// It is right, and no publisher's.
    #[error("{0}")]
    NoPublisher(String),
    /// Its issuer cannot be asked for its keys.
    #[error("its issuer cannot be asked for its keys: {0}")]
    Issuer(String),
    /// The store failed.
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

    /// One word for programs, as services that began with this call them.
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
