//! What can be set for a repository of this format alone.

use packhouse_sdk::{Error, Repository};
use serde::Deserialize;

/// The name of the setting.
pub(crate) const LIBRARY_PREFIX: &str = "library_prefix";

/// Whether an image of one part is asked for as `library/IMAGE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LibraryPrefix {
    /// Where the upstream is Docker Hub.
    #[default]
    Auto,
    Always,
    Never,
}

impl LibraryPrefix {
    /// As the repository has it.
    ///
    /// # Errors
    /// [`Error::Other`] when the host's are not as this format knows them.
    pub(crate) fn of(repository: &Repository) -> Result<Self, Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Own {
            library_prefix: LibraryPrefix,
        }
        repository.settings::<Own>().map(|own| own.library_prefix)
    }
}
