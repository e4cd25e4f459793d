//! What the format remembers: the keys of its records, and what stands in them.
//!
//! | key | what |
//! | --- | --- |
//! | `p/<name>` | the package: its tags, times and maintainers. Every change of the package puts it, so that its revision is the `_rev` that clients know |
//! | `v/<name>/<version>` | a version, naming its tarball |
//! | `x/<name>/<version>` | why a version should not be used |
//! | `s/<name>/<version>` | a version's attestations, as they are served |
//! | `r/<name>/<version>` | what a version says of itself at length, naming the blob that holds a long text |
//! | `r/<name>` | the same of a package's latest version, as it was published before versions had their own |
//! | `d/<name>/<version>` | that the version was there once; when it was removed |
//! | `u/<name>/<version>` | of a proxy: a version that was fetched, as the upstream described it then |

use crate::name::Name;
use packhouse_sdk::{Digest, Entry, Error, Failure, Repository};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

pub(crate) fn package(name: &Name) -> String {
    format!("p/{name}")
}

pub(crate) fn versions(name: &Name) -> String {
    format!("v/{name}/")
}

pub(crate) fn version(name: &Name, version: &str) -> String {
    format!("v/{name}/{version}")
}

pub(crate) fn deprecations(name: &Name) -> String {
    format!("x/{name}/")
}

pub(crate) fn deprecation(name: &Name, version: &str) -> String {
    format!("x/{name}/{version}")
}

pub(crate) fn attestations(name: &Name, version: &str) -> String {
    format!("s/{name}/{version}")
}

pub(crate) fn readme(name: &Name, version: &str) -> String {
    format!("r/{name}/{version}")
}

pub(crate) fn package_readme(name: &Name) -> String {
    format!("r/{name}")
}

pub(crate) fn removed(name: &Name, version: &str) -> String {
    format!("d/{name}/{version}")
}

/// A package, small however many versions it has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Package {
    /// Version by tag.
    pub(crate) tags: BTreeMap<String, String>,
    /// Ms since 1970.
    pub(crate) created: u64,
    /// Ms since 1970.
    pub(crate) modified: u64,
    /// As clients send them: objects with `name` and `email`.
    #[serde(default)]
    pub(crate) maintainers: Vec<Value>,
}

impl Package {
    /// The package, if there is one by this name.
    pub(crate) fn find(repository: &Repository, name: &Name) -> Result<Option<Entry<Self>>, Error> {
        repository.get_json(&package(name))
    }

    /// The package.
    ///
    /// # Errors
    /// 404 when there is none by this name.
    pub(crate) fn get(repository: &Repository, name: &Name) -> Result<Entry<Self>, Failure> {
        Self::find(repository, name)?.ok_or_else(|| missing(name))
    }
}

/// 404 for a package that is not there.
pub(crate) fn missing(name: &Name) -> Failure {
    Failure::not_found(format!("There is no package {name} in this repository"))
}

/// 404 for a version that is not there.
pub(crate) fn missing_version(name: &Name, version: &str) -> Failure {
    Failure::not_found(format!("There is no version {version} of {name} in this repository"))
}

/// What is known of a version besides what it says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Facts {
    /// When it was published, in ms since 1970.
    pub(crate) time: u64,
    /// Of the tarball.
    pub(crate) sha256: Digest,
    /// Bytes of the tarball.
    pub(crate) size: u64,
    /// One line for lists.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) summary: String,
    /// Words that it is found by, separated by blanks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) keywords: String,
    /// The licence that its author states.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) license: String,
    /// What the provenance among its attestations is, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provenance: Option<String>,
}

/// A version. Its record is four lines of JSON, so that a packument is put together without reading any manifest: [`Facts`],
/// `dist` without the tarball's address, and the manifest without `dist`, abbreviated and full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) facts: Facts,
    /// An object.
    pub(crate) dist: String,
    /// An object that is not empty.
    pub(crate) abbreviated: String,
    /// An object that is not empty.
    pub(crate) full: String,
}

impl Version {
    /// The record.
    pub(crate) fn write(&self) -> Result<Vec<u8>, Error> {
        let facts = serde_json::to_string(&self.facts)?;
        Ok([&facts, &self.dist, &self.abbreviated, &self.full].map(String::as_str).join("\n").into_bytes())
    }

    /// Reads a record.
    ///
    /// # Errors
    /// [`Error::Other`] when it is none.
    pub(crate) fn read(key: &str, record: Vec<u8>) -> Result<Self, Error> {
        let bad = || Error::Other(format!("record {key} is no version"));
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

    /// The version, if it is there.
    pub(crate) fn find(repository: &Repository, name: &Name, number: &str) -> Result<Option<Self>, Error> {
        // What no key can hold is no version's number either.
        let key = version(name, number);
        if key.len() > 1024 {
            return Ok(None);
        }
        repository.get(&key)?.map(|entry| Self::read(&key, entry.value)).transpose()
    }

    /// The version.
    ///
    /// # Errors
    /// 404 when it is not there.
    pub(crate) fn get(repository: &Repository, name: &Name, number: &str) -> Result<Self, Failure> {
        Self::find(repository, name, number)?.ok_or_else(|| missing_version(name, number))
    }
}

/// A record that is text.
pub(crate) fn text(value: Vec<u8>) -> String {
    String::from_utf8_lossy(&value).into_owned()
}
