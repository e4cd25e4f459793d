//! Suspension and reactivation of members.

use crate::accounts::event::remember;
use crate::accounts::last_owner::is_last_owner;
use crate::accounts::{AuditEvent, MemberChange, MemberRow};
use crate::db::values;
use crate::error::StoreError;
use crate::store::Store;

impl Store {
    /// Suspends a member, or brings it back. The member's permissions must be unchanged since they
    /// were read. `is_owner` works as for [`Store::set_member_permissions`]. Sessions and tokens
    /// stay, so that they work again after a suspension.
    ///
    /// Returns only after every server has seen the change, even if the member already had this
    /// state: the server that suspended it may have stopped before it notified the others.
    pub async fn set_member_active(
        &self,
        read: &MemberRow,
        active: bool,
        is_owner: fn(&str) -> bool,
        audit: Option<AuditEvent>,
    ) -> Result<MemberChange, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        if !active && is_last_owner(&mut transaction, read, is_owner).await? {
            return Ok(MemberChange::LastOwner);
        }
        let update =
            "UPDATE members SET active = $4 WHERE organization = $1 AND id = $2 AND permissions = $3";
        let values = values![read.organization.0, read.id.0, read.permissions.as_str(), active];
        if transaction.execute(update, values).await? == 0 {
            return Ok(MemberChange::Changed);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(MemberChange::Done)
    }
}
