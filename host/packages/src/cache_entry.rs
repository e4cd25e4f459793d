//! What is kept for a request: a response, what access is decided on, and how long both hold.

use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use packhouse_runtime::Intent;

use crate::prepared_response::PreparedResponse;
use crate::validity::Validity;

/// A response and what it was made of.
pub(crate) struct CacheEntry {
    /// How long it is valid.
    pub validity: Validity,
    /// The number of changes of advisories at which it was made: another made it anew.
    pub advisories: i64,
    /// What access is decided on.
    pub intent: Arc<Intent>,
    /// What is sent.
    pub response: Arc<PreparedResponse>,
    /// The shadow that it was compared with; 0 for none.
    pub compared: AtomicI64,
}
