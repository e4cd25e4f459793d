//! Organizations, and the creation of the first one with its owner.

use crate::accounts::event::remember;
use crate::accounts::{AuditEvent, MemberRow, NewMember, members};
use crate::boxed;
use crate::db::{Row, Transaction, Value, signed, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, new_id, now_ms};
use crate::store::Store;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OrganizationRow {
    pub id: OrganizationId,
    pub name: String,
    /// Public address, if one is configured.
    pub base_url: Option<String>,
    /// `host` or `host:port` of the public address in lower case. Unique; the server finds a
    /// request's organization by it.
    pub host: Option<String>,
    /// Time in ms since 1970.
    pub created_at: i64,
    /// Quota of all its repositories together, in bytes; `None` if unlimited.
    pub quota_bytes: Option<u64>,
    /// True if every member who signs in with a password must have a second factor.
    pub require_second_factor: bool,
}

/// Fields of an organization to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewOrganization {
    pub name: String,
    pub base_url: Option<String>,
    /// `host` or `host:port` of the public address in lower case.
    pub host: Option<String>,
}

impl Store {
    /// Returns the organization that was created first.
    #[boxed]
    pub async fn first_organization(&self) -> Result<Option<OrganizationId>, StoreError> {
        let sql = "SELECT id FROM organizations ORDER BY id LIMIT 1";
        let row = self.inner.db.fetch_one(sql, values![]).await?;
        row.map(|row| Ok(OrganizationId(row.columns().int("id")?))).transpose()
    }

