//! How much is shown of repositories, as counters that the database keeps with each commit.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::boxed;
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::store::Store;

/// What is shown of a repository, counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RepositoryUsage {
    /// Of its files, each path once.
    pub bytes: u64,
    /// Its packages.
    pub packages: u64,
    /// Their versions.
    pub versions: u64,
    /// How often a version of it was fetched.
    pub downloads: u64,
    /// When a version was last shown first, in ms since 1970.
    pub last_published_at: Option<i64>,
}

/// A repository with its usage.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UsageRow {
    /// The repository.
    pub id: RepositoryId,
    /// Its name.
    pub name: String,
    /// Its settings as JSON, without the defaults.
    pub settings: String,
    /// The counters.
    pub usage: RepositoryUsage,
}

/// For how long it is not counted again what blobs take up.
const COUNTED_FOR: Duration = Duration::from_secs(30);

const COUNTERS: &str = "u.bytes, u.packages, u.versions, u.downloads, u.last_published_at";

impl Store {
    /// The counters of these repositories of the organization. One that is not there has none.
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

    /// Every repository of the organization with its counters, in the order of their making.
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

    /// Bytes of all blobs that the organization's records, its trash and its proxies' cached answers name, each blob once, as they were 30 seconds
    /// ago at most. To count them reads a row for each: one call at a time does it, and who asks meanwhile waits for it.
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

fn counters(row: &Row) -> Result<RepositoryUsage, StoreError> {
    let mut columns = row.columns();
    Ok(RepositoryUsage {
        bytes: columns.unsigned("bytes")?,
        packages: columns.unsigned("packages")?,
        versions: columns.unsigned("versions")?,
        downloads: columns.unsigned("downloads")?,
        last_published_at: columns.opt_int("last_published_at")?,
    })
}
