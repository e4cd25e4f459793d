//! The catalog of a repository for people and policies: packages, versions and files. All formats
//! share this model.

use crate::attestations::statement::SignedStatement;
use crate::digest::{Digest, Sha256};
use crate::documents::document::VersionDocument;

/// A version of a package, or a change of it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Version {
    /// Package name in the format's own spelling.
    pub name: String,
    pub version: String,
    /// Files to add, or to replace by path. Other files of the version stay.
    pub files: Vec<VersionFile>,
    /// Publication time, in ms since 1970; `None` for the time when it is first listed.
    pub published: Option<u64>,
    /// Summary of one line for lists.
    pub summary: String,
    /// Format-specific properties as name and value.
    pub properties: Vec<(String, String)>,
    /// Empty, or the reason not to use the version: `yanked`, `deprecated`, `withdrawn`.
    pub state: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionFile {
    /// Path of the file in the repository.
    pub path: String,
    pub digest: Digest,
    /// Size of the file in bytes.
    pub size: u64,
}

/// One file of a version, independent of the rest of the version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CatalogFile {
    pub name: String,
    /// The version; it is created in the catalog if necessary.
    pub version: String,
    /// Path of the file in the repository.
    pub path: String,
    pub digest: Digest,
    /// Size of the file in bytes.
    pub size: u64,
}

/// Facts of a version that policies need.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct CatalogState {
    /// Publication time in ms since 1970, if the format stated one.
    pub published: Option<u64>,
    /// State of the version, as in [`Version::state`].
    pub state: String,
}

/// A change of the catalog.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CatalogChange {
    /// Adds or changes a version.
    Show(Version),
    /// Adds a file and leaves the rest of its version unchanged.
    ShowFile(CatalogFile),
    /// Adds a signed statement about a listed version.
    Attest(SignedStatement),
    /// Adds a document of a listed version.
    Document(VersionDocument),
    /// Removes a version with all its files. A missing version is not an error.
    Hide { name: String, version: String },
    /// Removes one file. A version without files is removed too.
    HideFile { name: String, version: String, path: String },
}

impl CatalogChange {
    /// Package that the change is about.
    #[must_use]
    pub fn package(&self) -> &str {
        match self {
            CatalogChange::Show(version) => &version.name,
            CatalogChange::ShowFile(file) => &file.name,
            CatalogChange::Attest(statement) => &statement.name,
            CatalogChange::Document(document) => &document.name,
            CatalogChange::HideFile { name, .. } | CatalogChange::Hide { name, .. } => name,
        }
    }

    /// SHA-256 digests of the files that the change adds. Files with another digest are skipped.
    pub(crate) fn sha256s(&self) -> impl Iterator<Item = Sha256> {
        let (files, file) = match self {
            CatalogChange::Show(version) => (version.files.as_slice(), None),
            CatalogChange::ShowFile(file) => (&[][..], Some(&file.digest)),
            _ => (&[][..], None),
        };
        files.iter().map(|file| &file.digest).chain(file).filter_map(Digest::sha256)
    }
}
