//! Backups of this database. They contain the whole server, so they need manage-server.

use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_store::BackupRun;

use super::Actor;
use crate::error::ApiError;

/// Returns the latest hundred backups, newest first. 403 without manage-server.
pub async fn list(actor: &Actor) -> Result<Vec<BackupRun>, ApiError> {
    actor.needs(ManageServer)?;
    Ok(actor.app.store.backup_runs().await?)
}
