//! Reloading the settings, for the operators of the server.

use axum::Json;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::reload;
use crate::scope::Family;
use packhouse_identity::permissions::Permission::ManageServer;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(read_again)]
}

/// Result of reloading the settings.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReloadView {
    /// Names of settings that took effect.
    applied: Vec<String>,
    /// Names of settings that take effect after a restart.
    needs_restart: Vec<String>,
}

/// Reloads the configuration file of this server, as SIGHUP does. The log, limits, certificates,
/// allowed networks and `read_only` take effect at once; the response lists settings that need a
/// restart. If the file has a mistake, nothing changes.
#[utoipa::path(post, path = "/v1/reload", operation_id = "reload_settings",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Organization))),
    responses((status = 200, body = ReloadView), (status = 400, body = ErrorBody)))]
async fn read_again(call: Call) -> HandlerResult {
    call.only(&[])?;
    let reloaded = reload::read_again(call.actor()?).await?;
    let view = ReloadView { applied: reloaded.applied, needs_restart: reloaded.needs_restart };
    Ok(Json(view).into_response())
}
