//! The records of the format: their keys and contents. `NAME` is the canonical name of a crate, and
//! `VERSION` is a version without build metadata.
//!
//! | key | content |
//! | --- | --- |
//! | `c/NAME` | a crate: its name in the spelling of its author |
//! | `v/NAME/VERSION` | a version: its line of the index, its file and its metadata |
//! | `d/NAME/VERSION` | a version that was deleted |
//! | `u/NAME/VERSION` | in a proxy: a version that was fetched |

use crate::line::{IndexLine, without_build};
use crate::name::Name;
use packhouse_sdk::{Digest, Entry, Error, Failure, Repository};
use semver::Version;
use serde::{Deserialize, Serialize};

pub(crate) fn a_crate(name: &Name) -> String {
    format!("c/{name}")
}

pub(crate) fn versions(name: &Name) -> String {
    format!("v/{name}/")
}

pub(crate) fn version(name: &Name, version: &Version) -> String {
    format!("v/{name}/{}", without_build(version))
}

pub(crate) fn deleted(name: &Name, version: &Version) -> String {
    format!("d/{name}/{}", without_build(version))
}

pub(crate) fn fetched(name: &Name) -> String {
    format!("u/{name}/")
}

/// A published version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VersionRecord {
    pub(crate) line: IndexLine,
    /// Digest of the crate file.
    pub(crate) sha256: Digest,
    /// Bytes of the crate file.
    pub(crate) size: u64,
    /// Digest of the metadata that cargo sent with the file.
    pub(crate) metadata: Digest,
    /// Time of the publish, in ms since 1970.
    pub(crate) time: u64,
    /// Public name of the publisher.
    #[serde(default)]
    pub(crate) publisher: Option<String>,
    pub(crate) summary: String,
    pub(crate) words: String,
    /// The licence that the author states.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) license: String,
    /// The reason why the version was yanked; empty if the caller stated none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
}

impl VersionRecord {
    /// Finds the version with this number. The build metadata in `number` must be the same as in
    /// the published version.
    pub(crate) fn find(
        repository: &Repository,
        name: &Name,
        number: &str,
    ) -> Result<Option<Entry<Self>>, Error> {
        let Ok(requested) = Version::parse(number) else { return Ok(None) };
        if number.len() > 256 {
            return Ok(None);
        }
        let found = repository.get_json::<Self>(&version(name, &requested))?;
        Ok(found.filter(|entry| entry.value.line.vers == number))
    }

    /// All versions of a crate.
    pub(crate) fn all(repository: &Repository, name: &Name) -> Result<Vec<Self>, Error> {
        repository.scan(versions(name)).map(|entry| Ok(entry?.json::<Self>()?.value)).collect()
    }

    /// The blobs that the record refers to.
    pub(crate) fn blobs(&self) -> [Digest; 2] {
        [self.sha256.clone(), self.metadata.clone()]
    }
}

/// 404 for a crate that does not exist.
pub(crate) fn missing(name: &str) -> Failure {
    Failure::not_found(format!("There is no crate {name} in this repository"))
}

/// 404 for a version that does not exist.
pub(crate) fn missing_version(name: &str, version: &str) -> Failure {
    Failure::not_found(format!("There is no version {version} of the crate {name} in this repository"))
}
