//! Why a host function did not do what it was asked: the guest is told, or its call ends.

#![allow(unreachable_pub, reason = "named by the generated code, which is public")]

use packhouse_store::StoreError;

use crate::error::CallError;
use crate::services::ServiceError;

/// What a guest is told, as the contract's `error` has it.
pub enum GuestError {
    /// Not within the call's rights.
    Denied,
    /// The arguments make no sense: says which.
    Invalid(String),
    /// More bytes than the limit: how many.
    TooLarge(u64),
    /// The upstream cannot be reached.
    Unavailable(String),
    /// Anything else.
    Other(String),
}

/// Why a host function did not do what it was asked: either the guest is told, or its call ends.
pub enum HostError {
    /// The guest's own business.
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
