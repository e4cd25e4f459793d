//! The format's records: their keys and contents. A module path never contains an `@`, so the
//! version begins after the first `@` of a key.
//!
//! | key | content |
//! | --- | --- |
//! | `v/MODULE@VERSION` | a version: its zip, its go.mod and its time |
//! | `d/MODULE@VERSION` | marks a version that was deleted |
//! | `u/MODULE@VERSION` | in a proxy: the upstream's information about a version that was fetched |

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

/// A published version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VersionRecord {
    pub(crate) zip: Digest,
    /// Size of the zip in bytes.
    pub(crate) size: u64,
    /// Digest of the go.mod.
    pub(crate) go_mod: Digest,
    /// Unix time of publication in ms. For a pseudo-version, the time of its commit.
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

    /// Returns the blobs that the record refers to.
    pub(crate) fn blobs(&self) -> [Digest; 2] {
        [self.zip.clone(), self.go_mod.clone()]
    }
}

/// Information about a version, as the protocol defines it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Info {
    #[serde(rename = "Version")]
    pub(crate) version: String,
    #[serde(rename = "Time", default, skip_serializing_if = "Option::is_none")]
    pub(crate) time: Option<String>,
}

impl Info {
    pub(crate) fn new(version: &Version, time: u64) -> Self {
        // The go command writes times without fractions of a second.
        let time = Timestamp::from_ms(time - time % 1000).to_rfc3339().replace(".000Z", "Z");
        Self { version: version.to_string(), time: Some(time) }
    }
}

/// Returns a 404 with the words `not found:`, which the go command expects.
pub(crate) fn missing(subject: &str) -> Failure {
    Failure::not_found(format!("not found: {subject} is not in this repository"))
}
