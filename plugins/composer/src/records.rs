//! What the format remembers: the keys of its records, and what stands in them.
//!
//! | key | what |
//! | --- | --- |
//! | `v/<vendor>/<package>/<key>` | a version, under the text that is the same for all spellings of it: what it says of itself, its zip |
//! | `d/<vendor>/<package>/<key>` | that this version was published: the record stays when the version goes |
//! | `p/<vendor>/<package>/<key>` | a proxy's: a version whose zip was fetched, as the upstream had it |

use packhouse_sdk::{Digest, Version};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) const ALL: &str = "v/";

pub(crate) fn versions(name: &str) -> String {
    format!("v/{name}/")
}

pub(crate) fn version(name: &str, key: &str) -> String {
    format!("v/{name}/{key}")
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

/// A version.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PackageRecord {
    pub(crate) name: String,
    /// As its publisher spells it.
    pub(crate) version: String,
    /// Of its composer.json.
    pub(crate) members: Map<String, Value>,
    pub(crate) sha256: Digest,
    /// In hex, which is what Composer compares.
    pub(crate) sha1: String,
    /// Bytes.
    pub(crate) size: u64,
    /// When it was published, in ms since 1970.
    pub(crate) time: u64,
    /// Why nobody should use it any more; the reason may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deprecated: Option<String>,
}

impl PackageRecord {
    fn text(&self, member: &str) -> &str {
        self.members.get(member).and_then(Value::as_str).unwrap_or_default()
    }

    /// What people see of it, with its file.
    pub(crate) fn shown(&self) -> Version {
        let path = file(&self.name, &self.version, "zip");
        let mut shown = Version::new(&self.name, &self.version)
            .file(path, self.sha256.clone(), self.size)
            .summary(short(self.text("description")));
        let texts = |member: &str| match self.members.get(member) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
            _ => String::new(),
        };
        for name in ["type", "license", "homepage", "keywords"] {
            let value = short(&texts(name));
            if !value.is_empty() {
                shown = shown.property(name, value);
            }
        }
        match &self.deprecated {
            None => shown,
            Some(reason) if reason.is_empty() => shown.state("deprecated"),
            Some(reason) => shown.state("deprecated").property("reason", reason),
        }
    }
}

/// Where a version's file is served.
pub(crate) fn file(name: &str, version: &str, kind: &str) -> String {
    format!("dists/{name}/{version}.{kind}")
}

fn short(text: &str) -> String {
    text.chars().filter(|symbol| !symbol.is_control()).take(400).collect()
}

/// A version whose file a proxy fetched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fetched {
    pub(crate) version: String,
    /// Where the upstream has it.
    pub(crate) url: String,
    /// `zip`, `tar`.
    pub(crate) kind: String,
    /// SHA-1 in hex; none where the upstream does not tell.
    pub(crate) sha1: Option<String>,
    /// In ms since 1970.
    pub(crate) published: Option<u64>,
    /// The whole of its metadata, as it was offered.
    pub(crate) metadata: Map<String, Value>,
    /// Whether the upstream lists it no longer.
    #[serde(default)]
    pub(crate) withdrawn: bool,
}
