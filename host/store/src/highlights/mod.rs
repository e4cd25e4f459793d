//! Highlights of an organization for its home page: repositories by activity or size, and the
//! packages in them that were published or downloaded lately.

mod packages;

use crate::boxed;
use crate::db::{Row, Value, values};
use crate::error::StoreError;
use crate::ids::{OrganizationId, RepositoryId};
use crate::search::Readable;
use crate::store::Store;
use crate::usage::{COUNTERS, RepositoryUsage, counters};

pub(crate) use packages::Rankings;
pub use packages::{HIGHLIGHTS, Highlight, HighlightedPackage};

/// Order of a list of repositories.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RepositoryOrder {
    /// Hosted repositories first, and those with the latest publish first.
    LastPublish,
    Downloads,
    /// Largest total size of files first.
    Bytes,
}

impl RepositoryOrder {
    fn sql(self) -> &'static str {
        match self {
            RepositoryOrder::LastPublish => {
                "CASE WHEN r.kind = 'hosted' THEN 1 ELSE 0 END DESC, COALESCE(u.last_published_at, 0) DESC"
            }
            RepositoryOrder::Downloads => "u.downloads DESC",
            RepositoryOrder::Bytes => "u.bytes DESC",
        }
    }
}

/// A repository in a list by activity or size.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RankedRepository {
    pub id: RepositoryId,
    pub name: String,
    pub format: String,
    pub kind: String,
    pub usage: RepositoryUsage,
}

/// Counters of all repositories of an organization together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RepositoryTotals {
    pub repositories: u64,
    /// Total bytes of their files, each path once.
    pub bytes: u64,
    pub packages: u64,
    pub versions: u64,
    pub downloads: u64,
}

const TOTALS: &str = "SELECT COUNT(*) AS repositories, CAST(COALESCE(SUM(u.bytes), 0) AS BIGINT) AS bytes, \
    CAST(COALESCE(SUM(u.packages), 0) AS BIGINT) AS packages, CAST(COALESCE(SUM(u.versions), 0) AS BIGINT) AS versions, \
    CAST(COALESCE(SUM(u.downloads), 0) AS BIGINT) AS downloads FROM repositories r \
    JOIN repository_usage u ON u.repository = r.id WHERE r.organization = $1 AND r.deleted_at IS NULL";

impl Store {
    /// At most `limit` readable repositories of the organization in this order.
    #[boxed]
    pub async fn ranked_repositories(
        &self,
        organization: OrganizationId,
        readable: &Readable,
        order: RepositoryOrder,
        limit: u32,
    ) -> Result<Vec<RankedRepository>, StoreError> {
        let mut values = values![organization.0, i64::from(limit)];
        let readable = match (readable.all, readable.these.is_empty()) {
            (true, _) => String::new(),
            (false, true) => " AND r.public = 1".to_owned(),
            (false, false) => {
                format!(" AND (r.public = 1 OR r.id IN ({}))", numbered(&readable.these, &mut values))
            }
        };
        let sql = format!(
            "SELECT r.id, r.name, r.format, r.kind, {COUNTERS} FROM repositories r \
             JOIN repository_usage u ON u.repository = r.id WHERE r.organization = $1 AND r.deleted_at IS NULL{readable} \
             ORDER BY {}, r.id DESC LIMIT $2",
            order.sql()
        );
        let rows = self.inner.db.fetch(sql, values).await?;
        rows.iter().map(repository).collect()
    }

    /// Counters of all repositories of the organization together.
    #[boxed]
    pub async fn repository_totals(
        &self,
        organization: OrganizationId,
    ) -> Result<RepositoryTotals, StoreError> {
        let row = self.inner.db.fetch_one(TOTALS, values![organization.0]).await?;
        let Some(row) = row else { return Ok(RepositoryTotals::default()) };
        let mut columns = row.columns();
        Ok(RepositoryTotals {
            repositories: columns.unsigned("repositories")?,
            bytes: columns.unsigned("bytes")?,
            packages: columns.unsigned("packages")?,
            versions: columns.unsigned("versions")?,
            downloads: columns.unsigned("downloads")?,
        })
    }
}

/// Adds the ids to the values and returns their placeholders.
fn numbered(ids: &[RepositoryId], values: &mut Vec<Value>) -> String {
    let first = values.len() + 1;
    values.extend(ids.iter().map(|id| Value::from(id.0)));
    let names: Vec<String> = (first..=values.len()).map(|at| format!("${at}")).collect();
    names.join(",")
}

fn repository(row: &Row) -> Result<RankedRepository, StoreError> {
    let mut columns = row.columns();
    Ok(RankedRepository {
        id: RepositoryId(columns.int("id")?),
        name: columns.text("name")?,
        format: columns.text("format")?,
        kind: columns.text("kind")?,
        usage: counters(row)?,
    })
}
