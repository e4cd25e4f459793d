//! Reading the settings again. It needs manage-server.

use packhouse_app::reload::Reloaded;
use packhouse_identity::permissions::Permission::ManageServer;

use super::Actor;
use crate::error::ApiError;

/// Reads the settings again; what may change takes effect on this server. 400 `invalid_request` with every mistake in them.
pub async fn read_again(actor: &Actor) -> Result<Reloaded, ApiError> {
    actor.needs(ManageServer)?;
    // The operators of the server may know what its file says.
    let reloaded = actor.app.reload().map_err(|error| ApiError::invalid(&error.to_string()))?;
    actor.app.store.audit(actor.event("reload_settings", reloaded.applied.join(" "))).await?;
    Ok(reloaded)
}
