//! The step that refuses all requests during maintenance. It runs before the first access to the
//! database, because the maintenance may concern the database.

use packhouse_app::App;
use packhouse_wire::catalogue;

use crate::error_response::HttpError;
use crate::request_context::RequestContext;
use crate::resolve::RepositoryAddress;

/// Refuses the request with 503 `maintenance` and the operator's message. The error has the
/// format's style if the path identifies the format.
pub(crate) fn refuse_in_maintenance(
    app: &App,
    address: &RepositoryAddress,
    context: &mut RequestContext,
) -> Result<(), HttpError> {
    let message = app.live.maintenance.get();
    if message.is_empty() {
        return Ok(());
    }
    context.set_format(address.claim.as_ref().map(|claim| claim.plugin.description()));
    Err(HttpError::of(&catalogue::MAINTENANCE).with_message(&message))
}
