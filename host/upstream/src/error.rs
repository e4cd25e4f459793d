//! Errors of requests to an upstream.

use std::time::Duration;

use packhouse_runtime::ServiceError;
use packhouse_store::StoreError;

/// The reason why an upstream gave no response. All calls that wait for one response get the same
/// error, so it can be cloned.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    /// The upstream cannot be reached, does not answer in time, breaks off, or sends something
    /// unusable.
    #[error("{0}")]
    Unavailable(String),
    /// The upstream answered with a failure. Has the status, and the wait time that the upstream
    /// requested.
    #[error("the upstream answered with status {0}")]
    Failing(u16, Option<Duration>),
    /// The upstream limits the rate of requests (`headers::limits_rate`), or no request is sent
    /// because it did so before. Has the time to wait, if known.
    #[error("the upstream limits the rate of requests (429){}", .0.map(wait_text).unwrap_or_default())]
    Throttled(Option<Duration>),
    /// The upstream is at a forbidden address, or leads to one.
    #[error("{0}")]
    Refused(String),
    /// The circuit breaker is open. Has the remaining seconds, and the latest failure of the
    /// upstream.
    #[error("the upstream failed ({reason}); requests to it are paused for {seconds} s more")]
    CircuitOpen { seconds: u64, reason: String },
    /// Too many calls already wait for the upstream.
    #[error("too many requests are waiting for the upstream")]
    TooManyWaiting,
    /// The repository is offline, and nothing is cached.
    #[error("the repository is offline and has no cached copy")]
    Offline,
    /// The host's own storage failed.
    #[error("{0}")]
    Store(String),
}

impl UpstreamError {
    /// Creates `Unavailable` with the text of another error.
    pub(crate) fn unavailable(error: impl std::fmt::Display) -> UpstreamError {
        UpstreamError::Unavailable(error.to_string())
    }

    /// Converts an error of the HTTP client with its causes. The URL is left out because it may be
    /// long, and the log contains it.
    pub(crate) fn of_client(error: reqwest::Error) -> UpstreamError {
        let error = error.without_url();
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        let mut refused = false;
        while let Some(cause) = source {
            refused |= cause.is::<super::egress_policy::EgressDenied>();
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        if refused { UpstreamError::Refused(text) } else { UpstreamError::Unavailable(text) }
    }

    /// Returns true for errors that make the upstream's health worse.
    pub(crate) fn is_failure(&self) -> bool {
        matches!(
            self,
            UpstreamError::Unavailable(_) | UpstreamError::Failing(..) | UpstreamError::Throttled(_)
        )
    }

    /// Converts the error for a plugin, with the requested path or address.
    pub(crate) fn at(self, path: &str) -> ServiceError {
        match self {
            UpstreamError::Store(_) => self.into(),
            // Clients must not learn the hosts of an internal network. The upstream's health shows
            // the host, and the log shows its address.
            UpstreamError::Refused(_) => {
                let why = "the upstream is at a forbidden address, or leads to one";
                ServiceError::Unavailable(format!("{why}, for {path}"))
            }
            UpstreamError::CircuitOpen { seconds, .. } => {
                let why = "the upstream failed repeatedly; requests to it are paused for";
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

/// Rounds a wait up to whole seconds, so that clients do not come back too early.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn wait_text(wait: Duration) -> String {
    format!(" and asks to wait {} s", whole_seconds(wait))
}
