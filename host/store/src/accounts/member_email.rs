//! Changes of a person's e-mail address.

use crate::accounts::event::remember;
use crate::accounts::organizations::lock_organization;
use crate::accounts::{AuditEvent, MemberRow};
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::store::Store;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EmailChange {
    Done,
    /// Another member of the organization has the address. The call changed nothing.
    Taken,
    /// The address or the permissions were changed, or the member was deleted, since it was read.
    /// The call changed nothing.
    Changed,
}

impl Store {
    /// Sets the e-mail address of a person, in lower case, if the address and the permissions are
    /// unchanged since they were read. Revokes the resets of the person's password, because their
    /// codes went to the old address.
    #[boxed]
    pub async fn set_member_email(
        &self,
        read: &MemberRow,
        email: &str,
        audit: Option<AuditEvent>,
    ) -> Result<EmailChange, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        lock_organization(&mut transaction, read.organization).await?;
        let taken = "SELECT id FROM members WHERE organization = $1 AND email = $2 AND id <> $3";
        let taken_by = values![read.organization.0, email, read.id.0];
        if transaction.fetch_one(taken, taken_by).await?.is_some() {
            return Ok(EmailChange::Taken);
        }
        let update = "UPDATE members SET email = $4 WHERE organization = $1 AND id = $2 AND email = $3 \
                      AND permissions = $5 AND kind = 'person'";
        let (old, permissions) = (read.email.as_str(), read.permissions.as_str());
        let values = values![read.organization.0, read.id.0, old, email, permissions];
        if transaction.execute(update, values).await? == 0 {
            return Ok(EmailChange::Changed);
        }
        transaction.execute("DELETE FROM password_resets WHERE member = $1", values![read.id.0]).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(EmailChange::Done)
    }
}
