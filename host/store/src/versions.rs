//! Reads of a package's catalog entries.

use std::collections::HashMap;

use crate::boxed;
use crate::catalog::{CatalogState, Version, VersionFile};
use crate::db::{Row, values};
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

const VERSIONS: &str = "SELECT version, published, shown_at, summary, properties, state FROM versions \
    WHERE repository = $1 AND name = $2 ORDER BY COALESCE(published, shown_at) DESC, version DESC";
const FILES: &str = "SELECT version, path, digest, size FROM files WHERE repository = $1 AND name = $2 \
    ORDER BY version, path";

impl Store {
    /// Facts of a version that policies need; empty if it is not in the catalog.
    #[boxed]
    pub async fn catalog_state(
        &self,
        repository: RepositoryId,
        name: &str,
        version: &str,
    ) -> Result<CatalogState, StoreError> {
        let sql =
            "SELECT published, state FROM versions WHERE repository = $1 AND name = $2 AND version = $3";
        let row = self.inner.db.find(sql, values![repository.0, name, version]).await?;
        row.map_or(Ok(CatalogState::default()), |row| {
            let mut columns = row.columns();
            let published = columns.opt_int("published")?.and_then(|at| u64::try_from(at).ok());
            Ok(CatalogState { published, state: columns.text("state")? })
        })
    }

    /// Versions of a package, the newest first, each with files ordered by path. The publication
    /// time is always set.
    #[boxed]
    pub async fn versions(&self, repository: RepositoryId, name: &str) -> Result<Vec<Version>, StoreError> {
        let values = || values![repository.0, name];
        let mut files: HashMap<String, Vec<VersionFile>> = HashMap::new();
        for row in &self.inner.db.fetch(FILES, values()).await? {
            let (version, file) = file(row)?;
            files.entry(version).or_default().push(file);
        }
        let rows = self.inner.db.fetch(VERSIONS, values()).await?;
        rows.iter()
            .map(|row| {
                let mut version = version(name, row)?;
                version.files = files.remove(&version.version).unwrap_or_default();
                Ok(version)
            })
            .collect()
    }
}

pub(crate) fn version(name: &str, row: &Row) -> Result<Version, StoreError> {
    let mut columns = row.columns();
    let version = columns.text("version")?;
    let (published, shown_at) = (columns.opt_int("published")?, columns.int("shown_at")?);
    let (summary, properties, state) =
        (columns.text("summary")?, columns.text("properties")?, columns.text("state")?);
    let properties = serde_json::from_str(&properties)
        .map_err(|problem| StoreError::Corrupt(format!("properties of {name} {version}: {problem}")))?;
    let published = u64::try_from(published.unwrap_or(shown_at)).ok();
    Ok(Version { name: name.to_owned(), version, files: Vec::new(), published, summary, properties, state })
}

pub(crate) fn file(row: &Row) -> Result<(String, VersionFile), StoreError> {
    let mut columns = row.columns();
    let (version, path, digest) = (columns.text("version")?, columns.text("path")?, columns.text("digest")?);
    let digest =
        digest.parse().map_err(|_| StoreError::Corrupt(format!("the digest of {path}: {digest:?}")))?;
    Ok((version, VersionFile { path, digest, size: columns.unsigned("size")? }))
}
