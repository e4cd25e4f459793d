//! Service accounts: members for programs, which act through API tokens. They have no e-mail
//! address and no password.

use crate::accounts::event::remember;
use crate::accounts::organizations::lock_organization;
use crate::accounts::rows::member::{MemberKind, MemberRow};
use crate::accounts::{AuditEvent, MemberChange, members};
use crate::boxed;
use crate::db::values;
use crate::error::StoreError;
use crate::ids::{MemberId, OrganizationId, new_id, now_ms};
use crate::store::Store;

impl Store {
    /// Creates a service account. Returns `None` if another one of the organization has the name.
    /// [`Store::delete_member`] deletes a service account.
    #[boxed]
    pub async fn create_service_account(
        &self,
        organization: OrganizationId,
        name: &str,
        permissions: &str,
        audit: Option<AuditEvent>,
    ) -> Result<Option<MemberRow>, StoreError> {
        let (id, created_at) = (MemberId(new_id()), now_ms());
        let row = MemberRow {
            id,
            organization,
            // No e-mail address, so that nobody can sign in.
            email: format!("service-account:{id}"),
            name: name.to_owned(),
            password_hash: String::new(),
            permissions: permissions.to_owned(),
            created_at,
            kind: MemberKind::Service,
            active: true,
            external_id: None,
            team_permissions: String::new(),
        };
        let mut transaction = self.inner.db.begin().await?;
        lock_organization(&mut transaction, organization).await?;
        let insert = "INSERT INTO members (id, organization, email, name, password_hash, permissions, created_at, kind) \
                      VALUES ($1, $2, $3, $4, '', $5, $6, $7) ON CONFLICT DO NOTHING";
        let values =
            values![id.0, organization.0, row.email.as_str(), name, permissions, created_at, row.kind.name()];
        if transaction.execute(insert, values).await? == 0 {
            return Ok(None);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Some(row))
    }

    /// Sets name and permissions of a service account if its permissions are unchanged since they
    /// were read. A change of the permissions ends the same codes as for
    /// [`Store::set_member_permissions`]. Returns `None` if another service account has the name.
    #[boxed]
    pub async fn set_service_account(
        &self,
        read: &MemberRow,
        name: &str,
        permissions: &str,
        audit: Option<AuditEvent>,
    ) -> Result<Option<MemberChange>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        lock_organization(&mut transaction, read.organization).await?;
        let taken =
            "SELECT id FROM members WHERE organization = $1 AND kind = 'service' AND name = $2 AND id <> $3";
        let taken_by = values![read.organization.0, name, read.id.0];
        if transaction.fetch_one(taken, taken_by).await?.is_some() {
            return Ok(None);
        }
        let update = "UPDATE members SET name = $4, permissions = $5 \
                      WHERE organization = $1 AND id = $2 AND permissions = $3 AND kind = 'service'";
        let values = values![read.organization.0, read.id.0, read.permissions.as_str(), name, permissions];
        if transaction.execute(update, values).await? == 0 {
            return Ok(Some(MemberChange::Changed));
        }
        if read.permissions != permissions {
            members::end_codes(&mut transaction, read.id).await?;
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Some(MemberChange::Done))
    }

    /// Lists at most `limit` service accounts by creation time, after the identifier `after`.
    #[boxed]
    pub async fn list_service_accounts(
        &self,
        organization: OrganizationId,
        after: Option<MemberId>,
        limit: u32,
    ) -> Result<Vec<MemberRow>, StoreError> {
        self.members_of_kind(organization, MemberKind::Service, after, limit).await
    }
}
