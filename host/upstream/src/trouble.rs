//! Why an upstream gave no answer.

use std::time::Duration;

use packhouse_runtime::ServiceError;
use packhouse_store::StoreError;

/// Shared by all who wait for one answer, so it can be cloned.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Trouble {
    /// It cannot be reached, does not answer in time, breaks off, or answers nothing that can be used.
    #[error("{0}")]
    Unavailable(String),
    /// It answered with a failure of its own: the status, and how long it wants to be left alone.
    #[error("the upstream answered with status {0}")]
    Failing(u16, Option<Duration>),
    /// It is at an address that nobody is sent to, or led to one.
    #[error("{0}")]
    Refused(String),
    /// It does not take the credentials that were set for it.
    #[error("the upstream refuses the credentials that are set for it")]
    Credentials,
    /// It is left alone: it failed again and again, or asked for it.
    #[error("the upstream failed and is left alone for {} s more", .0.as_secs())]
    LeftAlone(Duration),
    /// Too many calls wait for it already.
    #[error("too many requests wait for the upstream")]
    Crowded,
    /// The repository is set to leave its upstream alone, and nothing is kept.
    #[error("the repository is offline, and no copy is kept")]
    Offline,
    /// The host's own storage failed.
    #[error("{0}")]
    Store(String),
}

impl Trouble {
    pub fn unavailable(error: impl std::fmt::Display) -> Trouble {
        Trouble::Unavailable(error.to_string())
    }

    /// What an HTTP client says, with what lies behind it, and without the address: it may be long, and the log has it.
    pub fn of_client(error: reqwest::Error) -> Trouble {
        let error = error.without_url();
        let mut said = error.to_string();
        let mut source = std::error::Error::source(&error);
        let mut refused = false;
        while let Some(cause) = source {
            refused |= cause.is::<super::address::NotAllowed>();
            said = format!("{said}: {cause}");
            source = cause.source();
        }
        if refused { Trouble::Refused(said) } else { Trouble::Unavailable(said) }
    }

    /// Whether it says something of the upstream's health.
    pub fn is_failure(&self) -> bool {
        matches!(self, Trouble::Unavailable(_) | Trouble::Failing(..))
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Trouble {
        Trouble::Store(error.to_string())
    }
}

impl From<Trouble> for ServiceError {
    fn from(trouble: Trouble) -> ServiceError {
        match trouble {
            Trouble::Store(error) => {
                ServiceError::Store(StoreError::Unavailable { what: "the store", source: error.into() })
            }
            other => ServiceError::Unavailable(other.to_string()),
        }
    }
}
