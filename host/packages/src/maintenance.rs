//! The step that answers in the place of everything else while the server is being worked on. It stands before the first look into the
//! database, which may be what is worked on.

use packhouse_app::App;
use packhouse_wire::catalogue;

use crate::error_response::HttpError;
use crate::request_context::RequestContext;
use crate::resolve::RepositoryAddress;

/// 503 `maintenance` in the operator's words, where there are any; in a format's shape where the path tells the format.
pub(crate) fn refuse_in_maintenance(
    app: &App,
    address: &RepositoryAddress,
    context: &mut RequestContext,
) -> Result<(), HttpError> {
    let told = app.live.maintenance.get();
    if told.is_empty() {
        return Ok(());
    }
    context.set_format(address.claim.as_ref().map(|claim| claim.plugin.description()));
    Err(HttpError::of(&catalogue::MAINTENANCE).in_words(&told))
}
