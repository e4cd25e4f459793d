//! What can be set for each repository.

use packhouse_sdk::{Error, Repository};
use serde::Deserialize;

/// Those settings that matter to the format. A host that does not know one leaves it out.
#[derive(Debug, Deserialize)]
pub(crate) struct Settings {
    /// Whether a version that was removed may be published again.
    #[serde(default)]
    pub(crate) republish_deleted: bool,
}

impl Settings {
    /// As the repository has them.
    pub(crate) fn of(repository: &Repository) -> Result<Self, Error> {
        repository.settings()
    }
}
