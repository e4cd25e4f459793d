//! What can be set for each repository.

use crate::FILE_LIMIT;
use crate::name::Name;
use packhouse_sdk::{Error, Repository, glob_match};
use serde::Deserialize;

/// The format's own.
pub(crate) const LEGACY_NAMES: &str = "legacy_names";

/// Those settings that matter to the format. A host that does not know one leaves it out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    /// Whether a version that was removed may be published again.
    pub(crate) republish_deleted: bool,
    /// Seconds for which a proxy does not offer what was published upstream.
    pub(crate) min_release_age_s: u64,
    /// Names for which that does not hold.
    min_release_age_except: Vec<String>,
    /// Whether a proxy still offers what it has fetched when it vanishes upstream.
    pub(crate) keep_withdrawn: bool,
    /// Whether a package may be published under a name that npm's rule leaves to packages that have it already.
    pub(crate) legacy_names: bool,
    /// Bytes of a tarball that the operator allows.
    max_file_bytes: Option<u64>,
}

impl Settings {
    /// As the repository has them.
    pub(crate) fn of(repository: &Repository) -> Result<Self, Error> {
        repository.settings()
    }

    /// Bytes that a tarball may have.
    pub(crate) fn file_limit(&self) -> u64 {
        self.max_file_bytes.unwrap_or(FILE_LIMIT)
    }

    /// How old a version of this package has to be, in ms; none for any age.
    pub(crate) fn min_age(&self, name: &Name) -> Option<u64> {
        let excepted = self.min_release_age_except.iter().any(|pattern| glob_match(pattern, name.as_str()));
        (self.min_release_age_s > 0 && !excepted).then(|| self.min_release_age_s.saturating_mul(1000))
    }
}
