//! Exceptions from rules, each with a reason and an end.

use super::renumber;
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{ExceptionId, OrganizationId, RepositoryId, RuleId, new_id};
use crate::store::Store;

/// Maximum number of active exceptions of a rule.
pub const MAX_EXCEPTIONS: u32 = 500;

const COLUMNS: &str = "e.id, e.rule, e.repository, e.package, e.version, e.reason, e.until, e.created_by, e.created_at \
     FROM policy_exceptions e JOIN policy_rules r ON r.id = e.rule";

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExceptionRow {
    pub id: ExceptionId,
    /// Rule to which the exception applies.
    pub rule: RuleId,
    pub new: NewException,
    /// Creation time in ms since 1970.
    pub created_at: i64,
}

/// An exception to be created.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewException {
    /// Repository of the exception; `None` for all repositories.
    pub repository: Option<RepositoryId>,
    /// Pattern of the package names to which it applies.
    pub package: String,
    /// Pattern of the versions to which it applies.
    pub version: String,
    /// Reason for people to read.
    pub reason: String,
    /// End of the exception, in ms since 1970.
    pub until: i64,
    /// E-mail address of the creator.
    pub created_by: String,
}

impl Store {
    /// Creates an exception. Returns `None` if the rule does not exist or has the maximum number.
    /// Exceptions that ended more than a year ago are deleted.
    #[boxed]
    pub async fn create_exception(
        &self,
        organization: OrganizationId,
        rule: RuleId,
        new: NewException,
        audit: Option<AuditEvent>,
    ) -> Result<Option<ExceptionRow>, StoreError> {
        const YEAR: i64 = 365 * 24 * 60 * 60 * 1000;
        let (id, now) = (ExceptionId(new_id()), self.now_ms());
        let mut transaction = self.inner.db.begin().await?;
        let forget = "DELETE FROM policy_exceptions WHERE rule = $1 AND until < $2";
        transaction.execute(forget, values![rule.0, now.saturating_sub(YEAR)]).await?;
        let insert = "INSERT INTO policy_exceptions (id, rule, repository, package, version, reason, until, created_by, created_at) \
                      SELECT $1, r.id, $4, $5, $6, $7, $8, $9, $10 FROM policy_rules r WHERE r.organization = $2 AND r.id = $3 \
                      AND (SELECT COUNT(*) FROM policy_exceptions WHERE rule = $3 AND until > $10) < $11";
        let repository = new.repository.map(|id| id.0);
        let values = values![
            id.0,
            organization.0,
            rule.0,
            repository,
            new.package.as_str(),
            new.version.as_str(),
            new.reason.as_str(),
            new.until,
            new.created_by.as_str(),
            now,
            i64::from(MAX_EXCEPTIONS)
        ];
        if transaction.execute(insert, values).await? == 0 {
            return Ok(None);
        }
        renumber(&mut transaction, organization).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        Ok(Some(ExceptionRow { id, rule, new, created_at: now }))
    }

    /// Exceptions of a rule, including ended ones, in the order of creation, after the identifier
    /// `after`, at most `limit`.
    #[boxed]
    pub async fn list_exceptions(
        &self,
        organization: OrganizationId,
        rule: RuleId,
        after: Option<ExceptionId>,
        limit: u32,
    ) -> Result<Vec<ExceptionRow>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} WHERE r.organization = $1 AND e.rule = $2 AND e.id > $3 ORDER BY e.id LIMIT $4"
        );
        let after = after.map_or(i64::MIN, |after| after.0);
        let rows = self.inner.db.fetch(sql, values![organization.0, rule.0, after, i64::from(limit)]).await?;
        rows.iter().map(exception).collect()
    }

    /// Active exceptions of an organization.
    pub(super) async fn exceptions_that_hold(
        &self,
        organization: OrganizationId,
    ) -> Result<Vec<ExceptionRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE r.organization = $1 AND e.until > $2 ORDER BY e.id");
        let rows = self.inner.db.fetch(sql, values![organization.0, self.now_ms()]).await?;
        rows.iter().map(exception).collect()
    }

    /// Deletes an exception; false if it does not exist.
    #[boxed]
    pub async fn delete_exception(
        &self,
        organization: OrganizationId,
        rule: RuleId,
        id: ExceptionId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let sql = "DELETE FROM policy_exceptions WHERE id = $3 AND rule = \
                   (SELECT id FROM policy_rules WHERE organization = $1 AND id = $2)";
        let deleted = transaction.execute(sql, values![organization.0, rule.0, id.0]).await? == 1;
        if deleted {
            renumber(&mut transaction, organization).await?;
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(deleted)
    }
}

fn exception(row: &Row) -> Result<ExceptionRow, StoreError> {
    let mut columns = row.columns();
    Ok(ExceptionRow {
        id: ExceptionId(columns.int("id")?),
        rule: RuleId(columns.int("rule")?),
        new: NewException {
            repository: columns.opt_int("repository")?.map(RepositoryId),
            package: columns.text("package")?,
            version: columns.text("version")?,
            reason: columns.text("reason")?,
            until: columns.int("until")?,
            created_by: columns.text("created_by")?,
        },
        created_at: columns.int("created_at")?,
    })
}
