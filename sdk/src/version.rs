//! Versions as people and policies see them, in one form for all formats.

use crate::Digest;

/// Version of a package, as browsing, search, retention and policies use it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// Name of the package, in the format's normalised spelling: `@scope/name`, `org.example:lib`,
    /// `team/app`.
    pub name: String,
    /// Version number or name.
    pub version: String,
    /// Files to add. A file replaces a listed file of the same path. Other listed files stay.
    pub files: Vec<File>,
    /// Publication time as Unix time in ms, if a proxy's upstream states it. `None` stands for the
    /// time of the first listing.
    pub published: Option<u64>,
    /// Summary in one line.
    pub summary: String,
    /// Facts of the format as names and values.
    pub properties: Vec<(String, String)>,
    /// Empty, or a reason not to use the version: `yanked`, `deprecated` or `withdrawn`, with
    /// details in the properties.
    pub state: String,
}

impl Version {
    /// Creates a version without any details.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }

    /// Adds a file: its path, digest and size in bytes.
    pub fn file(mut self, path: impl Into<String>, digest: Digest, size: u64) -> Self {
        self.files.push(File { path: path.into(), digest, size });
        self
    }

    /// Sets the summary in one line.
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = summary.into();
        self
    }

    /// Adds a fact of the format.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// Sets the reason not to use the version.
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.state = state.into();
        self
    }
}

/// File of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Path below the repository's address.
    pub path: String,
    /// Digest of the bytes.
    pub digest: Digest,
    /// Size in bytes.
    pub size: u64,
}

/// Name of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionId {
    /// Name of the package.
    pub name: String,
    /// Version number or name.
    pub version: String,
}

impl VersionId {
    /// Creates the id of this package's version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }
}

/// Page of search results.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Names of packages, the best match first.
    pub names: Vec<String>,
    /// Number of all matches; `names` is a page of them.
    pub total: u64,
}
