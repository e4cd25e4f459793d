//! What a plugin shows people of a version: the JSON object that `present-version` returns. Members that this host does not know are
//! ignored; each that it knows has a bound.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Bytes of the object.
const MAX_BYTES: usize = 4 << 20;
/// Bytes of a README.
const MAX_README: usize = 1 << 20;
/// Entries of each list.
const MAX_ENTRIES: usize = 2_000;

/// What people are shown of a version.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Presentation {
    /// What its author says of it.
    pub readme: Option<Readme>,
    /// What it needs.
    pub dependencies: Vec<Dependency>,
    /// Of a container image or another artifact of a registry.
    pub image: Option<Image>,
    /// Statements about where it comes from, as they are kept: nothing here has verified them.
    pub attestations: Vec<Attestation>,
}

/// A text about a package.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Readme {
    /// `text/markdown`, `text/x-rst` or `text/plain`.
    pub media_type: String,
    /// The text.
    pub text: String,
}

/// What a version needs.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Dependency {
    /// The package.
    pub name: String,
    /// Which versions, in the format's words.
    pub requirement: String,
    /// For what, in the format's words; empty: always.
    pub group: String,
}

/// A container image, or what else has a manifest.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
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
    /// What says something about it: signatures, bills of materials.
    pub referrers: Vec<Referrer>,
}

/// An image for one platform.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
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
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Layer {
    /// Of its bytes.
    pub digest: String,
    /// In bytes.
    pub size: u64,
    /// What it is.
    pub media_type: String,
}

/// A step of an image's making.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
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
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
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
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
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

impl Presentation {
    /// Reads what `present-version` returned; says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Presentation, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("the plugin presents {} bytes: {MAX_BYTES} are allowed", text.len()));
        }
        let mut shown: Presentation = serde_json::from_str(text)
            .map_err(|error| format!("what the plugin presents cannot be read: {error}"))?;
        if let Some(readme) = &mut shown.readme {
            readme.text.truncate(readme.text.floor_char_boundary(MAX_README));
        }
        shown.dependencies.truncate(MAX_ENTRIES);
        shown.attestations.truncate(MAX_ENTRIES);
        if let Some(image) = &mut shown.image {
            image.platforms.truncate(MAX_ENTRIES);
            image.layers.truncate(MAX_ENTRIES);
            image.history.truncate(MAX_ENTRIES);
            image.referrers.truncate(MAX_ENTRIES);
        }
        Ok(shown)
    }
}
