//! The format's records: their keys and contents.
//!
//! | key | content |
//! | --- | --- |
//! | `p/<name>` | the package: its tags, times and maintainers |
//! | `v/<name>/<version>` | a version, with a reference to its tarball |
//! | `x/<name>/<version>` | the deprecation message of a version |
//! | `s/<name>/<version>` | a version's attestations, as they are served |
//! | `r/<name>/<version>` | a version's readme, or a reference to the blob of a long one |
//! | `r/<name>` | a package's readme, from the time before versions had their own readmes |
//! | `d/<name>/<version>` | the time when a version was removed |
//! | `u/<name>/<version>` | in a proxy: a fetched version, as the upstream described it |
//!
//! Every change of a package writes the package's record. The revision of this record is therefore
//! the package's revision, which clients know as `_rev`.

use crate::name::PackageName;
use packhouse_sdk::{Digest, Entry, Error, Failure, Repository};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) fn package(name: &PackageName) -> String {
    format!("p/{name}")
}

pub(crate) fn versions(name: &PackageName) -> String {
    format!("v/{name}/")
}

pub(crate) fn version(name: &PackageName, version: &str) -> String {
    format!("v/{name}/{version}")
}

pub(crate) fn deprecations(name: &PackageName) -> String {
    format!("x/{name}/")
}

pub(crate) fn deprecation(name: &PackageName, version: &str) -> String {
    format!("x/{name}/{version}")
}

pub(crate) fn attestations(name: &PackageName, version: &str) -> String {
    format!("s/{name}/{version}")
}

pub(crate) fn readme(name: &PackageName, version: &str) -> String {
    format!("r/{name}/{version}")
}

pub(crate) fn package_readme(name: &PackageName) -> String {
    format!("r/{name}")
}

pub(crate) fn removed(name: &PackageName, version: &str) -> String {
    format!("d/{name}/{version}")
}

/// Record of a package. It is small, whatever the number of versions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PackageRecord {
    /// Version number by tag.
    pub(crate) tags: BTreeMap<String, String>,
    /// Time of creation, in ms since 1970.
    pub(crate) created: u64,
    /// Time of the last change, in ms since 1970.
    pub(crate) modified: u64,
    /// Maintainers as clients send them: objects with `name` and `email`.
    #[serde(default)]
    pub(crate) maintainers: Vec<Value>,
}

impl PackageRecord {
    /// Returns the package with this name, or `None` if it does not exist.
    pub(crate) fn find(repository: &Repository, name: &PackageName) -> Result<Option<Entry<Self>>, Error> {
        repository.get_json(&package(name))
    }

    /// Returns the package with this name.
    ///
    /// # Errors
    /// 404 if the package does not exist.
    pub(crate) fn get(repository: &Repository, name: &PackageName) -> Result<Entry<Self>, Failure> {
        Self::find(repository, name)?.ok_or_else(|| missing(name))
    }
}

/// Returns the 404 for a missing package.
pub(crate) fn missing(name: &PackageName) -> Failure {
    Failure::not_found(format!("There is no package {name} in this repository"))
}

/// Returns the 404 for a missing version.
pub(crate) fn missing_version(name: &PackageName, version: &str) -> Failure {
    Failure::not_found(format!("There is no version {version} of {name} in this repository"))
}

/// Data about a version that its manifest does not have, or that is needed without parsing the
/// manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct VersionMetadata {
    /// Publication time, in ms since 1970.
    pub(crate) time: u64,
    /// Digest of the tarball.
    pub(crate) sha256: Digest,
    /// Size of the tarball in bytes.
    pub(crate) size: u64,
    /// Summary: one line for lists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) summary: String,
    /// Keywords for the search, separated by blanks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) keywords: String,
    /// The licence that the author states.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) license: String,
    /// Predicate type of the provenance, if the version's attestations have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provenance: Option<String>,
}

/// Record of a version: four lines of JSON, so that the plugin renders a packument without parsing
/// manifests. The lines are [`VersionMetadata`], `dist` without the tarball's address, and the
/// abbreviated and the full manifest without `dist`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionRecord {
    pub(crate) facts: VersionMetadata,
    /// `dist` as a JSON object.
    pub(crate) dist: String,
    /// The abbreviated manifest, as a JSON object that is not empty.
    pub(crate) abbreviated: String,
    /// The full manifest, as a JSON object that is not empty.
    pub(crate) full: String,
}

impl VersionRecord {
    /// Writes a record.
    pub(crate) fn write(&self) -> Result<Vec<u8>, Error> {
        let facts = serde_json::to_string(&self.facts)?;
        Ok([&facts, &self.dist, &self.abbreviated, &self.full].map(String::as_str).join("\n").into_bytes())
    }

    /// Parses a record.
    ///
    /// # Errors
    /// [`Error::Other`] if the record is invalid.
    pub(crate) fn read(key: &str, record: Vec<u8>) -> Result<Self, Error> {
        let bad = || Error::Other(format!("record {key} is not a version"));
        let text = String::from_utf8(record).map_err(|_| bad())?;
        let mut lines = text.split('\n');
        let facts = serde_json::from_str(lines.next().unwrap_or_default())?;
        match (lines.next(), lines.next(), lines.next(), lines.next()) {
            (Some(dist), Some(abbreviated), Some(full), None) => Ok(Self {
                facts,
                dist: dist.to_owned(),
                abbreviated: abbreviated.to_owned(),
                full: full.to_owned(),
            }),
            _ => Err(bad()),
        }
    }

    /// Returns the version, or `None` if it does not exist.
    pub(crate) fn find(
        repository: &Repository,
        name: &PackageName,
        number: &str,
    ) -> Result<Option<Self>, Error> {
        // A key has at most 1,024 bytes, so a version with a longer key cannot exist.
        let key = version(name, number);
        if key.len() > 1024 {
            return Ok(None);
        }
        repository.get(&key)?.map(|entry| Self::read(&key, entry.value)).transpose()
    }

    /// Returns the version.
    ///
    /// # Errors
    /// 404 if the version does not exist.
    pub(crate) fn get(repository: &Repository, name: &PackageName, number: &str) -> Result<Self, Failure> {
        Self::find(repository, name, number)?.ok_or_else(|| missing_version(name, number))
    }
}

/// Returns the text in a record.
pub(crate) fn text(value: Vec<u8>) -> String {
    String::from_utf8_lossy(&value).into_owned()
}
