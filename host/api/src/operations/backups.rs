//! The backups that were taken of this database. They are of the whole server, so they are for who manages it.

use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_store::BackupRun;

use super::Actor;
use crate::error::ApiError;

/// The newest hundred, the newest first. 403 without manage-server.
pub async fn list(actor: &Actor) -> Result<Vec<BackupRun>, ApiError> {
    actor.needs(ManageServer)?;
    Ok(actor.app.store.backup_runs().await?)
}
