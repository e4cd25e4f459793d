//! What can be set for a repository of this format alone.

use packhouse_sdk::{Error, Repository};
use serde::Deserialize;

/// The name of the setting.
pub(crate) const LEGACY_NAMES: &str = "legacy_names";

/// Whether a package may be published under a name that npm's rule leaves to packages that have it already.
///
/// # Errors
/// [`Error::Other`] when the host's are not as this format knows them.
pub(crate) fn allows_legacy_names(repository: &Repository) -> Result<bool, Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Own {
        legacy_names: bool,
    }
    repository.settings::<Own>().map(|own| own.legacy_names)
}
