//! Refusals that come before all others: maintenance mode and rate limits.

use packhouse_app::App;
use packhouse_app::rate_limits::Requester;
use packhouse_wire::catalogue;

use super::caller::Caller;
use crate::error::ApiError;

/// 503 `maintenance` with the operator's message, if one is set.
pub fn in_service(app: &App) -> Result<(), ApiError> {
    let notice = app.live.maintenance.get();
    if notice.is_empty() {
        return Ok(());
    }
    let code = &catalogue::MAINTENANCE;
    Err(ApiError::Refused { code, message: String::clone(&notice), retry_after: None })
}

impl Caller {
    /// Counts a request with this credential; 429 `rate_limited` if it exceeds the limit.
    pub fn count(&self, app: &App) -> Result<(), ApiError> {
        let requester = || Requester::Credential(self.member.organization, self.credential.name().into());
        app.live.rates.count(requester).map_err(|exceeded| ApiError::rate_limited(exceeded.retry_after))
    }
}
