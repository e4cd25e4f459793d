//! What can be set for each repository.

use packhouse_sdk::{Error, Repository};
use serde::Deserialize;

/// Those of the host's settings that this format heeds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    redeploy: Redeploy,
    /// Whether the name of a deleted file may be used again.
    pub(crate) republish_deleted: bool,
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

    /// Whether a file that is there may be sent again with the same bytes.
    pub(crate) fn same_bytes_pass(&self) -> bool {
        self.redeploy == Redeploy::Identical
    }
}
