//! Presentation of a version for people: the JSON object that `present-version` returns. Unknown
//! members are ignored; each known member has a bound.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Most bytes of the object.
const MAX_BYTES: usize = 4 << 20;
/// Most bytes of a README.
const MAX_README: usize = 1 << 20;
/// Most entries of each list.
const MAX_ENTRIES: usize = 2_000;

/// Presentation of a version for people.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Presentation {
    /// Text of the version's author.
    pub readme: Option<Readme>,
    pub dependencies: Vec<Dependency>,
    /// Details of a container image or another OCI artifact.
    pub image: Option<Image>,
    /// Unverified statements about the origin, as they are stored.
    pub attestations: Vec<Attestation>,
}

/// A text about a package.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Readme {
    /// One of `text/markdown`, `text/x-rst` and `text/plain`.
    pub media_type: String,
    pub text: String,
}

/// A requirement of a version.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Dependency {
    /// Name of the required package.
    pub name: String,
    /// Allowed versions, in the format's notation.
    pub requirement: String,
    /// Purpose in the format's words. Empty means always.
    pub group: String,
}

/// A container image, or another artifact with a manifest.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Image {
    pub digest: String,
    /// Media type of the manifest.
    pub media_type: String,
    /// Images of an index, one for each platform.
    pub platforms: Vec<Platform>,
    /// Layers, starting with the lowest.
    pub layers: Vec<Layer>,
    /// Build steps of the image.
    pub history: Vec<History>,
    /// Labels of the configuration and annotations of the manifest.
    pub labels: BTreeMap<String, String>,
    /// Artifacts that refer to the image: signatures, bills of materials.
    pub referrers: Vec<Referrer>,
}

/// An image for one platform.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Platform {
    pub os: String,
    pub architecture: String,
    /// Variant of the processor architecture.
    pub variant: String,
    pub digest: String,
    /// Size of its configuration and layers together, in bytes. None if its manifest is not stored
    /// here.
    pub size: Option<u64>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Layer {
    pub digest: String,
    pub size: u64,
    pub media_type: String,
}

/// A build step of an image.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct History {
    /// Time of the step in RFC 3339 format.
    pub created: String,
    /// Command that made the step.
    pub created_by: String,
    pub comment: String,
    /// True if the step made no layer.
    pub empty_layer: bool,
}

/// An artifact that refers to an image.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Referrer {
    pub digest: String,
    /// Size of its manifest in bytes.
    pub size: u64,
    pub artifact_type: String,
    pub annotations: BTreeMap<String, String>,
}

/// A statement about the origin of a version or of one file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Attestation {
    /// Name of the file. Empty means the version.
    pub file: String,
    /// Kind of statement: the type of its predicate.
    pub kind: String,
    /// Unverified claims about the signer, by name.
    pub publisher: BTreeMap<String, String>,
    /// Path in the repository from which the whole statement can be fetched.
    pub path: String,
}

impl Presentation {
    /// Parses the result of `present-version`. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Presentation, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("the plugin presents {} bytes; the limit is {MAX_BYTES}", text.len()));
        }
        let mut presentation: Presentation = serde_json::from_str(text)
            .map_err(|error| format!("the plugin's presentation cannot be read: {error}"))?;
        if let Some(readme) = &mut presentation.readme {
            readme.text.truncate(readme.text.floor_char_boundary(MAX_README));
        }
        presentation.dependencies.truncate(MAX_ENTRIES);
        presentation.attestations.truncate(MAX_ENTRIES);
        if let Some(image) = &mut presentation.image {
            image.platforms.truncate(MAX_ENTRIES);
            image.layers.truncate(MAX_ENTRIES);
            image.history.truncate(MAX_ENTRIES);
            image.referrers.truncate(MAX_ENTRIES);
        }
        Ok(presentation)
    }
}
