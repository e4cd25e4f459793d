//! Settings that repositories of every format have. [`Repository::settings`] reads the settings of
//! a format.

use crate::{Error, Repository};
use serde::Deserialize;

/// Rule for publishing a file that already exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redeploy {
    /// The file is refused.
    #[default]
    Deny,
    /// Identical bytes are accepted and change nothing; other bytes are refused.
    Identical,
}

/// Settings of a repository. A setting that the host does not send has its default value.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Rule for publishing a file that already exists.
    pub redeploy: Redeploy,
    /// True if a client may publish again under the name or version of a deleted item.
    pub republish_deleted: bool,
    /// True if the repository keeps items to which no tag points.
    pub keep_untagged: bool,
    /// Address of a proxy's upstream.
    pub upstream: Option<String>,
    /// Operator's limit for a file in bytes; `None` if only the format's own limit applies.
    pub max_file_bytes: Option<u64>,
    /// True if a policy judges a proxy's versions by signed statements. The plugin must then fetch
    /// and store the statements before it fetches a file of the version. If the setting is false, a
    /// plugin that needs the statements for nothing else can skip this request.
    pub judged_by_provenance: bool,
    /// True if any policy judges a proxy's versions. Every fetch of a file must then name its
    /// version.
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
    /// Reads the settings of this repository.
    ///
    /// # Errors
    /// [`Error::Other`] if the host's settings have other types.
    pub fn of(repository: &Repository) -> Result<Self, Error> {
        repository.settings()
    }

    /// Returns the limit of a file in bytes: the operator's limit, or `format_limit` if there is
    /// none.
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
