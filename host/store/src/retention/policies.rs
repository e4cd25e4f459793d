//! Retention policies of an organization.

use crate::accounts::AuditEvent;
use crate::accounts::remember;
use crate::boxed;
use crate::db::{Columns, Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, PolicyId, new_id};
use crate::store::Store;

/// Maximum number of policies of an organization.
pub const MAX_POLICIES: u32 = 100;

/// Interval between the runs of an enforced policy.
pub(super) const EVERY_MS: i64 = 60 * 60 * 1000;
pub(super) const COLUMNS: &str =
    "id, organization, name, rule, digest, previewed, mode, created_by, created_at";

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyRow {
    pub id: PolicyId,
    pub organization: OrganizationId,
    /// Name chosen by the user.
    pub name: String,
    /// Rule as a JSON object.
    pub rule: String,
    /// SHA-256 of the rule, in hex.
    pub digest: String,
    /// True if the present rule was previewed.
    pub previewed: bool,
    /// True if the policy runs.
    pub enforced: bool,
    /// E-mail address of the creator.
    pub created_by: String,
    /// Creation time in ms since 1970.
    pub created_at: i64,
}

/// A policy to be created, initially paused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewPolicy {
    /// Name chosen by the user.
    pub name: String,
    /// Rule as a JSON object.
    pub rule: String,
    /// SHA-256 of the rule, in hex.
    pub digest: String,
    /// E-mail address of the creator.
    pub created_by: String,
}

/// A change of a policy; fields that are `None` stay unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PolicyChange {
    /// Name chosen by the user.
    pub name: Option<String>,
    /// New rule with its digest. A new rule pauses the policy.
    pub rule: Option<(String, String)>,
    /// True to run the policy. This requires a preview of the rule that the policy has after the
    /// change.
    pub enforced: Option<bool>,
    /// Digest of the rule that the caller read. If the policy has another rule by then, nothing
    /// changes.
    pub read: Option<String>,
}

impl Store {
    /// Creates a policy; `None` if the organization has the maximum number.
    #[boxed]
    pub async fn create_policy(
        &self,
        organization: OrganizationId,
        new: NewPolicy,
        audit: Option<AuditEvent>,
    ) -> Result<Option<PolicyRow>, StoreError> {
        let id = PolicyId(new_id());
        let mut transaction = self.inner.db.begin().await?;
        let insert = "INSERT INTO retention_policies (id, organization, name, rule, digest, mode, created_by, created_at, due_at, \
                      claimed_until) SELECT $1, $2, $3, $4, $5, 'paused', $6, $7, $7, 0 \
                      WHERE (SELECT COUNT(*) FROM retention_policies WHERE organization = $2) < $8";
        let NewPolicy { name, rule, digest, created_by } = new;
        let most = i64::from(MAX_POLICIES);
        let values = values![id.0, organization.0, name, rule, digest, created_by, self.now_ms(), most];
        if transaction.execute(insert, values).await? == 0 {
            return Ok(None);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.find_policy(organization, id).await
    }

    /// The policy of this identifier in this organization.
    #[boxed]
    pub async fn find_policy(
        &self,
        organization: OrganizationId,
        id: PolicyId,
    ) -> Result<Option<PolicyRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM retention_policies WHERE organization = $1 AND id = $2");
        let row = self.inner.db.fetch_one(sql, values![organization.0, id.0]).await?;
        row.as_ref().map(policy).transpose()
    }

