//! Manifests, and the descriptors in them.

use jiff::Timestamp;
use serde_json::Value;

use crate::digests::{Digests, sha256};
use crate::error::MoveError;

/// Maximum size of a manifest, in bytes.
const MAX_MANIFEST_BYTES: usize = 32 << 20;

/// A manifest with its digest and media type.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) digest: String,
    pub(crate) media_type: String,
    pub(crate) bytes: bytes::Bytes,
    pub(crate) modified: Option<Timestamp>,
}

/// Descriptor in a manifest.
#[derive(Clone, Debug)]
pub(crate) struct Descriptor {
    pub(crate) digest: String,
    pub(crate) size: Option<u64>,
    /// True if the manifest states other addresses for the bytes, as for some base layers. The
    /// registry may then not have the bytes.
    pub(crate) foreign: bool,
}

impl Manifest {
    /// Creates a manifest. Refuses bytes whose digest is not `expected`.
    pub(crate) fn checked(
        bytes: bytes::Bytes,
        media_type: &str,
        expected: Option<&str>,
        modified: Option<Timestamp>,
    ) -> Result<Manifest, MoveError> {
        if bytes.len() > MAX_MANIFEST_BYTES {
            return Err(MoveError::Refused("a manifest is larger than 32 MiB".to_owned()));
        }
        let digest = format!("sha256:{}", sha256(&bytes));
        match expected {
            Some(expected) if expected != digest => Err(MoveError::Refused(format!(
                "the source is damaged: {expected} was requested, but {digest} was received"
            ))),
            _ => {
                let media_type = match media_type {
                    "" | "application/json" | "text/plain" => media_type_within(&bytes),
                    other => other.to_owned(),
                };
                Ok(Manifest { digest, media_type, bytes, modified })
            }
        }
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// The descriptors in these members.
    pub(super) fn named(&self, members: &[&str]) -> Vec<Descriptor> {
        let json = self.json();
        let one = |value: &Value| {
            Some(Descriptor {
                digest: value.get("digest")?.as_str()?.to_owned(),
                size: value.get("size").and_then(Value::as_u64),
                foreign: value
                    .get("urls")
                    .is_some_and(|urls| urls.as_array().is_some_and(|urls| !urls.is_empty())),
            })
        };
        let values = members.iter().filter_map(|member| json.get(*member));
        values
            .flat_map(|value| match value {
                Value::Array(all) => all.iter().filter_map(one).collect::<Vec<_>>(),
                other => one(other).into_iter().collect(),
            })
            .collect()
    }
}

fn media_type_within(bytes: &[u8]) -> String {
    let json: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let stated_type = json.get("mediaType").and_then(Value::as_str);
    let index = json.get("manifests").is_some();
    let kind = if index {
        "application/vnd.oci.image.index.v1+json"
    } else {
        "application/vnd.oci.image.manifest.v1+json"
    };
    stated_type.unwrap_or(kind).to_owned()
}

/// Parses a digest for a comparison with bytes.
pub(super) fn stated(digest: &str) -> Result<Digests, MoveError> {
    let stated = digest.split_once(':').map(|(algorithm, hex)| {
        let mut stated = Digests::default();
        stated.add(algorithm, hex);
        stated
    });
    stated
        .filter(|stated| !stated.is_empty())
        .ok_or_else(|| MoveError::Refused(format!("`{digest}` is not a digest of a supported algorithm")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_must_have_the_requested_digest() {
        let bytes = bytes::Bytes::from_static(
            br#"{"config":{"digest":"sha256:a","size":1},"layers":[{"digest":"sha256:b","urls":["x"]}]}"#,
        );
        let digest = format!("sha256:{}", sha256(&bytes));
        let manifest = Manifest::checked(bytes.clone(), "", Some(&digest), None).unwrap();
        assert_eq!(manifest.media_type, "application/vnd.oci.image.manifest.v1+json");
        let named = manifest.named(&["config", "layers"]);
        assert_eq!((named.len(), named[0].size, named[1].foreign), (2, Some(1), true));
        assert!(Manifest::checked(bytes, "", Some("sha256:x"), None).is_err());
        assert!(stated("sha256:x").is_err() && stated("x").is_err());
    }
}
