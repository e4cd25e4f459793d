//! What can be set for a repository.

use packhouse_sdk::{Failure, Repository, glob_match};
use serde::Deserialize;

/// A repository's settings, as far as this format reads them.
#[derive(Debug, Deserialize)]
pub(crate) struct Settings {
    /// Whether a manifest stays when its last tag is gone.
    #[serde(default = "yes")]
    pub(crate) keep_untagged: bool,
    /// A proxy's: how old a manifest must be, in seconds.
    #[serde(default)]
    min_release_age_s: u64,
    /// Patterns of names that may be younger.
    #[serde(default)]
    min_release_age_except: Vec<String>,
    /// `auto`, `always` or `never`.
    #[serde(default)]
    pub(crate) library_prefix: String,
    /// A proxy's.
    #[serde(default)]
    pub(crate) upstream: Option<String>,
}

fn yes() -> bool {
    true
}

impl Settings {
    /// Of this repository.
    ///
    /// # Errors
    /// An internal failure when the host's are not as this format knows them.
    pub(crate) fn of(repository: &Repository) -> Result<Self, Failure> {
        Ok(repository.settings()?)
    }

    /// Whether an image's manifests are served from a certain age on. The host judges that of what is shown as a version.
    pub(crate) fn must_be_old(&self, name: &str) -> bool {
        self.min_release_age_s > 0
            && !self.min_release_age_except.iter().any(|pattern| glob_match(pattern, name))
    }
}
