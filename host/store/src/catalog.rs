//! What people and policies see of a repository, the same for every format: package, version, file.

use crate::attestations::statement::SignedStatement;
use crate::digest::{Digest, Sha256};
use crate::documents::document::VersionDocument;

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
    /// Keeps a signed statement about a version that is shown.
    Attest(SignedStatement),
    /// Knows a document that came with a version that is shown.
    Document(VersionDocument),
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

impl CatalogChange {
    /// The package that it is about.
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

    /// Of the files that it shows, as far as their digest is a SHA-256.
    pub(crate) fn sha256s(&self) -> impl Iterator<Item = Sha256> {
        let (files, file) = match self {
            CatalogChange::Show(version) => (version.files.as_slice(), None),
            CatalogChange::ShowFile(file) => (&[][..], Some(&file.digest)),
            _ => (&[][..], None),
        };
        files.iter().map(|file| &file.digest).chain(file).filter_map(Digest::sha256)
    }
}
