//! Lists of packages, a page at a time. Indexes make the cost of a page independent of the numbers
//! of packages, versions and files.

use std::collections::HashMap;

use crate::boxed;
use crate::db::{MultiRow, Row, Value, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

pub(crate) const NAMES: &str =
    "SELECT name FROM packages WHERE repository = $1 AND name > $2 ORDER BY name LIMIT $3";
/// Number of versions of each package, and the name and time of the version that was published
/// last.
pub(crate) const SUMMARIES: [&str; 2] = [
    "WITH requested (repository, name) AS (VALUES ",
    ") SELECT requested.name, \
        (SELECT COUNT(*) FROM versions v WHERE v.repository = requested.repository AND v.name = requested.name) AS versions, \
        (SELECT v.version FROM versions v WHERE v.repository = requested.repository AND v.name = requested.name \
         ORDER BY COALESCE(v.published, v.shown_at) DESC, v.version DESC LIMIT 1) AS latest, \
        (SELECT COALESCE(v.published, v.shown_at) FROM versions v WHERE v.repository = requested.repository AND v.name = requested.name \
         ORDER BY COALESCE(v.published, v.shown_at) DESC, v.version DESC LIMIT 1) AS updated_at \
      FROM requested",
];

/// Summary and state of the version of each package that was published last, and the downloads of
/// the package on the days for which the store retains them.
pub(crate) const NOTES: [&str; 2] = [
    "WITH requested (repository, name) AS (VALUES ",
    ") SELECT requested.name, \
        (SELECT v.summary FROM versions v WHERE v.repository = requested.repository AND v.name = requested.name \
         ORDER BY COALESCE(v.published, v.shown_at) DESC, v.version DESC LIMIT 1) AS summary, \
        (SELECT v.state FROM versions v WHERE v.repository = requested.repository AND v.name = requested.name \
         ORDER BY COALESCE(v.published, v.shown_at) DESC, v.version DESC LIMIT 1) AS state, \
        (SELECT CAST(COALESCE(SUM(a.downloads), 0) AS BIGINT) FROM activity a \
         WHERE a.repository = requested.repository AND a.name = requested.name) AS downloads \
      FROM requested",
];

/// Summary of a package in a list.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PackageSummary {
    /// Name in the format's own spelling.
    pub name: String,
    /// Number of versions in the catalog.
    pub versions: u64,
    /// Version that was published last.
    pub latest: Option<String>,
    /// Time of that publication, in ms since 1970.
    pub updated_at: Option<u64>,
}

/// Facts about a package that a table shows in addition to its [`PackageSummary`].
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PackageNote {
    /// Summary of one line of the version that was published last.
    pub summary: String,
    /// State of that version; empty if clients may use it.
    pub state: String,
    /// Downloads in the last [`ACTIVITY_DAYS`](crate::ACTIVITY_DAYS) days.
    pub downloads: u64,
}

impl Store {
    /// Names of at most `limit` packages after this one, in byte order.
    #[boxed]
    pub async fn package_names(
        &self,
        repository: RepositoryId,
        after: &str,
        limit: u32,
    ) -> Result<Vec<String>, StoreError> {
        let values = values![repository.0, after.replace('\0', ""), i64::from(limit)];
        let rows = self.inner.db.fetch(NAMES, values).await?;
        rows.iter().map(|row| row.columns().text("name")).collect()
    }

    /// Summaries of these packages, in this order.
    #[boxed]
    pub async fn package_summaries(
        &self,
        repository: RepositoryId,
        names: Vec<String>,
    ) -> Result<Vec<PackageSummary>, StoreError> {
        let rows = names.iter().map(|name| [Value::from(repository.0), Value::from(name.as_str())]);
        let [before, after] = SUMMARIES;
        let mut found = HashMap::new();
        for row in &self.inner.db.fetch_multi_row(MultiRow::new(before, rows.collect(), after)).await? {
            let summary = summary(row)?;
            found.insert(summary.name.clone(), summary);
        }
        let gone = |name: String| PackageSummary { name, ..PackageSummary::default() };
        Ok(names.into_iter().map(|name| found.remove(&name).unwrap_or_else(|| gone(name))).collect())
    }

    /// Notes about these packages, in this order.
    #[boxed]
    pub async fn package_notes(
        &self,
        repository: RepositoryId,
        names: &[String],
    ) -> Result<Vec<PackageNote>, StoreError> {
        let rows = names.iter().map(|name| [Value::from(repository.0), Value::from(name.as_str())]);
        let [before, after] = NOTES;
        let mut found = HashMap::new();
        for row in &self.inner.db.fetch_multi_row(MultiRow::new(before, rows.collect(), after)).await? {
            let (name, note) = note(row)?;
            found.insert(name, note);
        }
        Ok(names.iter().map(|name| found.remove(name).unwrap_or_default()).collect())
    }
}

fn note(row: &Row) -> Result<(String, PackageNote), StoreError> {
    let mut columns = row.columns();
    let (name, summary) = (columns.text("name")?, columns.opt_text("summary")?.unwrap_or_default());
    let state = columns.opt_text("state")?.unwrap_or_default();
    Ok((name, PackageNote { summary, state, downloads: columns.unsigned("downloads")? }))
}

fn summary(row: &Row) -> Result<PackageSummary, StoreError> {
    let mut columns = row.columns();
    let (name, versions) = (columns.text("name")?, columns.unsigned("versions")?);
    let (latest, updated_at) = (columns.opt_text("latest")?, columns.opt_int("updated_at")?);
    Ok(PackageSummary {
        name,
        versions,
        latest,
        updated_at: updated_at.and_then(|at| u64::try_from(at).ok()),
    })
}
