//! Reloading the settings. It needs manage-server.

use packhouse_app::reload::Reloaded;
use packhouse_identity::permissions::Permission::ManageServer;

use super::Actor;
use crate::error::ApiError;

/// Reloads the settings; those that can change at run time take effect on this server. 400
/// `invalid_request` with all mistakes in them.
pub async fn read_again(actor: &Actor) -> Result<Reloaded, ApiError> {
    actor.needs(ManageServer)?;
    // Operators of the server may see the content of its configuration file.
    let reloaded = actor.app.reload().map_err(|error| ApiError::invalid(&error.to_string()))?;
    actor.app.store.audit(actor.event("reload_settings", reloaded.applied.join(" "))).await?;
    Ok(reloaded)
}
