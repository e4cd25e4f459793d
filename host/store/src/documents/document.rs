//! A document as it comes with a commit, and its bounds.

use crate::digest::Sha256;

/// Documents of one version: what comes beyond is not known here.
pub const MAX_DOCUMENTS: u32 = 64;
/// Bytes of a form, and of a media type.
pub const MAX_FORM_BYTES: usize = 200;

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
