//! What is remembered of images, and under which keys. No image's name holds a colon, so what is one image's lies together.

use packhouse_sdk::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A manifest: names its own bytes, its config, its layers and its parts as blobs.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct ManifestRecord {
    pub(crate) media_type: String,
    pub(crate) size: u64,
    /// When it was put last, in ms since 1970; 0 in records of before that was remembered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) time: u64,
    /// Bytes of its config and layers, as it states them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) content: u64,
    /// Of an index: the manifests that it names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) children: Vec<Digest>,
    /// What it says something about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subject: Option<Digest>,
}

/// A tag.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct TagRecord {
    pub(crate) digest: Digest,
    /// When it was put, in ms since 1970.
    pub(crate) time: u64,
}

/// A manifest as the list of a subject's referrers has it, and as its record is.
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

/// A manifest.
pub(crate) fn manifest(image: &str, digest: &Digest) -> String {
    format!("m/{image}:{digest}")
}

/// All manifests.
pub(crate) fn all_manifests() -> &'static str {
    "m/"
}

/// The image and the digest of a manifest's key.
pub(crate) fn of_manifest(key: &str) -> Option<(&str, Digest)> {
    let (image, digest) = key.strip_prefix(all_manifests())?.split_once(':')?;
    Some((image, digest.parse().ok()?))
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// All manifests of an image.
pub(crate) fn manifests(image: &str) -> String {
    format!("m/{image}:")
}

/// A tag.
pub(crate) fn tag(image: &str, tag: &str) -> String {
    format!("t/{image}:{tag}")
}

/// All tags of an image, in their order.
pub(crate) fn tags(image: &str) -> String {
    format!("t/{image}:")
}

/// That this tag is a manifest's.
pub(crate) fn tagged(image: &str, digest: &Digest, tag: &str) -> String {
    format!("d/{image}:{digest}:{tag}")
}

/// All tags of a manifest.
pub(crate) fn tags_of(image: &str, digest: &Digest) -> String {
    format!("d/{image}:{digest}:")
}

/// That a manifest says something about another.
pub(crate) fn referrer(image: &str, subject: &Digest, digest: &Digest) -> String {
    format!("r/{image}:{subject}:{digest}")
}

/// All that say something about a manifest.
pub(crate) fn referrers(image: &str, subject: &Digest) -> String {
    format!("r/{image}:{subject}:")
}

/// That a manifest is a part of an index.
pub(crate) fn part(image: &str, child: &Digest, index: &Digest) -> String {
    format!("p/{image}:{child}:{index}")
}

/// All indexes that a manifest is a part of.
pub(crate) fn indexes(image: &str, child: &Digest) -> String {
    format!("p/{image}:{child}:")
}

/// Of a proxy: what was stated of what a tag names upstream.
pub(crate) fn stated(image: &str, tag: &str) -> String {
    format!("s/{image}:{tag}")
}

/// Of a proxy: the versions that a manifest or a layer belongs to.
pub(crate) fn owner(image: &str, digest: &Digest) -> String {
    format!("o/{image}:{digest}")
}

/// Put whenever something of the image begins to be pointed to, so that who removes what nothing points to sees it.
pub(crate) fn touched(image: &str) -> String {
    format!("g/{image}")
}
