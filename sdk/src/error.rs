//! Errors of host functions.

/// Error that a host function returns. A missing item is an `Option` and a lost race is an
/// [`Outcome`](crate::Outcome), so neither is an error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The call does not have this right; this is a fault of the plugin.
    #[error("denied: not within this call's rights")]
    Denied,
    /// The arguments are invalid, for example a malformed digest, a range past the end or a value
    /// over its limit. The text says which argument.
    #[error("invalid: {0}")]
    Invalid(String),
    /// The size exceeds the limit. Holds the announced size in bytes, or the bytes received before
    /// the transfer was stopped.
    #[error("too large: {0} bytes")]
    TooLarge(u64),
    /// An upstream's response exceeds the limit. The upstream is the cause, not the client.
    #[error("{why}")]
    UpstreamTooLarge {
        /// Announced size in bytes, or the bytes received before the transfer was stopped.
        size: u64,
        /// Text for people, with the path, the limit and what to do.
        why: String,
    },
    /// The upstream cannot be reached and no copy is cached, or its response was not as expected.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// Any other error, as text for the log. A document that is not valid JSON is such an error.
    #[error("{0}")]
    Other(String),
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Other(format!("JSON: {error}"))
    }
}
