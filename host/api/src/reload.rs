//! Reading the settings again, for the operators of the server.

use axum::Json;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::reload;
use packhouse_identity::permissions::Permission::ManageServer;

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(read_again)]
}

/// What came of reading the settings again.
#[derive(Serialize, ToSchema)]
pub(crate) struct ReloadView {
    /// Names of settings that hold from now on.
    applied: Vec<String>,
    /// Names of settings that hold after a restart.
    needs_restart: Vec<String>,
}

/// Reads the configuration file of this server again, as SIGHUP does: the log, limits, certificates, allowed networks and `read_only`
/// take effect at once; what needs a restart is said. With a mistake in it nothing changes.
#[utoipa::path(post, path = "/v1/reload", operation_id = "reload_settings",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    responses((status = 200, body = ReloadView), (status = 400, body = ErrorBody)))]
async fn read_again(call: Call) -> Answer {
    call.only(&[])?;
    let reloaded = reload::read_again(call.actor()?).await?;
    let view = ReloadView { applied: reloaded.applied, needs_restart: reloaded.needs_restart };
    Ok(Json(view).into_response())
}
