//! Rules of an organization as rows.

use super::recorded::forget_recordings_of;
use super::{ids_written, renumber};
use crate::accounts::{AuditEvent, remember};
use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, RuleId, new_id};
use crate::rules::ExceptionRow;
use crate::store::Store;

/// Maximum number of rules of an organization. Each one calls a component.
pub const MAX_RULES: u32 = 50;

const COLUMNS: &str = "id, organization, name, component, settings, repositories, packages, mode, digest, previewed, \
    created_by, created_at FROM policy_rules";

/// Effect of a rule on denied versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleMode {
    /// The rule is not evaluated.
    Paused,
    /// Denied versions are reported, but allowed.
    Warn,
    /// Denied versions are not allowed.
    Enforced,
}

impl RuleMode {
    /// Name in the database and on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            RuleMode::Paused => "paused",
            RuleMode::Warn => "warn",
            RuleMode::Enforced => "enforced",
        }
    }

    /// The mode of this name.
    #[must_use]
    pub fn of(word: &str) -> Option<RuleMode> {
        [RuleMode::Paused, RuleMode::Warn, RuleMode::Enforced].into_iter().find(|mode| mode.word() == word)
    }
}

/// Content of a rule, which previews and digests refer to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleText {
    /// Name of a component beside the program, or digest of a stored one.
    pub component: String,
    /// Settings as a JSON object.
    pub settings: String,
    /// Repositories to which the rule applies; `None` for all.
    pub repositories: Option<Vec<RepositoryId>>,
    /// Patterns of package names; `None` for all packages.
    pub packages: Option<Vec<String>>,
    /// SHA-256 of the whole content, in hex.
    pub digest: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RuleRow {
    pub id: RuleId,
    pub organization: OrganizationId,
    /// Name chosen by the user.
    pub name: String,
    pub text: RuleText,
    pub mode: RuleMode,
    /// True if the present content was previewed.
    pub previewed: bool,
    /// E-mail address of the creator.
    pub created_by: String,
    /// Creation time in ms since 1970.
    pub created_at: i64,
}

/// A rule to be created, initially paused.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewRule {
    /// Name chosen by the user.
    pub name: String,
    pub text: RuleText,
    /// E-mail address of the creator.
    pub created_by: String,
}

/// A change of a rule; fields that are `None` stay unchanged.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RuleChange {
    /// Name chosen by the user.
    pub name: Option<String>,
    /// New content, which pauses the rule.
    pub text: Option<RuleText>,
    /// New mode. `Enforced` requires a preview of the content that the rule has after the change.
    pub mode: Option<RuleMode>,
}

impl Store {
    /// Creates a rule; `None` if the organization has the maximum number.
    #[boxed]
    pub async fn create_rule(
        &self,
        organization: OrganizationId,
        new: NewRule,
        audit: Option<AuditEvent>,
    ) -> Result<Option<RuleRow>, StoreError> {
        let id = RuleId(new_id());
        let mut transaction = self.inner.db.begin().await?;
        let insert = "INSERT INTO policy_rules (id, organization, name, component, settings, repositories, packages, mode, digest, \
                      created_by, created_at) SELECT $1, $2, $3, $4, $5, $6, $7, 'paused', $8, $9, $10 \
                      WHERE (SELECT COUNT(*) FROM policy_rules WHERE organization = $2) < $11";
        let NewRule { name, text, created_by } = new;
        let (repositories, packages) = lists(&text)?;
        let RuleText { component, settings, digest, .. } = text;
        let values = values![
            id.0,
            organization.0,
            name,
            component,
            settings,
            repositories,
            packages,
            digest,
            created_by,
            self.now_ms(),
            i64::from(MAX_RULES)
        ];
        if transaction.execute(insert, values).await? == 0 {
            return Ok(None);
        }
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.find_rule(organization, id).await
    }

