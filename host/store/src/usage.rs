//! Usage of repositories: counters of the catalog that the database updates with each commit.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::store::Store;

/// Counters of a repository's catalog.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RepositoryUsage {
    /// Total bytes of its files, each path once.
    pub bytes: u64,
    pub packages: u64,
    pub versions: u64,
    /// Number of downloads of versions.
    pub downloads: u64,
    /// Time of the last new version, in ms since 1970.
    pub last_published_at: Option<i64>,
}

/// A repository with its usage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsageRow {
    pub id: RepositoryId,
    pub name: String,
    /// Settings as JSON, without the defaults.
    pub settings: String,
    pub usage: RepositoryUsage,
}

/// Time for which a count of stored bytes is reused.
const COUNTED_FOR: Duration = Duration::from_secs(30);

pub(crate) const COUNTERS: &str = "u.bytes, u.packages, u.versions, u.downloads, u.last_published_at";

impl Store {
    /// Counters of these repositories of the organization. The result leaves out repositories that
    /// do not exist.
    #[boxed]
    pub async fn repository_usage(
        &self,
        organization: OrganizationId,
        ids: &[RepositoryId],
    ) -> Result<HashMap<RepositoryId, RepositoryUsage>, StoreError> {
        if ids.is_empty() {
            return Ok(HashMap::new());
        }
        let mut values = values![organization.0];
        values.extend(ids.iter().map(|id| id.0.into()));
        let names: Vec<String> = (2..=values.len()).map(|at| format!("${at}")).collect();
        let sql = format!(
            "SELECT u.repository, {COUNTERS} FROM repository_usage u JOIN repositories r ON r.id = u.repository \
             WHERE r.organization = $1 AND r.deleted_at IS NULL AND r.id IN ({})",
            names.join(",")
        );
        let rows = self.inner.db.fetch(sql, values).await?;
        let read = |row: &Row| Ok((RepositoryId(row.columns().int("repository")?), counters(row)?));
        rows.iter().map(read).collect()
    }

    /// Every repository of the organization with its counters, in the order of creation.
    #[boxed]
    pub async fn usage(&self, organization: OrganizationId) -> Result<Vec<UsageRow>, StoreError> {
        let sql = format!(
            "SELECT r.id, r.name, r.settings, {COUNTERS} FROM repositories r \
             JOIN repository_usage u ON u.repository = r.id WHERE r.organization = $1 AND r.deleted_at IS NULL ORDER BY r.id"
        );
        let rows = self.inner.db.fetch(sql, values![organization.0]).await?;
        let read = |row: &Row| {
            let mut columns = row.columns();
            let (id, name) = (RepositoryId(columns.int("id")?), columns.text("name")?);
            Ok(UsageRow { id, name, settings: columns.text("settings")?, usage: counters(row)? })
        };
        rows.iter().map(read).collect()
    }

    /// Bytes of all blobs that the organization's records, trash and cached responses name, each
    /// blob once. The result is at most 30 seconds old.
    ///
    /// The query reads a row for each blob. Only one call at a time runs this query; concurrent
    /// calls wait for its result.
    #[boxed]
    pub async fn stored_bytes(&self, organization: OrganizationId) -> Result<u64, StoreError> {
        let mut counted = self.inner.stored_bytes.lock().await;
        if let Some((at, bytes)) = counted.get(&organization)
            && at.elapsed() < COUNTED_FOR
        {
            return Ok(*bytes);
        }
        let bytes = self.count_stored_bytes(organization).await?;
        counted.insert(organization, (Instant::now(), bytes));
        Ok(bytes)
    }

    async fn count_stored_bytes(&self, organization: OrganizationId) -> Result<u64, StoreError> {
        let sql = "SELECT CAST(COALESCE(SUM(b.size), 0) AS BIGINT) AS bytes FROM blobs b WHERE b.id IN (\
                   SELECT n.blob FROM record_blobs n JOIN repositories r ON r.id = n.repository WHERE r.organization = $1 \
                   UNION SELECT t.blob FROM trash_blobs t JOIN trash e ON e.id = t.entry \
                   JOIN repositories r ON r.id = e.repository WHERE r.organization = $1 \
                   UNION SELECT c.blob FROM cached_answers c JOIN repositories r ON r.id = c.repository \
                   WHERE r.organization = $1 AND c.blob IS NOT NULL)";
        let row = self.inner.db.fetch_one(sql, values![organization.0]).await?;
        row.map_or(Ok(0), |row| row.columns().unsigned("bytes"))
    }
}

pub(crate) fn counters(row: &Row) -> Result<RepositoryUsage, StoreError> {
    let mut columns = row.columns();
    Ok(RepositoryUsage {
        bytes: columns.unsigned("bytes")?,
        packages: columns.unsigned("packages")?,
        versions: columns.unsigned("versions")?,
        downloads: columns.unsigned("downloads")?,
        last_published_at: columns.opt_int("last_published_at")?,
    })
}
