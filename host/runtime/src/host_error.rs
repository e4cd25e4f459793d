//! Errors of host functions: the guest receives the error, or its call ends.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use packhouse_store::StoreError;

use crate::error::CallError;
use crate::services::ServiceError;

/// Error that the guest receives, as in the contract's `error`.
pub enum GuestError {
    /// The call has no right to this.
    Denied,
    /// Invalid arguments; the text says which.
    Invalid(String),
    /// More bytes than the limit. Holds the announced size, or the number of received bytes.
    TooLarge(u64),
    Unavailable(String),
    Other(String),
}

/// Error of a host function: either the guest receives it, or the call ends.
pub enum HostError {
    /// The guest receives the error.
    Tell(GuestError),
    /// The call ends: the host's storage failed, or a limit is broken.
    Stop(CallError),
}

impl HostError {
    pub(crate) fn invalid(what: impl Into<String>) -> HostError {
        HostError::Tell(GuestError::Invalid(what.into()))
    }

    pub(crate) fn too_large(bytes: u64) -> HostError {
        HostError::Tell(GuestError::TooLarge(bytes))
    }

    pub(crate) fn denied() -> HostError {
        HostError::Tell(GuestError::Denied)
    }
}

impl From<CallError> for HostError {
    fn from(error: CallError) -> HostError {
        HostError::Stop(error)
    }
}

impl From<StoreError> for HostError {
    fn from(error: StoreError) -> HostError {
        match error {
            StoreError::TooLarge { observed, .. } => HostError::too_large(observed),
            StoreError::Invalid(what) => HostError::invalid(what),
            StoreError::BrokenOff(why) => HostError::Tell(GuestError::Unavailable(why)),
            other => HostError::Stop(CallError::Store(other)),
        }
    }
}

impl From<ServiceError> for HostError {
    fn from(error: ServiceError) -> HostError {
        match error {
            ServiceError::Denied => HostError::denied(),
            ServiceError::Invalid(what) => HostError::invalid(what),
            ServiceError::TooLarge(bytes) => HostError::too_large(bytes),
            ServiceError::Unavailable(why) => HostError::Tell(GuestError::Unavailable(why)),
            ServiceError::TooMany { retry_after_s } => HostError::Stop(CallError::TooMany { retry_after_s }),
            ServiceError::PolicyDenied(sentence) => HostError::Stop(CallError::PolicyDenied(sentence)),
            ServiceError::Other(why) => HostError::Tell(GuestError::Other(why)),
            ServiceError::Store(error) => HostError::Stop(CallError::Store(error)),
        }
    }
}