    /// The rule of this identifier in this organization.
    #[boxed]
    pub async fn find_rule(
        &self,
        organization: OrganizationId,
        id: RuleId,
    ) -> Result<Option<RuleRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE organization = $1 AND id = $2");
        let row = self.inner.db.fetch_one(sql, values![organization.0, id.0]).await?;
        row.as_ref().map(rule).transpose()
    }

    /// Rules in the order of creation, after the identifier `after`, at most `limit`.
    #[boxed]
    pub async fn list_rules(
        &self,
        organization: OrganizationId,
        after: Option<RuleId>,
        limit: u32,
    ) -> Result<Vec<RuleRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE organization = $1 AND id > $2 ORDER BY id LIMIT $3");
        let after = after.map_or(i64::MIN, |after| after.0);
        let rows = self.inner.db.fetch(sql, values![organization.0, after, i64::from(limit)]).await?;
        rows.iter().map(rule).collect()
    }

    /// Rules of an organization that are not paused, with their active exceptions.
    #[boxed]
    pub async fn rules_that_hold(
        &self,
        organization: OrganizationId,
    ) -> Result<(Vec<RuleRow>, Vec<ExceptionRow>), StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE organization = $1 AND mode <> 'paused' ORDER BY id");
        let rows = self.inner.db.fetch(sql, values![organization.0]).await?;
        let rules = rows.iter().map(rule).collect::<Result<_, _>>()?;
        let exceptions = self.exceptions_that_hold(organization).await?;
        Ok((rules, exceptions))
    }

    /// Digests of stored components that active rules of any organization use.
    #[boxed]
    pub async fn rules_components(&self) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT DISTINCT component FROM policy_rules WHERE component LIKE 'sha256:%' AND mode <> 'paused'";
        let rows = self.inner.db.fetch(sql, vec![]).await?;
        rows.iter().map(|row| row.columns().text("component")).collect()
    }

    /// Changes a rule. Returns `None` if it does not exist, or if it would be enforced without a
    /// preview of its content.
    #[boxed]
    pub async fn change_rule(
        &self,
        organization: OrganizationId,
        id: RuleId,
        change: RuleChange,
        audit: Option<AuditEvent>,
    ) -> Result<Option<RuleRow>, StoreError> {
        let RuleChange { name, text, mode } = change;
        let mut transaction = self.inner.db.begin().await?;
        let mut there = true;
        if let Some(name) = name {
            let sql = "UPDATE policy_rules SET name = $3 WHERE organization = $1 AND id = $2";
            there &= transaction.execute(sql, values![organization.0, id.0, name]).await? == 1;
        }
        if let Some(text) = text {
            let sql = "UPDATE policy_rules SET component = $3, settings = $4, repositories = $5, packages = $6, digest = $7, \
                       mode = 'paused' WHERE organization = $1 AND id = $2";
            let (repositories, packages) = lists(&text)?;
            let RuleText { component, settings, digest, .. } = text;
            let values = values![organization.0, id.0, component, settings, repositories, packages, digest];
            there &= transaction.execute(sql, values).await? == 1;
        }
        if let Some(mode) = mode {
            let sql = if mode == RuleMode::Enforced {
                "UPDATE policy_rules SET mode = $3 WHERE organization = $1 AND id = $2 AND previewed = digest"
            } else {
                "UPDATE policy_rules SET mode = $3 WHERE organization = $1 AND id = $2"
            };
            there &= transaction.execute(sql, values![organization.0, id.0, mode.word()]).await? == 1;
        }
        if !there {
            return Ok(None);
        }
        renumber(&mut transaction, organization).await?;
        remember(&mut transaction, audit).await?;
        transaction.commit().await?;
        self.find_rule(organization, id).await
    }

    /// Records a preview of a rule; false if the rule was changed meanwhile.
    #[boxed]
    pub async fn mark_rule_previewed(
        &self,
        organization: OrganizationId,
        id: RuleId,
        digest: &str,
    ) -> Result<bool, StoreError> {
        let sql =
            "UPDATE policy_rules SET previewed = $3 WHERE organization = $1 AND id = $2 AND digest = $3";
        Ok(self.inner.db.execute(sql, values![organization.0, id.0, digest]).await? == 1)
    }

    /// Deletes a rule with its exceptions and recordings; false if it does not exist.
    #[boxed]
    pub async fn delete_rule(
        &self,
        organization: OrganizationId,
        id: RuleId,
        audit: Option<AuditEvent>,
    ) -> Result<bool, StoreError> {
        let mut transaction = self.inner.db.begin().await?;
        let exceptions = "DELETE FROM policy_exceptions WHERE rule = \
                          (SELECT id FROM policy_rules WHERE organization = $1 AND id = $2)";
        transaction.execute(exceptions, values![organization.0, id.0]).await?;
        forget_recordings_of(&mut transaction, organization, id).await?;
        let sql = "DELETE FROM policy_rules WHERE organization = $1 AND id = $2";
        let deleted = transaction.execute(sql, values![organization.0, id.0]).await? == 1;
        if deleted {
            renumber(&mut transaction, organization).await?;
            remember(&mut transaction, audit).await?;
            transaction.commit().await?;
        }
        Ok(deleted)
    }
}

fn lists(text: &RuleText) -> Result<(Option<String>, Option<String>), StoreError> {
    let repositories = text.repositories.as_deref().map(ids_written).transpose()?;
    let written = |patterns: &Vec<String>| serde_json::to_string(patterns);
    let packages = text.packages.as_ref().map(written).transpose();
    let packages = packages.map_err(|error| StoreError::Invalid(format!("a rule's packages: {error}")))?;
    Ok((repositories, packages))
}

fn rule(row: &Row) -> Result<RuleRow, StoreError> {
    let mut columns = row.columns();
    let id = RuleId(columns.int("id")?);
    let corrupt = |what: &str| StoreError::Corrupt(format!("{what} of the rule {id}"));
    let repositories = columns.opt_text("repositories")?.map(|text| {
        let ids = serde_json::from_str::<Vec<i64>>(&text).map_err(|_| corrupt("the repositories"))?;
        Ok::<_, StoreError>(ids.into_iter().map(RepositoryId).collect())
    });
    let packages = columns
        .opt_text("packages")?
        .map(|text| serde_json::from_str::<Vec<String>>(&text).map_err(|_| corrupt("the packages")));
    let digest = columns.text("digest")?;
    let mode = RuleMode::of(&columns.text("mode")?).ok_or_else(|| corrupt("the mode"))?;
    Ok(RuleRow {
        id,
        organization: OrganizationId(columns.int("organization")?),
        name: columns.text("name")?,
        previewed: columns.opt_text("previewed")?.as_deref() == Some(&digest),
        text: RuleText {
            component: columns.text("component")?,
            settings: columns.text("settings")?,
            repositories: repositories.transpose()?,
            packages: packages.transpose()?,
            digest,
        },
        mode,
        created_by: columns.text("created_by")?,
        created_at: columns.int("created_at")?,
    })
}
