//! Facts of versions that policies need, and the webhook event of a denial.

use std::collections::HashMap;

use serde_json::Value as Json;

use crate::boxed;
use crate::catalog::{Version, VersionFile};
use crate::db::{MultiRow, Row, Value, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId, RuleId};
use crate::store::Store;
use crate::versions::{file, version};
use crate::webhooks::{EventKind, NewWebhookEvent, write_event};

const COLUMNS: &str =
    "v.name, v.version, v.published, v.shown_at, v.summary, v.properties, v.state FROM versions v";

/// Reads the facts of chosen versions; their keys come between both parts.
pub(crate) const FACTS: [&str; 2] = [
    "SELECT v.name, v.version, v.published, v.shown_at, v.summary, v.properties, v.state FROM versions v \
     WHERE (v.repository, v.name, v.version) IN (VALUES ",
    ")",
];

/// A version with the facts for a preview. The time in `version` is set only if the format stated
/// it.
#[derive(Clone, Debug)]
pub struct VersionFactsRow {
    /// Catalog entry with its files.
    pub version: Version,
    /// Publication time in ms since 1970, if it is known.
    pub published: Option<u64>,
}

/// Position at which a page ended.
#[derive(Clone, Debug)]
pub struct FactsPlace {
    name: String,
    version: String,
}

impl VersionFactsRow {
    /// Position after which the next page begins.
    #[must_use]
    pub fn place(&self) -> FactsPlace {
        FactsPlace { name: self.version.name.clone(), version: self.version.version.clone() }
    }
}

impl Store {
    /// Versions of a repository with their files, ordered by package and version, after the
    /// position `after`, at most `limit`. A page with fewer than `limit` versions is the last one.
    /// A page takes two statements.
    #[boxed]
    pub async fn version_facts(
        &self,
        repository: RepositoryId,
        after: Option<&FactsPlace>,
        limit: u32,
    ) -> Result<Vec<VersionFactsRow>, StoreError> {
        let (name, number) = after.map_or(("", ""), |place| (place.name.as_str(), place.version.as_str()));
        let sql = format!(
            "SELECT {COLUMNS} WHERE v.repository = $1 AND (v.name, v.version) > ($2, $3) ORDER BY v.name, v.version LIMIT $4"
        );
        let rows = self.inner.db.fetch(sql, values![repository.0, name, number, i64::from(limit)]).await?;
        let mut found = rows.iter().map(facts).collect::<Result<Vec<_>, _>>()?;
        let Some(last) = found.last().map(VersionFactsRow::place) else { return Ok(found) };
        let files = "SELECT name, version, path, digest, size FROM files WHERE repository = $1 \
                     AND (name, version) > ($2, $3) AND (name, version) <= ($4, $5)";
        let values = values![repository.0, name, number, last.name.as_str(), last.version.as_str()];
        let mut by_version: HashMap<(String, String), Vec<VersionFile>> = HashMap::new();
        for row in &self.inner.db.fetch(files, values).await? {
            let (number, file) = file(row)?;
            by_version.entry((row.columns().text("name")?, number)).or_default().push(file);
        }
        for row in &mut found {
            let key = (row.version.name.clone(), row.version.version.clone());
            row.version.files = by_version.remove(&key).unwrap_or_default();
        }
        Ok(found)
    }

    /// Facts of one version; `None` if it is not in the catalog.
    #[boxed]
    pub async fn facts_of_version(
        &self,
        repository: RepositoryId,
        name: &str,
        number: &str,
    ) -> Result<Option<VersionFactsRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE v.repository = $1 AND v.name = $2 AND v.version = $3");
        let row = self.inner.db.find(sql, values![repository.0, name, number]).await?;
        row.as_ref().map(facts).transpose()
    }

    /// Facts of these versions of a package, in any order, without those that are not in the
    /// catalog. It takes one statement.
    #[boxed]
    pub async fn facts_of_versions(
        &self,
        repository: RepositoryId,
        name: &str,
        numbers: &[String],
    ) -> Result<Vec<VersionFactsRow>, StoreError> {
        let rows = numbers
            .iter()
            .map(|number| [Value::from(repository.0), Value::from(name), Value::from(number.as_str())]);
        let [before, after] = FACTS;
        let rows = self.inner.db.fetch_multi_row(MultiRow::new(before, rows.collect(), after)).await?;
        rows.iter().map(facts).collect()
    }

    /// Packages of a format that the organization uses, at most `limit`. These are packages of
    /// hosted repositories and downloaded packages.
    #[boxed]
    pub async fn names_in_use(
        &self,
        organization: OrganizationId,
        format: &str,
        limit: u32,
    ) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT DISTINCT p.name FROM repositories r JOIN packages p ON p.repository = r.id \
                   WHERE r.organization = $1 AND r.format = $2 AND r.deleted_at IS NULL AND (r.kind = 'hosted' OR EXISTS \
                   (SELECT 1 FROM versions v WHERE v.repository = p.repository AND v.name = p.name AND v.downloads > 0)) \
                   ORDER BY p.name LIMIT $3";
        let rows = self.inner.db.fetch(sql, values![organization.0, format, i64::from(limit)]).await?;
        rows.iter().map(|row| row.columns().text("name")).collect()
    }

    /// Notifies the organization's webhooks that a rule denied a version.
    #[boxed]
    pub async fn notify_policy_denied(
        &self,
        organization: OrganizationId,
        rule: RuleId,
        repository: RepositoryId,
        subject: String,
        data: Json,
    ) -> Result<(), StoreError> {
        let mut transaction = self.inner.db.begin().await?.uncounted();
        let kind = EventKind::PolicyDenied;
        let event =
            NewWebhookEvent { kind, repository: Some(repository), about: ("policy", rule.0), subject, data };
        let hooks = write_event(&mut transaction, organization, event).await?;
        if !hooks.is_empty() {
            transaction.commit().await?;
            self.inner.delivery_notifier.notify(hooks);
        }
        Ok(())
    }
}

fn facts(row: &Row) -> Result<VersionFactsRow, StoreError> {
    let name = row.columns().text("name")?;
    let published = row.columns().opt_int("published")?.and_then(|at| u64::try_from(at).ok());
    Ok(VersionFactsRow { version: version(&name, row)?, published })
}
