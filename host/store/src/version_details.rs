//! Details of one version of a package.

use std::collections::{HashMap, HashSet};

use crate::boxed;
use crate::catalog::{Version, VersionFile};
use crate::db::{MultiRow, Row, Value, values};
use crate::digest::{Digest, Sha256};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;
use crate::versions::{file, version};

const VERSION: &str = "SELECT version, published, shown_at, summary, properties, state, published_by, downloads, \
    last_downloaded_at FROM versions WHERE repository = $1 AND name = $2 AND version = $3";
const FILES: &str = "SELECT version, path, digest, size, downloads FROM files \
    WHERE repository = $1 AND name = $2 AND version = $3 ORDER BY path";
/// Selects, among these digests, the ones of damaged blobs that the repository's records name.
pub(crate) const DAMAGED: [&str; 2] = [
    "WITH requested (repository, sha256) AS (VALUES ",
    ") SELECT b.sha256 FROM requested JOIN blobs b ON b.sha256 = requested.sha256 WHERE b.damaged_at IS NOT NULL \
      AND EXISTS (SELECT 1 FROM record_blobs n WHERE n.blob = b.id AND n.repository = requested.repository)",
];

/// A version of a package with all its details.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionDetails {
    /// Catalog entry with files ordered by path. Its publication time is always set.
    pub version: Version,
    /// Member who first published the version; empty if unknown, as for versions of a proxy.
    pub published_by: String,
    /// Number of downloads of the version.
    pub downloads: u64,
    /// Time of the last download of a file, in ms since 1970.
    pub last_downloaded_at: Option<i64>,
    /// Number of downloads of each file, by path.
    pub file_downloads: HashMap<String, u64>,
    /// Paths of files whose bytes a read or a scrub found missing or damaged, and that were not
    /// uploaded again since.
    pub damaged_files: HashSet<String>,
}

impl Store {
    /// Details of one version; `None` if it is not in the catalog.
    #[boxed]
    pub async fn version_details(
        &self,
        repository: RepositoryId,
        name: &str,
        number: &str,
    ) -> Result<Option<VersionDetails>, StoreError> {
        let values = || values![repository.0, name, number];
        let Some(row) = self.inner.db.find(VERSION, values()).await? else { return Ok(None) };
        let mut version = version(name, &row)?;
        let mut file_downloads = HashMap::new();
        for row in &self.inner.db.fetch(FILES, values()).await? {
            let (_, file) = file(row)?;
            file_downloads.insert(file.path.clone(), row.columns().unsigned("downloads")?);
            version.files.push(file);
        }
        let damaged_files = self.damaged_files(repository, &version.files).await?;
        let mut columns = row.columns();
        Ok(Some(VersionDetails {
            version,
            published_by: columns.text("published_by")?,
            downloads: columns.unsigned("downloads")?,
            last_downloaded_at: columns.opt_int("last_downloaded_at")?,
            file_downloads,
            damaged_files,
        }))
    }

    async fn damaged_files(
        &self,
        repository: RepositoryId,
        files: &[VersionFile],
    ) -> Result<HashSet<String>, StoreError> {
        let digests = files.iter().filter_map(|file| file.digest.sha256());
        let rows = digests.map(|Sha256(sha256)| [Value::from(repository.0), Value::from(&sha256)]);
        let [before, after] = DAMAGED;
        let found = self.inner.db.fetch_multi_row(MultiRow::new(before, rows.collect(), after)).await?;
        let digest = |row: &Row| Ok(Sha256(row.columns().hash("sha256")?).digest());
        let damaged: HashSet<Digest> = found.iter().map(digest).collect::<Result<_, StoreError>>()?;
        let files = files.iter().filter(|file| damaged.contains(&file.digest));
        Ok(files.map(|file| file.path.clone()).collect())
    }
}
