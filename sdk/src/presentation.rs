//! Details of a version that the portal displays in addition to the listed facts.
//! docs/plugins/optional-interfaces.md lists the members of the JSON object.

use serde::Serialize;
use std::collections::BTreeMap;

/// Largest size of a README in bytes; longer ones are cut.
pub const README_BYTES: usize = 1 << 20;

/// Details of a version. A format leaves fields empty that it does not know.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Presentation {
    /// README of the version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readme: Option<Readme>,
    /// Dependencies of the version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// Manifest of a container image or another OCI artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Stored statements about the origin of the version.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attestations: Vec<Attestation>,
}

impl Presentation {
    /// Returns the JSON object that the contract defines.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_else(|_| "{}".to_owned())
    }
}

/// Text about a package.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Readme {
    media_type: String,
    text: String,
}

impl Readme {
    /// A README in Markdown.
    pub fn markdown(text: impl Into<String>) -> Self {
        Self::new("text/markdown", text)
    }

    /// A README in reStructuredText.
    pub fn restructured(text: impl Into<String>) -> Self {
        Self::new("text/x-rst", text)
    }

    /// A README in plain text.
    pub fn plain(text: impl Into<String>) -> Self {
        Self::new("text/plain", text)
    }

    fn new(media_type: &str, text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.truncate(text.floor_char_boundary(README_BYTES));
        Self { media_type: media_type.to_owned(), text }
    }
}

/// Dependency of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dependency {
    name: String,
    requirement: String,
    group: String,
}

impl Dependency {
    /// Creates a dependency on this package. `requirement` states the versions in the format's
    /// notation. `group` names the case in which the dependency applies, for example development;
    /// empty if it always applies.
    pub fn new(name: impl Into<String>, requirement: impl Into<String>, group: impl Into<String>) -> Self {
        Self { name: name.into(), requirement: requirement.into(), group: group.into() }
    }
}

/// Container image, or another artifact with a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Image {
    /// Digest of the manifest.
    pub digest: String,
    /// Media type of the manifest.
    pub media_type: String,
    /// Images in an index.
    pub platforms: Vec<Platform>,
    /// Layers, from the lowest one up.
    pub layers: Vec<Layer>,
    /// Steps in which the image was built.
    pub history: Vec<History>,
    /// Labels of the configuration and annotations of the manifest.
    pub labels: BTreeMap<String, String>,
    /// Artifacts that refer to the image.
    pub referrers: Vec<Referrer>,
}

/// Image for one platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Platform {
    /// Operating system.
    pub os: String,
    /// Processor architecture.
    pub architecture: String,
    /// Variant of the architecture.
    pub variant: String,
    /// Digest of the manifest.
    pub digest: String,
    /// Size of the image's configuration and layers together in bytes, if the repository has the
    /// manifest.
    pub size: Option<u64>,
}

/// Layer of an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Layer {
    /// Digest of the bytes.
    pub digest: String,
    /// Size in bytes.
    pub size: u64,
    /// Media type.
    pub media_type: String,
}

/// Step of building an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct History {
    /// Time of the step (RFC 3339).
    pub created: String,
    /// Command of the step.
    pub created_by: String,
    /// Comment of the step.
    pub comment: String,
    /// True if the step made no layer.
    pub empty_layer: bool,
}

/// Artifact that refers to an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Referrer {
    /// Digest of the manifest.
    pub digest: String,
    /// Size of the manifest in bytes.
    pub size: u64,
    /// Type of the artifact.
    pub artifact_type: String,
    /// Annotations of the manifest.
    pub annotations: BTreeMap<String, String>,
}

/// Statement about the origin of a version or one of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Attestation {
    /// File that the statement is about; empty for the whole version.
    pub file: String,
    /// Type of the predicate.
    pub kind: String,
    /// Publisher according to the statement itself, as names and values.
    pub publisher: BTreeMap<String, String>,
    /// Path in the repository at which the whole statement can be fetched.
    pub path: String,
}
