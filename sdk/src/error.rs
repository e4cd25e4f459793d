//! Why the host could not do what a plugin asked of it.

/// An answer of the host's to a call that failed. An absent thing is an `Option`, a lost race an
/// [`Outcome`](crate::Outcome): neither is an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not within this call's rights: a plugin's mistake.
    #[error("denied: not within this call's rights")]
    Denied,
    /// The arguments make no sense: a malformed digest, a range past the end, a value over its limit. Says which.
    #[error("invalid: {0}")]
    Invalid(String),
    /// More bytes than the limit: how many were announced, or had come when it was given up.
    #[error("too large: {0} bytes")]
    TooLarge(u64),
    /// The same of an upstream's answer: the upstream is the cause, and not the client.
    #[error("{why}")]
    UpstreamTooLarge {
        /// How many bytes were announced, or had come when it was given up.
        size: u64,
        /// For people, with the path, the limit and what to do.
        why: String,
    },
    /// The upstream cannot be reached and no copy is kept, or what it sent was not what was expected.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// Anything else, in words for the log. A document that cannot be read as JSON is one.
    #[error("{0}")]
    Other(String),
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Other(format!("JSON: {error}"))
    }
}