    /// Creates the first organization and its owner in one transaction. Returns `None` if there is
    /// an organization already. If two processes start at the same time, only one of them creates
    /// the organization and its owner.
    #[boxed]
    pub async fn bootstrap(
        &self,
        organization: NewOrganization,
        owner: NewMember,
    ) -> Result<Option<(OrganizationRow, MemberRow)>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        // A second process waits here until the first has committed, and then finds the row.
        let claim =
            "INSERT INTO meta (name, value) VALUES ('first_organization', $1) ON CONFLICT (name) DO NOTHING";
        let claimed = transaction.execute(claim, values![organization.name.as_str()]).await? == 1;
        let any = transaction.fetch_one("SELECT id FROM organizations LIMIT 1", vec![]).await?;
        if !claimed || any.is_some() {
            return Ok(None);
        }
        let Some(organization) = insert(&mut transaction, organization).await? else { return Ok(None) };
        let Some(owner) = members::insert(&mut transaction, organization.id, owner).await? else {
            return Ok(None);
        };
        transaction.commit().await?;
        Ok(Some((organization, owner)))
    }

    /// Creates an organization. Returns `None` if its name or host is in use. The audit event
    /// belongs to the new organization.
    #[boxed]
    pub async fn create_organization(
        &self,
        organization: NewOrganization,
        audit: Option<AuditEvent>,
    ) -> Result<Option<OrganizationRow>, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let made = insert(&mut transaction, organization).await?;
        if let Some(row) = &made {
            let audit = audit.map(|event| AuditEvent { organization: row.id, ..event });
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(made)
    }

    /// Returns all organizations by creation time. There are few.
    #[boxed]
    pub async fn organizations(&self) -> Result<Vec<OrganizationRow>, StoreError> {
        self.organizations_where("id > $1 ORDER BY id", values![i64::MIN]).await
    }

    /// Returns the organization of this host (`host` or `host:port`, lower case).
    #[boxed]
    pub async fn organization_by_host(&self, host: &str) -> Result<Option<OrganizationRow>, StoreError> {
        let found = self.organizations_where("host = $1", values![host]).await?;
        Ok(found.into_iter().next())
    }

    /// Sets an organization's public address. Returns false if the organization does not exist or
    /// another one has the host.
    #[boxed]
    pub async fn set_base_url(
        &self,
        id: OrganizationId,
        base_url: Option<&str>,
        host: Option<&str>,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let update = "UPDATE organizations SET base_url = $2, host = $3 WHERE id = $1 \
                      AND NOT EXISTS (SELECT 1 FROM organizations o WHERE o.host = $3 AND o.id <> $1)";
        let changed = transaction.execute(update, values![id.0, base_url, host]).await? == 1;
        if changed {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(changed)
    }

    /// Sets an organization's name and quota. Returns false if the organization does not exist or
    /// another one has the name.
    #[boxed]
    pub async fn change_organization(
        &self,
        id: OrganizationId,
        name: &str,
        quota_bytes: Option<u64>,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let update = "UPDATE organizations SET name = $2, quota_bytes = $3 WHERE id = $1 \
                      AND NOT EXISTS (SELECT 1 FROM organizations o WHERE o.name = $2 AND o.id <> $1)";
        let values = values![id.0, name, quota_bytes.map(signed)];
        let changed = transaction.execute(update, values).await? == 1;
        if changed {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(changed)
    }

    /// Sets whether the organization demands a second factor. Returns false if the organization
    /// does not exist.
    #[boxed]
    pub async fn set_require_second_factor(
        &self,
        id: OrganizationId,
        require: bool,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let update = "UPDATE organizations SET require_second_factor = $2 WHERE id = $1";
        let changed = transaction.execute(update, values![id.0, require]).await? == 1;
        if changed {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(changed)
    }

    async fn organizations_where(
        &self,
        condition: &str,
        values: Vec<Value>,
    ) -> Result<Vec<OrganizationRow>, StoreError> {
        let sql = format!(
            "SELECT id, name, base_url, host, created_at, quota_bytes, require_second_factor FROM organizations \
             WHERE {condition}"
        );
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(organization).collect()
    }
}

fn organization(row: &Row) -> Result<OrganizationRow, StoreError> {
    let mut columns = row.columns();
    Ok(OrganizationRow {
        id: OrganizationId(columns.int("id")?),
        name: columns.text("name")?,
        base_url: columns.opt_text("base_url")?,
        host: columns.opt_text("host")?,
        created_at: columns.int("created_at")?,
        quota_bytes: columns.opt_int("quota_bytes")?.and_then(|bytes| u64::try_from(bytes).ok()),
        require_second_factor: columns.bool("require_second_factor")?,
    })
}

/// Locks an organization until the transaction ends, so that changes that depend on several of its
/// members or teams wait for each other. Lock it before members and teams.
pub(super) async fn lock_organization(
    transaction: &mut Transaction,
    id: OrganizationId,
) -> Result<(), StoreError> {
    let lock = format!("SELECT id FROM organizations WHERE id = $1{}", transaction.for_update());
    transaction.fetch(lock, values![id.0]).await?;
    Ok(())
}

/// Returns `None` if the name or host is in use.
async fn insert(
    transaction: &mut Transaction,
    organization: NewOrganization,
) -> Result<Option<OrganizationRow>, StoreError> {
    let NewOrganization { name, base_url, host } = organization;
    let (id, created_at) = (after_all(transaction).await?, now_ms());
    let row = OrganizationRow {
        id,
        name,
        base_url,
        host,
        created_at,
        quota_bytes: None,
        require_second_factor: false,
    };
    let insert = "INSERT INTO organizations (id, name, base_url, host, created_at) VALUES ($1, $2, $3, $4, $5) \
                  ON CONFLICT DO NOTHING";
    let values =
        values![row.id.0, row.name.as_str(), row.base_url.as_deref(), row.host.as_deref(), row.created_at];
    let inserted = transaction.execute(insert, values).await? == 1;
    Ok(inserted.then_some(row))
}

/// Returns an identifier larger than all existing ones, even if a clock that was ahead created
/// them. The organization with the smallest identifier manages the server, so a new one must never
/// be smaller.
async fn after_all(transaction: &mut Transaction) -> Result<OrganizationId, StoreError> {
    let last = transaction.fetch_one("SELECT MAX(id) AS last FROM organizations", values![]).await?;
    let last = last.map(|row| row.columns().opt_int("last")).transpose()?.flatten();
    Ok(OrganizationId(new_id().max(last.unwrap_or_default().saturating_add(1))))
}
