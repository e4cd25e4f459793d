//! An entry of the response cache.

use std::sync::Arc;

use packhouse_runtime::Intent;

use crate::prepared_response::PreparedResponse;
use crate::validity::Validity;

/// A cached response, its intent, and their validity.
pub(crate) struct CacheEntry {
    pub validity: Validity,
    /// Number of the last change of advisories when the entry was made. The next change makes the
    /// entry stale.
    pub advisories: i64,
    /// The intent on which the access decision is based.
    pub intent: Arc<Intent>,
    pub response: Arc<PreparedResponse>,
}
