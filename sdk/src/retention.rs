//! Facts about versions for retention. docs/plugins/optional-interfaces.md lists the members.

use crate::VersionId;
use serde::Serialize;

/// Facts that decide whether retention may delete a version. Leave unknown facts at their default.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VersionFacts {
    /// True if a tag, or another name that can move, names the version; `None` if the format has no
    /// such names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tagged: Option<bool>,
    /// True if the version is a pre-release; `None` if this is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prerelease: Option<bool>,
    /// Identity that the version shares with other versions of its package, like several tags of
    /// one manifest. Retention treats versions with the same unit as one. Empty if the version is a
    /// unit of its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// True if retention deletes the version only together with another existing item, never by
    /// itself.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub follows: bool,
    /// Versions of the same repository without which this version cannot be used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Needed>,
}

/// Version that another one needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Needed {
    name: String,
    version: String,
}

impl Needed {
    /// Creates a reference from the names of the package and the version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }
}

/// Stored item that is not listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unshown {
    /// Name of the package.
    pub name: String,
    /// Version with which `delete_version` finds the item.
    pub version: String,
    /// Time at which the item arrived, as Unix time in ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<u64>,
    /// Known size in bytes.
    pub bytes: u64,
}

impl Unshown {
    /// Creates an item of unknown age and size.
    pub fn new(id: VersionId) -> Self {
        Self { name: id.name, version: id.version, published: None, bytes: 0 }
    }
}

/// Page of unlisted items.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnshownPage {
    /// Items on the page.
    pub items: Vec<Unshown>,
    /// Value of `after` for the next page; `None` on the last page.
    pub next: Option<String>,
}
