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
    /// The upstream limits the rate of requests (`headers::limits_rate`), or did so before and is
    /// left alone: the time to wait, where it is known.
    #[error("the upstream limits the rate of requests (429){}", .0.map(wait_text).unwrap_or_default())]
    Throttled(Option<Duration>),
    /// The upstream is at an address to which no request may go, or leads to one.
    #[error("{0}")]
    Refused(String),
    /// The circuit breaker is open: for how many seconds, and the latest failure of the upstream.
    #[error("the upstream failed ({reason}) and is left alone for {seconds} s more")]
    CircuitOpen { seconds: u64, reason: String },
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
        matches!(
            self,
            UpstreamError::Unavailable(_) | UpstreamError::Failing(..) | UpstreamError::Throttled(_)
        )
    }

    /// The same error for a plugin, with the path or address that was requested.
    pub(crate) fn at(self, path: &str) -> ServiceError {
        match self {
            UpstreamError::Store(_) => self.into(),
            // Clients need not know the hosts of an inner network. The health names the host, and the
            // log the address that it has.
            UpstreamError::Refused(_) => {
                let why = "the upstream is at an address that is not allowed, or leads to one";
                ServiceError::Unavailable(format!("{why}, for {path}"))
            }
            UpstreamError::CircuitOpen { seconds, .. } => {
                let why = "the upstream failed again and again and is left alone for";
                ServiceError::Unavailable(format!("{why} {seconds} s more, for {path}"))
            }
            other => ServiceError::Unavailable(format!("{other}, for {path}")),
        }
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

/// A wait in whole seconds, rounded up: nobody comes back too early.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn wait_text(wait: Duration) -> String {
    format!(" and asks to wait {} s", whole_seconds(wait))
}
