//! Repository settings of this format.

use packhouse_sdk::{Error, Repository};
use serde::Deserialize;

/// Name of the setting that allows names that npm reserves for existing packages.
pub(crate) const LEGACY_NAMES: &str = "legacy_names";

/// Returns true if packages may be published with names that npm reserves for existing packages.
///
/// # Errors
/// [`Error::Other`] if the settings from the host are invalid.
pub(crate) fn allows_legacy_names(repository: &Repository) -> Result<bool, Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct NpmSettings {
        legacy_names: bool,
    }
    repository.settings::<NpmSettings>().map(|settings| settings.legacy_names)
}
