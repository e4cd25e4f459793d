//! What people are shown of a version, besides what a commit shows. docs/PLUGINS.md lists the members.

use serde::Serialize;
use std::collections::BTreeMap;

/// Bytes of a README at most: what is longer is cut.
pub const README_BYTES: usize = 1 << 20;

/// What people are shown of a version. What a format does not know stays empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Presentation {
    /// What its author says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readme: Option<Readme>,
    /// What it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// Of a container image, or of what else has a manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Statements about where it comes from, as they are kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attestations: Vec<Attestation>,
}

impl Presentation {
    /// As the contract has it.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// A text about a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Readme {
    media_type: String,
    text: String,
}

impl Readme {
    /// Markdown.
    pub fn markdown(text: impl Into<String>) -> Self {
        Self::new("text/markdown", text)
    }

    /// reStructuredText.
    pub fn restructured(text: impl Into<String>) -> Self {
        Self::new("text/x-rst", text)
    }

    /// Plain text.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new("text/plain", text)
    }

    fn new(media_type: &str, text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.truncate(text.floor_char_boundary(README_BYTES));
        Self { media_type: media_type.to_owned(), text }
    }
}

/// What a version needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dependency {
    name: String,
    requirement: String,
    group: String,
}

impl Dependency {
    /// This package in these versions, in the format's words; `group` says for what, empty always.
    pub fn new(name: impl Into<String>, requirement: impl Into<String>, group: impl Into<String>) -> Self {
        Self { name: name.into(), requirement: requirement.into(), group: group.into() }
    }
}

/// A container image, or what else has a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Image {
    /// Of the manifest.
    pub digest: String,
    /// Of the manifest.
    pub media_type: String,
    /// Of an index: what is in it.
    pub platforms: Vec<Platform>,
    /// From the lowest one.
    pub layers: Vec<Layer>,
    /// How it was made.
    pub history: Vec<History>,
    /// Labels of the configuration and annotations of the manifest.
    pub labels: BTreeMap<String, String>,
    /// What says something about it.
    pub referrers: Vec<Referrer>,
}

/// An image for one platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Platform {
    /// The operating system.
    pub os: String,
    /// The processor.
    pub architecture: String,
    /// Which of its kind.
    pub variant: String,
    /// Of its manifest.
    pub digest: String,
    /// Of its configuration and layers together, in bytes, where its manifest is here.
    pub size: Option<u64>,
}

/// A layer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// Of its bytes.
    pub digest: String,
    /// In bytes.
    pub size: u64,
    /// What it is.
    pub media_type: String,
}

/// A step of an image's making.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct History {
    /// When, as RFC 3339 has it.
    pub created: String,
    /// By which command.
    pub created_by: String,
    /// What was noted.
    pub comment: String,
    /// Whether it made no layer.
    pub empty_layer: bool,
}

/// What says something about an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Referrer {
    /// Of its manifest.
    pub digest: String,
    /// Of its manifest, in bytes.
    pub size: u64,
    /// What kind of thing it is.
    pub artifact_type: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// A statement about where a version, or a file of it, comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Attestation {
    /// The file; empty: the version.
    pub file: String,
    /// What kind of statement: a predicate's type.
    pub kind: String,
    /// Who states it, as it says itself: by name and value.
    pub publisher: BTreeMap<String, String>,
    /// Where the whole of it is fetched: a path in the repository.
    pub path: String,
}
