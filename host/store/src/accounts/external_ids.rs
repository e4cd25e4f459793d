//! Identifiers that a SCIM client gives to members and teams. The client may give one identifier
//! twice, so the store does not require that they are unique.

use crate::accounts::event::remember;
use crate::accounts::{AuditEvent, MemberRow, TeamRow};
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId};
use crate::store::Store;

impl Store {
    /// Sets or removes a member's external identifier. Returns false if the member does not exist.
    #[boxed]
    pub async fn set_member_external_id(
        &self,
        organization: OrganizationId,
        id: MemberId,
        external_id: Option<&str>,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let update = "UPDATE members SET external_id = $3 WHERE organization = $1 AND id = $2";
        let changed = transaction.execute(update, values![organization.0, id.0, external_id]).await? == 1;
        if changed {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(changed)
    }

    /// Returns the first person with this external identifier.
    #[boxed]
    pub async fn find_member_by_external_id(
        &self,
        organization: OrganizationId,
        external_id: &str,
    ) -> Result<Option<MemberRow>, StoreError> {
        let condition =
            "m.organization = $1 AND m.external_id = $2 AND m.kind = 'person' ORDER BY m.id LIMIT 1";
        let found = self.members(condition, values![organization.0, external_id]).await?;
        Ok(found.into_iter().next())
    }

    /// Returns the first team with this external identifier.
    #[boxed]
    pub async fn find_team_by_external_id(
        &self,
        organization: OrganizationId,
        external_id: &str,
    ) -> Result<Option<TeamRow>, StoreError> {
        let condition = "te.organization = $1 AND te.external_id = $2 ORDER BY te.id LIMIT 1";
        let found = self.teams(condition, values![organization.0, external_id]).await?;
        Ok(found.into_iter().next())
    }
}
