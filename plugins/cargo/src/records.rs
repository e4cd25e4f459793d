//! What the format remembers: the keys of its records, and what stands in them. `NAME` is a crate's in its one spelling, `VERSION` is
//! without build metadata.
//!
//! | key | what |
//! | --- | --- |
//! | `c/NAME` | a crate: its name as its author spells it |
//! | `v/NAME/VERSION` | a version: its line of the index, its file and its metadata |
//! | `d/NAME/VERSION` | a version that was deleted |
//! | `u/NAME/VERSION` | of a proxy: a version that was fetched |

use crate::line::{Line, without_build};
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

/// A version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VersionRecord {
    pub(crate) line: Line,
    /// Of the crate file.
    pub(crate) sha256: Digest,
    /// Bytes of the crate file.
    pub(crate) size: u64,
    /// What cargo sent beside the file.
    pub(crate) metadata: Digest,
    /// When it was published, in ms since 1970.
    pub(crate) time: u64,
    /// Who published it, as may be shown.
    #[serde(default)]
    pub(crate) publisher: Option<String>,
    pub(crate) summary: String,
    pub(crate) words: String,
    /// The licence that its author states.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) license: String,
    /// Why it was yanked, where somebody said so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
}

impl VersionRecord {
    /// The version of this number, with the build metadata that it was published with if `number` has any.
    pub(crate) fn find(
        repository: &Repository,
        name: &Name,
        number: &str,
    ) -> Result<Option<Entry<Self>>, Error> {
        let Ok(asked) = Version::parse(number) else { return Ok(None) };
        if number.len() > 256 {
            return Ok(None);
        }
        let found = repository.get_json::<Self>(&version(name, &asked))?;
        Ok(found.filter(|entry| entry.value.line.vers == number))
    }

    /// All versions of a crate.
    pub(crate) fn all(repository: &Repository, name: &Name) -> Result<Vec<Self>, Error> {
        repository.scan(versions(name)).map(|entry| Ok(entry?.json::<Self>()?.value)).collect()
    }

    /// The blobs that its record keeps alive.
    pub(crate) fn blobs(&self) -> [Digest; 2] {
        [self.sha256.clone(), self.metadata.clone()]
    }
}

/// 404 for a crate that is not there.
pub(crate) fn missing(name: &str) -> Failure {
    Failure::not_found(format!("There is no crate {name} in this repository"))
}

/// 404 for a version that is not there.
pub(crate) fn missing_version(name: &str, version: &str) -> Failure {
    Failure::not_found(format!("There is no version {version} of the crate {name} in this repository"))
}
