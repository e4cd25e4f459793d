//! What people and policies see of a repository, the same for every format: package, version, file.

use std::collections::HashMap;

use crate::db::{Row, values};
use crate::digest::Digest;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

const VERSIONS: &str = "SELECT version, published, shown_at, summary, properties, state FROM versions \
    WHERE repository = $1 AND name = $2 ORDER BY COALESCE(published, shown_at) DESC, version DESC";
const FILES: &str = "SELECT version, path, digest, size FROM files WHERE repository = $1 AND name = $2 \
    ORDER BY version, path";

/// A version of a package, or what changed of it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Version {
    /// The package, in the format's own spelling.
    pub name: String,
    /// The version.
    pub version: String,
    /// Files to add, or to replace by path; one that is not named stays.
    pub files: Vec<VersionFile>,
    /// When it came into the world, in ms since 1970; none: when it is first shown.
    pub published: Option<u64>,
    /// One line for a list.
    pub summary: String,
    /// The format's own facts as name and value.
    pub properties: Vec<(String, String)>,
    /// Empty, or why it should not be used: `yanked`, `deprecated`, `withdrawn`.
    pub state: String,
}

/// A file of a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionFile {
    /// Its path in the repository.
    pub path: String,
    /// Of its bytes.
    pub digest: Digest,
    /// How many bytes.
    pub size: u64,
}

/// One file of a version, whatever else is shown of that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShownFile {
    /// The package.
    pub name: String,
    /// The version; one that is not shown yet is from now on.
    pub version: String,
    /// Its path in the repository.
    pub path: String,
    /// Of its bytes.
    pub digest: Digest,
    /// How many bytes.
    pub size: u64,
}

/// What policies ask of a version.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ShownState {
    /// When it came into the world, in ms since 1970, as far as the format said so.
    pub published: Option<u64>,
    /// As [`Version::state`].
    pub state: String,
}

/// A change of what is shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CatalogChange {
    /// Shows a version, or changes what is shown of it.
    Show(Version),
    /// Shows a file, and changes nothing else of its version.
    ShowFile(ShownFile),
    /// No longer shows a version, with all its files. One that is not shown is no fault.
    Hide {
        /// The package.
        name: String,
        /// The version.
        version: String,
    },
    /// No longer shows one file; a version without a file left is no longer shown either.
    HideFile {
        /// The package.
        name: String,
        /// The version.
        version: String,
        /// The file.
        path: String,
    },
}

impl Store {
    /// What policies ask of a version; nothing where it is not shown.
    pub async fn shown_state(
        &self,
        repository: RepositoryId,
        name: &str,
        version: &str,
    ) -> Result<ShownState, StoreError> {
        let sql =
            "SELECT published, state FROM versions WHERE repository = $1 AND name = $2 AND version = $3";
        let row = self.inner.db.fetch_one(sql, values![repository.0, name, version]).await?;
        row.map_or(Ok(ShownState::default()), |row| {
            let mut columns = row.columns();
            let published = columns.opt_int("published")?.and_then(|at| u64::try_from(at).ok());
            Ok(ShownState { published, state: columns.text("state")? })
        })
    }

    /// What is shown of a package, the newest version first, each with its files by path and its time filled in.
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

fn version(name: &str, row: &Row) -> Result<Version, StoreError> {
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

fn file(row: &Row) -> Result<(String, VersionFile), StoreError> {
    let mut columns = row.columns();
    let (version, path, digest) = (columns.text("version")?, columns.text("path")?, columns.text("digest")?);
    let digest =
        digest.parse().map_err(|_| StoreError::Corrupt(format!("the digest of {path}: {digest:?}")))?;
    Ok((version, VersionFile { path, digest, size: columns.unsigned("size")? }))
}
