//! Documents that came with versions and describe what those are made of: known with the version, and gone and back with it. Their bytes are
//! blobs that the format's records keep alive.

pub(crate) mod rows;

use crate::db::{Row, values};
use crate::digest::Sha256;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

/// Documents of one version: what comes beyond is not known here.
pub const MAX_DOCUMENTS: u32 = 64;
/// Bytes of a form, and of a media type.
pub const MAX_FORM_BYTES: usize = 200;

const OF_VERSION: &str = "SELECT name, version, path, source, title, form, media_type, digest, size FROM documents \
    WHERE repository = $1 AND name = $2 AND version = $3 ORDER BY path, source, title";

/// A document that came with a version. With a commit, one whose version is not shown then is not known here; one of the same version,
/// path, source and title takes the place of the earlier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionDocument {
    /// The package.
    pub name: String,
    /// The version.
    pub version: String,
    /// The file of the version that it is about; empty: the version.
    pub path: String,
    /// Where it came: a path in the repository, of it or of what carries it. Hidden as a file of the version, it takes the document with
    /// it.
    pub source: String,
    /// What it is called.
    pub title: String,
    /// In which language it is written: `cyclonedx`, `spdx`.
    pub form: String,
    /// Of its bytes.
    pub media_type: String,
    /// Of its bytes: a blob of the repository.
    pub sha256: Sha256,
    /// How many bytes.
    pub size: u64,
}

impl Store {
    /// The documents that came with a version, by the file that they are about.
    pub async fn documents_of(
        &self,
        repository: RepositoryId,
        name: &str,
        version: &str,
    ) -> Result<Vec<VersionDocument>, StoreError> {
        let rows = self.inner.db.fetch(OF_VERSION, values![repository.0, name, version]).await?;
        rows.iter().map(document).collect()
    }
}

fn document(row: &Row) -> Result<VersionDocument, StoreError> {
    let mut columns = row.columns();
    let digest: crate::digest::Digest = columns.text("digest")?.parse()?;
    let size = columns.int("size")?;
    Ok(VersionDocument {
        name: columns.text("name")?,
        version: columns.text("version")?,
        path: columns.text("path")?,
        source: columns.text("source")?,
        title: columns.text("title")?,
        form: columns.text("form")?,
        media_type: columns.text("media_type")?,
        sha256: digest.sha256().ok_or_else(|| StoreError::Corrupt(format!("a document of {digest}")))?,
        size: u64::try_from(size).map_err(|_| StoreError::Corrupt(format!("a document of {size} bytes")))?,
    })
}
