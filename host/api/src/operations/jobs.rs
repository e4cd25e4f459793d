//! The background jobs of this server.

use packhouse_app::jobs::JobStatus;
use packhouse_identity::permissions::Permission::ManageServer;

use super::Actor;
use crate::error::ApiError;

/// The state of each background job, by name. Needs manage-server.
pub fn list(actor: &Actor) -> Result<Vec<JobStatus>, ApiError> {
    actor.needs(ManageServer)?;
    Ok(actor.app.jobs.list())
}
