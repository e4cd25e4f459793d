//! Facts of versions that retention policies need, in pages.

use crate::boxed;
use crate::db::{Row, Value, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Columns to read of a version. The expression for the time must equal the one in the index.
const COLUMNS: &str = "v.name, v.version, COALESCE(v.published, v.shown_at) AS at, v.shown_at, v.updated_at, v.last_downloaded_at, \
    (SELECT CAST(COALESCE(SUM(f.size), 0) AS BIGINT) FROM files f WHERE f.repository = v.repository AND f.name = v.name \
     AND f.version = v.version) AS bytes FROM versions v";
const ORDER: &str = "ORDER BY v.name DESC, COALESCE(v.published, v.shown_at) DESC, v.version DESC";

/// A version with the facts that policies need.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JudgedVersion {
    pub name: String,
    pub version: String,
    /// Publication time in ms since 1970.
    pub published_at: i64,
    /// Time of the last download, in ms since 1970.
    pub last_downloaded_at: Option<i64>,
    /// Total size of its files in bytes.
    pub bytes: u64,
    /// Time when it was first in the catalog, in ms since 1970.
    pub shown_at: i64,
    /// Time of its last catalog change, in ms since 1970.
    pub updated_at: i64,
}

/// Position at which a page ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JudgedPlace {
    name: String,
    at: i64,
    version: String,
}

impl JudgedPlace {
    /// Position before the latest version of a package.
    #[must_use]
    pub fn top_of(name: &str) -> JudgedPlace {
        JudgedPlace { name: name.to_owned(), at: i64::MAX, version: String::new() }
    }
}

impl JudgedVersion {
    /// Position after which the next page begins.
    #[must_use]
    pub fn place(&self) -> JudgedPlace {
        JudgedPlace { name: self.name.clone(), at: self.published_at, version: self.version.clone() }
    }
}

impl Store {
    /// Versions of a repository, grouped by package, the latest of each first. At most `limit`,
    /// beginning after the position `after`. A page with fewer than `limit` versions is the last
    /// one.
    #[boxed]
    pub async fn judged_versions(
        &self,
        repository: RepositoryId,
        after: Option<&JudgedPlace>,
        limit: u32,
    ) -> Result<Vec<JudgedVersion>, StoreError> {
        let limit = i64::from(limit);
        let Some(JudgedPlace { name, at, version }) = after else {
            let sql = format!("SELECT {COLUMNS} WHERE v.repository = $1 {ORDER} LIMIT $2");
            return self.judged(sql, values![repository.0, limit]).await;
        };
        // The rest of the package and the other packages are two ranges of the index.
        let sql = format!(
            "SELECT {COLUMNS} WHERE v.repository = $1 AND v.name = $2 AND COALESCE(v.published, v.shown_at) <= $3 \
             AND (COALESCE(v.published, v.shown_at) < $3 OR v.version < $4) {ORDER} LIMIT $5"
        );
        let values = values![repository.0, name.as_str(), *at, version.as_str(), limit];
        let mut page = self.judged(sql, values).await?;
        let left = limit.saturating_sub(page.len() as i64);
        if left > 0 {
            let sql = format!("SELECT {COLUMNS} WHERE v.repository = $1 AND v.name < $2 {ORDER} LIMIT $3");
            page.extend(self.judged(sql, values![repository.0, name.as_str(), left]).await?);
        }
        Ok(page)
    }

    /// One version; `None` if it is not in the catalog.
    #[boxed]
    pub async fn judged_version(
        &self,
        repository: RepositoryId,
        name: &str,
        version: &str,
    ) -> Result<Option<JudgedVersion>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE v.repository = $1 AND v.name = $2 AND v.version = $3");
        Ok(self.judged(sql, values![repository.0, name, version]).await?.pop())
    }

    /// Versions whose catalog entry changed at this time or later, at most `limit`.
    #[boxed]
    pub async fn versions_since(
        &self,
        repository: RepositoryId,
        since: i64,
        limit: u32,
    ) -> Result<Vec<JudgedVersion>, StoreError> {
        let sql = format!("SELECT {COLUMNS} WHERE v.repository = $1 AND v.updated_at >= $2 LIMIT $3");
        self.judged(sql, values![repository.0, since, i64::from(limit)]).await
    }

    async fn judged(&self, sql: String, values: Vec<Value>) -> Result<Vec<JudgedVersion>, StoreError> {
        self.inner.db.fetch(sql, values).await?.iter().map(judged).collect()
    }
}

fn judged(row: &Row) -> Result<JudgedVersion, StoreError> {
    let mut columns = row.columns();
    Ok(JudgedVersion {
        name: columns.text("name")?,
        version: columns.text("version")?,
        published_at: columns.int("at")?,
        shown_at: columns.int("shown_at")?,
        updated_at: columns.int("updated_at")?,
        last_downloaded_at: columns.opt_int("last_downloaded_at")?,
        bytes: columns.unsigned("bytes")?,
    })
}
