//! Documents that describe the contents of versions, such as SBOMs. The store records, deletes and
//! restores a document together with its version. The bytes of documents are blobs that the
//! format's records hold.

pub(crate) mod document;
pub(crate) mod rows;

pub use document::{MAX_DOCUMENTS, MAX_FORM_BYTES, VersionDocument};

use crate::boxed;
use crate::db::{Row, values};
use crate::digest::Digest;
use crate::error::StoreError;
use crate::ids::RepositoryId;
use crate::store::Store;

const OF_VERSION: &str = "SELECT name, version, path, source, title, form, media_type, digest, size FROM documents \
    WHERE repository = $1 AND name = $2 AND version = $3 ORDER BY path, source, title";

impl Store {
    /// Documents of a version, ordered by the file that they are about.
    #[boxed]
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
    let digest: Digest = columns.text("digest")?.parse()?;
    let size = columns.int("size")?;
    Ok(VersionDocument {
        name: columns.text("name")?,
        version: columns.text("version")?,
        path: columns.text("path")?,
        source: columns.text("source")?,
        title: columns.text("title")?,
        form: columns.text("form")?,
        media_type: columns.text("media_type")?,
        sha256: digest.sha256().ok_or_else(|| {
            StoreError::Corrupt(format!("a document has the digest {digest}, which is not SHA-256"))
        })?,
        size: u64::try_from(size)
            .map_err(|_| StoreError::Corrupt(format!("a document has the size {size}")))?,
    })
}
