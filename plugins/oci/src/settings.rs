//! The settings that only this format has.

use packhouse_sdk::{Error, Repository};
use serde::Deserialize;

/// The name of the setting.
pub(crate) const LIBRARY_PREFIX: &str = "library_prefix";

/// The rule that decides whether a proxy requests an image with a name of one part as
/// `library/IMAGE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LibraryPrefix {
    /// Adds `library/` if the upstream is Docker Hub.
    #[default]
    Auto,
    Always,
    Never,
}

impl LibraryPrefix {
    /// The setting of a repository.
    ///
    /// # Errors
    /// [`Error::Other`] if the repository's settings cannot be parsed.
    pub(crate) fn of(repository: &Repository) -> Result<Self, Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct OciSettings {
            library_prefix: LibraryPrefix,
        }
        repository.settings::<OciSettings>().map(|settings| settings.library_prefix)
    }
}
