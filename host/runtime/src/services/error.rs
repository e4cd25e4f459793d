//! Result and error types of services.

use std::future::Future;
use std::pin::Pin;

/// Future of a service function.
pub type ServiceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ServiceError>> + Send + 'a>>;

/// Error of a service. The plugin receives it as the contract's `error`.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The call has no right to this.
    #[error("denied")]
    Denied,
    /// Invalid arguments; the text says which.
    #[error("invalid: {0}")]
    Invalid(String),
    /// More bytes than the limit. Holds the announced size, or the number of received bytes.
    #[error("too large: {0} bytes")]
    TooLarge(u64),
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The caller has too many requests in progress. The error ends the call, and the server asks
    /// the client to wait.
    #[error("too many; wait {retry_after_s} s")]
    TooMany {
        /// Seconds until a retry may succeed.
        retry_after_s: u64,
    },
    /// A policy denies the request; holds a sentence for the caller. The error ends the call.
    #[error("a policy denies it: {0}")]
    PolicyDenied(String),
    #[error("{0}")]
    Other(String),
    /// The host's own storage failed. The error ends the call.
    #[error("storage: {0}")]
    Store(#[from] packhouse_store::StoreError),
}

/// The answer of a service that this host does not offer.
pub(super) fn not_available<'a, T: Send + 'a>(what: &'static str) -> ServiceFuture<'a, T> {
    Box::pin(async move { Err(ServiceError::Other(format!("{what}: not available"))) })
}
