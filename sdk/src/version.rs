//! What people and policies see of a repository, the same for every format.

use crate::Digest;

/// A version of a package, as browsing, search, retention and policies see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version {
    /// The package, in the format's own spelling, normalised: `@scope/name`, `org.example:lib`, `team/app`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Files to add, or to replace by path; a file that was shown already and is not named here stays.
    pub files: Vec<File>,
    /// When it came into the world (ms since 1970), where a proxy's upstream says so; else when it is first shown.
    pub published: Option<u64>,
    /// One line for a list.
    pub summary: String,
    /// The format's own facts as name and value.
    pub properties: Vec<(String, String)>,
    /// Empty, or why it should not be used: `yanked`, `deprecated`, `withdrawn`, with a reason in the properties.
    pub state: String,
}

impl Version {
    /// A version with nothing else said of it.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }

    /// One more file: its path, digest and size in bytes.
    pub fn file(mut self, path: impl Into<String>, digest: Digest, size: u64) -> Self {
        self.files.push(File { path: path.into(), digest, size });
        self
    }

    /// One line for a list.
    pub fn summary(mut self, summary: impl Into<String>) -> Self {
        self.summary = summary.into();
        self
    }

    /// One of the format's own facts.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push((name.into(), value.into()));
        self
    }

    /// Why it should not be used.
    pub fn state(mut self, state: impl Into<String>) -> Self {
        self.state = state.into();
        self
    }
}

/// A file of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// As it stands below the repository's address.
    pub path: String,
    /// Of its bytes.
    pub digest: Digest,
    /// Bytes.
    pub size: u64,
}

/// Which version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionId {
    /// The package's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

impl VersionId {
    /// The version of this package.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }
}

/// A page of what a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    /// Names of packages, the best match first.
    pub names: Vec<String>,
    /// How many match, of which `names` is a page.
    pub total: u64,
}
