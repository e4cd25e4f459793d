//! The state of this server at one glance, for its operators.

use packhouse_app::jobs::JobStatus;
use packhouse_app::readiness::Report;
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_store::{BackupRun, DiskRoom};

use super::Actor;
use crate::error::ApiError;

#[derive(Debug)]
pub struct ServerHealth {
    /// Result of the last readiness check.
    pub report: Report,
    pub jobs: Vec<JobStatus>,
    /// Free space on the disk of the data folder; `None` if the system does not report it.
    pub disk: Option<DiskRoom>,
    /// The latest hundred backups, newest first.
    pub backups: Vec<BackupRun>,
}

/// Returns the state of this server. Needs manage-server.
pub async fn show(actor: &Actor) -> Result<ServerHealth, ApiError> {
    actor.needs(ManageServer)?;
    let app = &actor.app;
    let disk = match app.store.disk_room().await {
        Ok(room) => Some(room),
        Err(error) => {
            tracing::warn!(%error, "free space of the disk is unknown");
            None
        }
    };
    let backups = app.store.backup_runs().await?;
    Ok(ServerHealth { report: app.report(), jobs: app.jobs.list(), disk, backups })
}
