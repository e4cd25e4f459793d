//! The keys of the format's records, and their contents.
//!
//! | key | content |
//! | --- | --- |
//! | `v/<vendor>/<package>/<key>` | a version, under the text that is the same for all spellings of it: its metadata and its zip |
//! | `d/<vendor>/<package>/<key>` | this version was published: the record stays when the version goes |
//! | `p/<vendor>/<package>/<key>` | a proxy's: a version whose file was fetched, with the upstream's metadata |

use crate::version::Version;
use packhouse_sdk::{Digest, Entry, Error, Repository, Version as ShownVersion};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The size limit of a record, in bytes.
pub(crate) const LARGEST: usize = 1 << 20;
pub(crate) const ALL_VERSIONS: &str = "v/";
pub(crate) const ALL_FETCHED: &str = "p/";

pub(crate) fn versions(name: &str) -> String {
    format!("v/{name}/")
}

pub(crate) fn version(name: &str, key: &str) -> String {
    format!("v/{name}/{key}")
}

/// A published version of this text and key. A text with `stable` in it, as `1.0-stable2`, may have had another
/// key in an earlier version of this program: then its record is found by the text that is in it.
///
/// # Errors
/// The host's.
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
    /// Why nobody should use the version any more. The reason may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deprecated: Option<String>,
    /// Those of its composer.json.
    pub(crate) members: Map<String, Value>,
    pub(crate) name: String,
    /// In hex. Composer compares it.
    pub(crate) sha1: String,
    pub(crate) sha256: Digest,
    /// In bytes.
    pub(crate) size: u64,
    /// The time of the publish, in ms since 1970.
    pub(crate) time: u64,
    /// In its publisher's spelling.
    pub(crate) version: String,
}

impl PackageRecord {
    /// The version with its file, as people see it.
    pub(crate) fn shown(&self) -> ShownVersion {
        let path = file_path(&self.name, &self.version, "zip");
        let summary = self.members.get("description").and_then(Value::as_str).unwrap_or_default();
        let mut shown = ShownVersion::new(&self.name, &self.version)
            .file(path, self.sha256.clone(), self.size)
            .summary(short(summary));
        // A branch is as old as its newest zip.
        shown.published = Version::parse(&self.version).filter(Version::is_dev).map(|_| self.time);
        for member in ["type", "license", "homepage", "keywords"] {
            let value = short(&texts(self.members.get(member)));
            if !value.is_empty() {
                shown = shown.property(member, value);
            }
        }
        let Some(reason) = &self.deprecated else { return shown };
        if !reason.is_empty() {
            shown = shown.property("reason", reason);
        }
        shown.state("deprecated")
    }
}

/// A version whose file a proxy fetched.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Fetched {
    /// The kind of the file: `zip`, `tar`.
    pub(crate) kind: String,
    /// All members, as they were offered.
    pub(crate) metadata: BTreeMap<String, Box<RawValue>>,
    /// In ms since 1970, if the upstream states it.
    pub(crate) published: Option<u64>,
    /// In hex, if the upstream states it.
    pub(crate) sha1: Option<String>,
    /// The upstream's address of the file.
    pub(crate) url: String,
    /// In the upstream's spelling.
    pub(crate) version: String,
    /// Whether the upstream lists the version no longer.
    #[serde(default)]
    pub(crate) withdrawn: bool,
}

/// The text of a value, or its texts.
fn texts(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

/// The first 400 characters that are not control characters.
fn short(text: &str) -> String {
    text.chars().filter(|symbol| !symbol.is_control()).take(400).collect()
}
