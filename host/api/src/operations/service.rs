//! What everybody is refused before anything else: all of it while the server is being worked on, and more requests than may be.

use packhouse_app::App;
use packhouse_app::rate_limits::Requester;
use packhouse_wire::catalogue;

use super::actor::{Caller, session_name};
use crate::error::ApiError;

/// 503 `maintenance` in the operator's words, where there are any.
pub fn in_service(app: &App) -> Result<(), ApiError> {
    let told = app.live.maintenance.get();
    if told.is_empty() {
        return Ok(());
    }
    let code = &catalogue::MAINTENANCE;
    Err(ApiError::Refused { code, message: String::clone(&told), retry_after: None })
}

impl Caller {
    /// Counts a request of this session; 429 `rate_limited` for one more than may be.
    pub fn count(&self, app: &App) -> Result<(), ApiError> {
        let requester =
            || Requester::Credential(self.member.organization, session_name(&self.session).into());
        app.live.rates.count(requester).map_err(|exceeded| ApiError::rate_limited(exceeded.retry_after))
    }
}
