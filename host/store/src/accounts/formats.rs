//! Formats that an organization enabled or disabled. The server's settings decide about a format
//! without a row.

use crate::accounts::AuditEvent;
use crate::accounts::event::remember;
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::OrganizationId;
use crate::store::Store;

impl Store {
    /// Enables or disables a format in an organization. The next look-up on every server sees the
    /// change.
    #[boxed]
    pub async fn set_format_enabled(
        &self,
        organization: OrganizationId,
        format: &str,
        enabled: bool,
        audit: Option<AuditEvent>,
    ) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let set = "INSERT INTO formats (organization, format, enabled) VALUES ($1, $2, $3) \
                   ON CONFLICT (organization, format) DO UPDATE SET enabled = excluded.enabled";
        transaction.execute(set, values![organization.0, format, enabled]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await
    }

    /// Lists the formats that the organization enabled (true) or disabled (false).
    #[boxed]
    pub async fn formats_enabled(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<(String, bool)>, StoreError> {
        let list = "SELECT format, enabled FROM formats WHERE organization = $1 ORDER BY format";
        let rows = self.inner.db.fetch(list, values![organization.0]).await?;
        let switched = rows.iter().map(|row| {
            let mut columns = row.columns();
            Ok((columns.text("format")?, columns.bool("enabled")?))
        });
        switched.collect()
    }
}
