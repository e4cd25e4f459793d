//! What a service's function gives.

use std::future::Future;
use std::pin::Pin;

/// What a service's function gives.
pub type ServiceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ServiceError>> + Send + 'a>>;

/// Why a service did not do what it was asked; the plugin gets it as the contract's `error`.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// Not within this call's rights.
    #[error("denied")]
    Denied,
    /// The arguments make no sense: says which.
    #[error("invalid: {0}")]
    Invalid(String),
    /// More bytes than the limit: how many.
    #[error("too large: {0} bytes")]
    TooLarge(u64),
    /// The upstream cannot be reached.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The caller has too much under way: it ends the call, and the client is told to wait.
    #[error("too many; wait {retry_after_s} s")]
    TooMany {
        /// Seconds until it may succeed.
        retry_after_s: u64,
    },
    /// A policy refuses it, with a sentence for the caller: it ends the call, and the client is told.
    #[error("a policy denies it: {0}")]
    PolicyDenied(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
    /// The host's own storage failed: it ends the call.
    #[error("storage: {0}")]
    Store(#[from] packhouse_store::StoreError),
}

/// The answer of a service that this host does not offer.
pub(super) fn not_available<'a, T: Send + 'a>(what: &'static str) -> ServiceFuture<'a, T> {
    Box::pin(async move { Err(ServiceError::Other(format!("{what}: not available"))) })
}
