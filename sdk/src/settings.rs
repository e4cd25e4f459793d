//! The settings that a repository of any format has, as far as a plugin heeds them. A format's own are read beside them, by
//! [`Repository::settings`].

use crate::{Error, Repository};
use serde::Deserialize;

/// What becomes of a file that is put again where one is there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redeploy {
    /// It is refused.
    #[default]
    Deny,
    /// The same bytes are accepted, and change nothing.
    Identical,
}

/// A repository's settings. Where the host does not say one, its default stands.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// What becomes of a file that is there already.
    pub redeploy: Redeploy,
    /// Whether the name or number of what was deleted may be used again.
    pub republish_deleted: bool,
    /// Whether what nothing points to any more stays.
    pub keep_untagged: bool,
    /// A proxy's: its upstream's address.
    pub upstream: Option<String>,
    /// Bytes of a file that the operator allows; none where the format's own bound stands.
    pub max_file_bytes: Option<u64>,
    /// A proxy's: whether a policy judges its versions by what is signed of them. Ask the upstream for that before a file of one is
    /// fetched, and state it; where it is asked for nothing else by it, leave it out otherwise.
    pub judged_by_provenance: bool,
    /// A proxy's: whether any policy judges its versions. Then each file that is fetched of it names its version.
    pub judged_by_policies: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            redeploy: Redeploy::Deny,
            republish_deleted: false,
            keep_untagged: true,
            upstream: None,
            max_file_bytes: None,
            judged_by_provenance: false,
            judged_by_policies: false,
        }
    }
}

impl Settings {
    /// As the repository has them.
    ///
    /// # Errors
    /// [`Error::Other`] when the host's are of other types.
    pub fn of(repository: &Repository) -> Result<Self, Error> {
        repository.settings()
    }

    /// Bytes that a file may have: as many as the operator allows, else `format_limit`.
    #[must_use]
    pub fn file_limit(&self, format_limit: u64) -> u64 {
        self.max_file_bytes.unwrap_or(format_limit)
    }
}

#[cfg(test)]
mod tests {
    use super::Settings;

    #[test]
    fn defaults_are_the_hosts() {
        let settings: Settings = serde_json::from_str(r#"{"public": true, "min_release_age_s": 0}"#).unwrap();
        assert_eq!(settings, Settings::default());
        assert!(settings.keep_untagged);
        assert_eq!(settings.file_limit(7), 7);
        let settings: Settings = serde_json::from_str(r#"{"max_file_bytes": 3}"#).unwrap();
        assert_eq!(settings.file_limit(7), 3);
    }
}
