//! Credentials for the upstreams of proxies, sealed by the server.

use super::event::{AuditEvent, remember};
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{RepositoryId, now_ms};
use crate::store::Store;

impl Store {
    /// Returns the sealed credentials for this proxy's upstream.
    #[boxed]
    pub async fn upstream_credentials(&self, repository: RepositoryId) -> Result<Option<String>, StoreError> {
        let sql = "SELECT sealed FROM upstream_credentials WHERE repository = $1";
        let row = self.inner.db.fetch_one(sql, values![repository.0]).await?;
        row.map(|row| row.columns().text("sealed")).transpose()
    }

    /// Stores or deletes the sealed credentials. Returns false if the repository does not exist.
    #[boxed]
    pub async fn set_upstream_credentials(
        &self,
        repository: RepositoryId,
        sealed: Option<&str>,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let changed = "UPDATE repositories SET settings_revision = settings_revision + 1 \
                       WHERE id = $1 AND deleted_at IS NULL";
        if transaction.execute(changed, values![repository.0]).await? == 0 {
            return Ok(false);
        }
        let delete = "DELETE FROM upstream_credentials WHERE repository = $1";
        transaction.execute(delete, values![repository.0]).await?;
        if let Some(sealed) = sealed {
            let insert = "INSERT INTO upstream_credentials (repository, sealed, set_at) VALUES ($1, $2, $3)";
            transaction.execute(insert, values![repository.0, sealed, now_ms()]).await?;
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(true)
    }
}
