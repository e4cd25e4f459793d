//! What the format remembers: the keys of its records, and what stands in them. No module's path holds an `@`.
//!
//! | key | what |
//! | --- | --- |
//! | `v/MODULE@VERSION` | a version: its zip, its go.mod and its time |
//! | `d/MODULE@VERSION` | a version that was deleted |
//! | `u/MODULE@VERSION` | of a proxy: what is said of a version that was fetched |

use crate::module::Module;
use crate::version::Version;
use packhouse_sdk::{Digest, Entry, Error, Failure, Repository, Timestamp};
use serde::{Deserialize, Serialize};

pub(crate) fn versions(module: &Module) -> String {
    format!("v/{module}@")
}

pub(crate) fn version(module: &Module, version: &Version) -> String {
    format!("v/{module}@{version}")
}

pub(crate) fn deleted(module: &Module, version: &Version) -> String {
    format!("d/{module}@{version}")
}

pub(crate) fn fetched(module: &Module, version: &Version) -> String {
    format!("u/{module}@{version}")
}

/// A version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VersionRecord {
    pub(crate) zip: Digest,
    /// Bytes of the zip.
    pub(crate) size: u64,
    /// The bytes of its go.mod.
    pub(crate) go_mod: Digest,
    /// When it was published, in ms since 1970; of a pseudo-version when its commit was made.
    pub(crate) time: u64,
}

impl VersionRecord {
    pub(crate) fn find(
        repository: &Repository,
        module: &Module,
        version: &Version,
    ) -> Result<Option<Entry<Self>>, Error> {
        repository.get_json(&self::version(module, version))
    }

    /// What its record keeps alive.
    pub(crate) fn blobs(&self) -> [Digest; 2] {
        [self.zip.clone(), self.go_mod.clone()]
    }
}

/// What is said of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Info {
    #[serde(rename = "Version")]
    pub(crate) version: String,
    #[serde(rename = "Time", default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<String>,
}

impl Info {
    pub(crate) fn new(version: &Version, time: u64) -> Self {
        // To the second, as the go command writes it.
        let time = Timestamp::from_ms(time - time % 1000).to_rfc3339().replace(".000Z", "Z");
        Self { version: version.to_string(), time: Some(time) }
    }
}

/// 404 in the words that the go command expects.
pub(crate) fn missing(subject: &str) -> Failure {
    Failure::not_found(format!("not found: {subject} is not in this repository"))
}
