//! What can be set for each repository.

use packhouse_sdk::{Error, Repository};
use serde::Deserialize;

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Redeploy {
    /// It is refused.
    #[default]
    Deny,
    /// The same bytes are accepted, and change nothing.
    Identical,
}

#[derive(Deserialize)]
struct Settings {
    #[serde(default)]
    redeploy: Redeploy,
}

impl Redeploy {
    /// As the repository has it.
    pub(crate) fn of(repository: &Repository) -> Result<Self, Error> {
        repository.settings::<Settings>().map(|settings| settings.redeploy)
    }
}
