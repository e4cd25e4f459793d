//! Why an upstream gave no response.

use std::time::Duration;

use packhouse_runtime::ServiceError;
use packhouse_store::StoreError;

/// See the module. All who wait for one response get the same error, so it can be cloned.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// The upstream cannot be reached, does not answer in time, breaks off, or sends nothing that can be used.
    #[error("{0}")]
    Unavailable(String),
    /// The upstream answered with a failure: the status, and the time that it asks to wait.
    #[error("the upstream answered with status {0}")]
    Failing(u16, Option<Duration>),
    /// The upstream is at an address to which no request may go, or leads to one.
    #[error("{0}")]
    Refused(String),
    /// The upstream refuses the credentials that are set for it.
    #[error("the upstream refuses the credentials that are set for it")]
    Credentials,
    /// The circuit breaker is open, and for how long: the upstream failed again and again, or asked to wait.
    #[error("the upstream failed and is left alone for {} s more", .0.as_secs())]
    CircuitOpen(Duration),
    /// Too many calls wait for the upstream already.
    #[error("too many requests wait for the upstream")]
    TooManyWaiting,
    /// The repository is set to be offline, and nothing is cached.
    #[error("the repository is offline, and no copy is kept")]
    Offline,
    /// The host's own storage failed.
    #[error("{0}")]
    Store(String),
}

impl UpstreamError {
    /// `Unavailable` with the text of another error.
    pub(crate) fn unavailable(error: impl std::fmt::Display) -> UpstreamError {
        UpstreamError::Unavailable(error.to_string())
    }

    /// An error of the HTTP client with its causes. The address is left out: it may be long, and the log has it.
    pub(crate) fn of_client(error: reqwest::Error) -> UpstreamError {
        let error = error.without_url();
        let mut said = error.to_string();
        let mut source = std::error::Error::source(&error);
        let mut refused = false;
        while let Some(cause) = source {
            refused |= cause.is::<super::egress_policy::EgressDenied>();
            said = format!("{said}: {cause}");
            source = cause.source();
        }
        if refused { UpstreamError::Refused(said) } else { UpstreamError::Unavailable(said) }
    }

    /// Whether it says something about the upstream's health.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self, UpstreamError::Unavailable(_) | UpstreamError::Failing(..))
    }
}

impl From<StoreError> for UpstreamError {
    fn from(error: StoreError) -> UpstreamError {
        UpstreamError::Store(error.to_string())
    }
}

impl From<UpstreamError> for ServiceError {
    fn from(error: UpstreamError) -> ServiceError {
        match error {
            UpstreamError::Store(error) => {
                ServiceError::Store(StoreError::Unavailable { what: "the store", source: error.into() })
            }
            other => ServiceError::Unavailable(other.to_string()),
        }
    }
}
