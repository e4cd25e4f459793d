//! The records of the format: their keys and their contents.
//!
//! | key | content |
//! | --- | --- |
//! | `v/<vendor>/<package>/<key>` | a version: its metadata and its zip |
//! | `d/<vendor>/<package>/<key>` | marks a version as used; it stays when the version is deleted |
//! | `p/<vendor>/<package>/<key>` | in a proxy: a version whose file was fetched |
//!
//! `<key>` is the same for all spellings of a version.

use crate::version::Version;
use packhouse_sdk::{Digest, Entry, Error, Repository, Version as ListedVersion};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The size limit of a record, in bytes.
pub(crate) const MAX_RECORD: usize = 1 << 20;
pub(crate) const ALL_VERSIONS: &str = "v/";
pub(crate) const ALL_FETCHED: &str = "p/";

pub(crate) fn versions(name: &str) -> String {
    format!("v/{name}/")
}

pub(crate) fn version(name: &str, key: &str) -> String {
    format!("v/{name}/{key}")
}

/// Finds the record of a published version. Earlier releases of this plugin stored some versions
/// with `stable` in their text, such as `1.0-stable2`, under another key. The function finds such a
/// record by the version text that the record contains.
///
/// # Errors
/// The errors of the host.
pub(crate) fn find(
    repository: &Repository,
    name: &str,
    key: &str,
    text: &str,
) -> Result<Option<Entry<PackageRecord>>, Error> {
    if let Some(found) = repository.get_json(&version(name, key))? {
        return Ok(Some(found));
    }
    if !text.to_ascii_lowercase().contains("stable") {
        return Ok(None);
    }
    for entry in repository.scan(versions(name)) {
        let entry = entry?.json::<PackageRecord>()?;
        if entry.value.version == text {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

pub(crate) fn used(name: &str, key: &str) -> String {
    format!("d/{name}/{key}")
}

pub(crate) fn all_fetched(name: &str) -> String {
    format!("p/{name}/")
}

pub(crate) fn fetched(name: &str, key: &str) -> String {
    format!("p/{name}/{key}")
}

/// The path of a version's file.
pub(crate) fn file_path(name: &str, version: &str, kind: &str) -> String {
    format!("dists/{name}/{version}.{kind}")
}

/// A published version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PackageRecord {
    /// The reason of a deprecation, which may be empty; `None` if the version is not deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deprecated: Option<String>,
    /// The published members of its composer.json.
    pub(crate) members: Map<String, Value>,
    pub(crate) name: String,
    /// SHA-1 of the zip in hex. Composer compares it with the downloaded zip.
    pub(crate) sha1: String,
    pub(crate) sha256: Digest,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Time of the publish, in ms since 1970.
    pub(crate) time: u64,
    /// The version in the spelling of its publisher.
    pub(crate) version: String,
}

impl PackageRecord {
    /// The version as it is listed, with its file.
    pub(crate) fn listed_version(&self) -> ListedVersion {
        let path = file_path(&self.name, &self.version, "zip");
        let summary = self.members.get("description").and_then(Value::as_str).unwrap_or_default();
        let mut listed = ListedVersion::new(&self.name, &self.version)
            .file(path, self.sha256.clone(), self.size)
            .summary(short(summary));
        // A branch is published again with each new zip, so its age begins with the newest zip.
        listed.published = Version::parse(&self.version).filter(Version::is_dev).map(|_| self.time);
        for member in ["type", "license", "homepage", "keywords"] {
            let value = short(&texts(self.members.get(member)));
            if !value.is_empty() {
                listed = listed.property(member, value);
            }
        }
        let Some(reason) = &self.deprecated else { return listed };
        if !reason.is_empty() {
            listed = listed.property("reason", reason);
        }
        listed.state("deprecated")
    }
}

/// A version whose file a proxy fetched.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FetchedVersion {
    /// The archive type of the file: `zip`, `tar`.
    pub(crate) kind: String,
    /// All members of the version, as the proxy served them.
    pub(crate) metadata: BTreeMap<String, Box<RawValue>>,
    /// Time of the publish in ms since 1970, if the upstream states it.
    pub(crate) published: Option<u64>,
    /// SHA-1 in hex, if the upstream states it.
    pub(crate) sha1: Option<String>,
    /// Address of the file at the upstream.
    pub(crate) url: String,
    /// The version in the spelling of the upstream.
    pub(crate) version: String,
    /// True if the upstream no longer lists the version.
    #[serde(default)]
    pub(crate) withdrawn: bool,
}

/// A string, or the strings of a list joined with spaces.
fn texts(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

/// The first 400 characters, without control characters.
fn short(text: &str) -> String {
    text.chars().filter(|symbol| !symbol.is_control()).take(400).collect()
}
