//! A document as part of a commit, and its bounds.

use crate::digest::Sha256;

/// Maximum number of documents of one version. The store does not record further ones.
pub const MAX_DOCUMENTS: u32 = 64;
/// Maximum length of a form, and of a media type.
pub const MAX_FORM_BYTES: usize = 200;

/// A document of a version. A commit drops it if its version is not in the catalog afterwards. A
/// document of the same version, path, source and title replaces the earlier one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionDocument {
    pub name: String,
    pub version: String,
    /// File of the version that the document is about; empty for the whole version.
    pub path: String,
    /// Path in the repository of the document, or of the file that contains it. If a commit hides
    /// this file of the version, it also removes the document.
    pub source: String,
    pub title: String,
    /// Language of the document: `cyclonedx`, `spdx`.
    pub form: String,
    pub media_type: String,
    /// SHA-256 of the bytes, which are a blob of the repository.
    pub sha256: Sha256,
    /// Size of the document in bytes.
    pub size: u64,
}
