//! One version of a package with all that is known of it.

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
/// Of these digests those of damaged blobs that a record of the repository names.
pub(crate) const DAMAGED: [&str; 2] = [
    "WITH wanted (repository, sha256) AS (VALUES ",
    ") SELECT b.sha256 FROM wanted JOIN blobs b ON b.sha256 = wanted.sha256 WHERE b.damaged_at IS NOT NULL \
      AND EXISTS (SELECT 1 FROM record_blobs n WHERE n.blob = b.id AND n.repository = wanted.repository)",
];

/// One version of a package with all that is known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionDetails {
    /// What is shown of it, with its files by path and its time filled in.
    pub version: Version,
    /// Who showed it first; empty where nobody knows, as of what a proxy found.
    pub published_by: String,
    /// How often it was fetched.
    pub downloads: u64,
    /// When a file of it was last fetched, in ms since 1970.
    pub last_downloaded_at: Option<i64>,
    /// How often each file was fetched, by its path.
    pub file_downloads: HashMap<String, u64>,
    /// The paths of files whose bytes a read or a scrub found missing or damaged, and that nobody has sent again since.
    pub damaged_files: HashSet<String>,
}

impl Store {
    /// One version of a package; none where it is not shown.
    #[boxed]
    pub async fn version_details(
        &self,
        repository: RepositoryId,
        name: &str,
        number: &str,
    ) -> Result<Option<VersionDetails>, StoreError> {
        let values = || values![repository.0, name, number];
        let Some(row) = self.inner.db.find(VERSION, values()).await? else { return Ok(None) };
        let mut shown = version(name, &row)?;
        let mut file_downloads = HashMap::new();
        for row in &self.inner.db.fetch(FILES, values()).await? {
            let (_, file) = file(row)?;
            file_downloads.insert(file.path.clone(), row.columns().unsigned("downloads")?);
            shown.files.push(file);
        }
        let damaged_files = self.damaged_files(repository, &shown.files).await?;
        let mut columns = row.columns();
        Ok(Some(VersionDetails {
            version: shown,
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
        let wanted = digests.map(|Sha256(sha256)| [Value::from(repository.0), Value::from(&sha256)]);
        let [before, after] = DAMAGED;
        let found = self.inner.db.fetch_multi_row(MultiRow::new(before, wanted.collect(), after)).await?;
        let digest = |row: &Row| Ok(Sha256(row.columns().hash("sha256")?).digest());
        let damaged: HashSet<Digest> = found.iter().map(digest).collect::<Result<_, StoreError>>()?;
        let files = files.iter().filter(|file| damaged.contains(&file.digest));
        Ok(files.map(|file| file.path.clone()).collect())
    }
}
