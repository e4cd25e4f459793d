//! What can be set for each repository.

use crate::FILE_LIMIT;
use packhouse_sdk::{Error, Repository, glob_match};
use serde::Deserialize;

/// Those of the host's settings that this format heeds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    redeploy: Redeploy,
    /// Whether the name of a deleted file may be used again.
    pub(crate) republish_deleted: bool,
    /// A proxy's.
    pub(crate) upstream: Option<String>,
    /// Whether what the upstream has no longer is still offered.
    pub(crate) keep_withdrawn: bool,
    /// Seconds that have to pass before a new file of the upstream is offered, …
    pub(crate) min_release_age_s: u64,
    /// … but for these projects.
    min_release_age_except: Vec<String>,
    /// Bytes of a file that the operator allows.
    max_file_bytes: Option<u64>,
}

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Redeploy {
    /// It is refused.
    #[default]
    Deny,
    /// The same bytes are accepted, and change nothing.
    Identical,
}

impl Settings {
    /// As the repository has them.
    pub(crate) fn of(repository: &Repository) -> Result<Self, Error> {
        repository.settings()
    }

    /// Bytes that a file may have.
    pub(crate) fn file_limit(&self) -> u64 {
        self.max_file_bytes.unwrap_or(FILE_LIMIT)
    }

    /// How long ago a file of this project must have come into the world to be offered, in ms.
    pub(crate) fn min_age(&self, project: &str) -> u64 {
        let excepted = self.min_release_age_except.iter().any(|pattern| glob_match(pattern, project));
        if excepted { 0 } else { self.min_release_age_s.saturating_mul(1000) }
    }

    /// Whether a file that is there may be sent again with the same bytes.
    pub(crate) fn same_bytes_pass(&self) -> bool {
        self.redeploy == Redeploy::Identical
    }
}