    /// The policy of this identifier in any organization.
    #[boxed]
    pub async fn any_policy(&self, id: PolicyId) -> Result<Option<PolicyRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM retention_policies WHERE id = $1");
        let row = self.inner.db.fetch_one(sql, values![id.0]).await?;
        row.as_ref().map(policy).transpose()
    }

    /// Policies in the order of creation, after the identifier `after`, at most `limit`.
    #[boxed]
    pub async fn list_policies(
        &self,
        organization: OrganizationId,
        after: Option<PolicyId>,
        limit: u32,
    ) -> Result<Vec<PolicyRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM retention_policies WHERE organization = $1 AND id > $2 ORDER BY id LIMIT $3"
        );
        let after = after.map_or(i64::MIN, |after| after.0);
        let rows = self.inner.db.fetch(sql, values![organization.0, after, i64::from(limit)]).await?;
        rows.iter().map(policy).collect()
    }

    /// Identifiers of all enforced policies of every organization.
    #[boxed]
    pub async fn enforced_policies(&self) -> Result<Vec<PolicyId>, StoreError> {
        let sql = "SELECT id FROM retention_policies WHERE mode = 'enforced' ORDER BY id";
        let rows = self.inner.db.fetch(sql, vec![]).await?;
        rows.iter().map(|row| row.columns().int("id").map(PolicyId)).collect()
    }

    /// Changes a policy. Returns `None` if it does not exist, if it would be enforced without a
    /// preview of its rule, or if its rule changed since it was read.
    #[boxed]
    pub async fn change_policy(
        &self,
        organization: OrganizationId,
        id: PolicyId,
        change: PolicyChange,
        audit: Option<AuditEvent>,
    ) -> Result<Option<PolicyRow>, StoreError> {
        let PolicyChange { name, rule, enforced, read } = change;
        let mut transaction = self.inner.db.begin().await?;
        if let Some(read) = read {
            let find = "SELECT digest FROM retention_policies WHERE organization = $1 AND id = $2";
            let lock = format!("{find}{}", transaction.for_update());
            let row = transaction.fetch_one(lock, values![organization.0, id.0]).await?;
            let digest = row.map(|row| row.columns().text("digest")).transpose()?;
            if digest != Some(read) {
                return Ok(None);
            }
        }
        let mut there = true;
        if let Some(name) = name {
            let sql = "UPDATE retention_policies SET name = $3 WHERE organization = $1 AND id = $2";
            there &= transaction.execute(sql, values![organization.0, id.0, name]).await? == 1;
        }
        if let Some((rule, digest)) = rule {
            let sql = "UPDATE retention_policies SET rule = $3, digest = $4, mode = 'paused' \
                       WHERE organization = $1 AND id = $2";
            there &= transaction.execute(sql, values![organization.0, id.0, rule, digest]).await? == 1;
        }
        if let Some(enforced) = enforced {
            let sql = if enforced {
                "UPDATE retention_policies SET mode = 'enforced', due_at = CASE WHEN mode = 'enforced' THEN due_at ELSE $3 END \
                 WHERE organization = $1 AND id = $2 AND previewed = digest"
            } else {
                "UPDATE retention_policies SET mode = 'paused', due_at = $3 WHERE organization = $1 AND id = $2"
            };
            there &= transaction
                .execute(sql, values![organization.0, id.0, self.now_ms().saturating_add(EVERY_MS)])
                .await?
                == 1;
        }
        if !there {
            return Ok(None);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.find_policy(organization, id).await
    }

    /// Records a preview of a policy's rule; false if the rule was changed meanwhile.
    #[boxed]
    pub async fn mark_previewed(
        &self,
        organization: OrganizationId,
        id: PolicyId,
        digest: &str,
    ) -> Result<bool, StoreError> {
        let sql = "UPDATE retention_policies SET previewed = $3 WHERE organization = $1 AND id = $2 AND digest = $3";
        Ok(self.inner.db.execute(sql, values![organization.0, id.0, digest]).await? == 1)
    }

    /// Deletes a policy and the history of its runs; false if it does not exist. Deleted versions
    /// stay in the trash.
    #[boxed]
    pub async fn delete_policy(
        &self,
        organization: OrganizationId,
        id: PolicyId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let sql = "DELETE FROM retention_policies WHERE organization = $1 AND id = $2";
        let deleted = transaction.execute(sql, values![organization.0, id.0]).await? == 1;
        if deleted {
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(deleted)
    }
}

fn policy(row: &Row) -> Result<PolicyRow, StoreError> {
    policy_of(&mut row.columns())
}

pub(super) fn policy_of(columns: &mut Columns<'_>) -> Result<PolicyRow, StoreError> {
    let (id, organization) = (PolicyId(columns.int("id")?), OrganizationId(columns.int("organization")?));
    let (name, rule, digest) = (columns.text("name")?, columns.text("rule")?, columns.text("digest")?);
    Ok(PolicyRow {
        id,
        organization,
        name,
        rule,
        previewed: columns.opt_text("previewed")?.as_deref() == Some(&digest),
        digest,
        enforced: columns.text("mode")? == "enforced",
        created_by: columns.text("created_by")?,
        created_at: columns.int("created_at")?,
    })
}
