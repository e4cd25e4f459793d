//! The records of images and their keys. The name of an image contains no colon, so all records of
//! one kind and image are adjacent.

use packhouse_sdk::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A manifest. Its record refers to its own bytes, its config, its layers and its parts as blobs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct ManifestRecord {
    pub(crate) media_type: String,
    pub(crate) size: u64,
    /// Time of the last push, in ms since 1970. 0 in older records.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) time: u64,
    /// Bytes of its config and layers, as stated in the manifest.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) content: u64,
    /// The manifests that an index names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<Digest>,
    /// The manifest that this one refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Digest>,
}

/// The record of a tag.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct TagRecord {
    pub(crate) digest: Digest,
    /// Time of the push, in ms since 1970.
    pub(crate) time: u64,
}

/// A referrer of a manifest. The record and the list of referrers have the same form.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Referrer {
    pub(crate) media_type: String,
    pub(crate) digest: Digest,
    pub(crate) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The key of a manifest.
pub(crate) fn manifest(image: &str, digest: &Digest) -> String {
    format!("m/{image}:{digest}")
}

/// The prefix of all manifests.
pub(crate) fn all_manifests() -> &'static str {
    "m/"
}

/// The image and the digest in the key of a manifest.
pub(crate) fn of_manifest(key: &str) -> Option<(&str, Digest)> {
    let (image, digest) = key.strip_prefix(all_manifests())?.split_once(':')?;
    Some((image, digest.parse().ok()?))
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The prefix of the manifests of an image.
pub(crate) fn manifests(image: &str) -> String {
    format!("m/{image}:")
}

/// The key of a tag.
pub(crate) fn tag(image: &str, tag: &str) -> String {
    format!("t/{image}:{tag}")
}

/// The prefix of the tags of an image. The keys are in the order of the tags.
pub(crate) fn tags(image: &str) -> String {
    format!("t/{image}:")
}

/// The key of a record which states that a manifest has a tag.
pub(crate) fn tagged(image: &str, digest: &Digest, tag: &str) -> String {
    format!("d/{image}:{digest}:{tag}")
}

/// The prefix of the tags of a manifest.
pub(crate) fn tags_of(image: &str, digest: &Digest) -> String {
    format!("d/{image}:{digest}:")
}

/// The key of a record which states that a manifest refers to a subject.
pub(crate) fn referrer(image: &str, subject: &Digest, digest: &Digest) -> String {
    format!("r/{image}:{subject}:{digest}")
}

/// The prefix of the referrers of a manifest.
pub(crate) fn referrers(image: &str, subject: &Digest) -> String {
    format!("r/{image}:{subject}:")
}

/// The key of a record which states that a manifest is a part of an index.
pub(crate) fn part(image: &str, child: &Digest, index: &Digest) -> String {
    format!("p/{image}:{child}:{index}")
}

/// The prefix of the indexes that a manifest is a part of.
pub(crate) fn indexes(image: &str, child: &Digest) -> String {
    format!("p/{image}:{child}:")
}

/// The key, in a proxy, of the record of the signed statements about a tag.
pub(crate) fn tag_statements(image: &str, tag: &str) -> String {
    format!("s/{image}:{tag}")
}

/// The key, in a proxy, of the record of the versions that a manifest or a layer belongs to.
pub(crate) fn owners(image: &str, digest: &Digest) -> String {
    format!("o/{image}:{digest}")
}

/// The key of a record that is written whenever a manifest of the image gets a new reference. A
/// removal of unreferenced manifests requires an unchanged revision of this record, so that it
/// cannot miss a new reference.
pub(crate) fn touched(image: &str) -> String {
    format!("g/{image}")
}
