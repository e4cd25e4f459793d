//! What a format tells retention. docs/PLUGINS.md lists the members.

use crate::VersionId;
use serde::Serialize;

/// Facts about a version that decide whether it may go. What a format does not know stays as it is by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VersionFacts {
    /// Whether something that people move names it, as a tag; none where the format has no such thing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tagged: Option<bool>,
    /// Whether it is a pre-release; none where that cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prerelease: Option<bool>,
    /// What it is one and the same thing as, with all others of its package that say the same; empty: a thing of its own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// It goes with another thing that is there, and never by itself.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub follows: bool,
    /// Versions of the same repository that it cannot be used without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Needed>,
}

/// A version that another one needs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Needed {
    name: String,
    version: String,
}

impl Needed {
    /// By the names of its package and itself.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into() }
    }
}

/// Something that is held and that nobody is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unshown {
    /// Its package.
    pub name: String,
    /// What `delete_version` knows it by.
    pub version: String,
    /// When it came, in ms since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub published: Option<u64>,
    /// Its bytes, as far as they are known.
    pub bytes: u64,
}

impl Unshown {
    /// Something of unknown age and size.
    pub fn new(id: VersionId) -> Self {
        Self { name: id.name, version: id.version, published: None, bytes: 0 }
    }
}

/// A page of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnshownPage {
    /// What is on it.
    pub items: Vec<Unshown>,
    /// What `after` is to be for the next one; none at the end.
    pub next: Option<String>,
}
