//! Manifests: what they are, and what they name.

use jiff::Timestamp;
use serde_json::Value;

use crate::digests::{Digests, sha256};
use crate::fault::Fault;

/// Bytes of a manifest.
const MOST: usize = 32 << 20;

/// A manifest as it was read.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) digest: String,
    pub(crate) media_type: String,
    pub(crate) bytes: bytes::Bytes,
    pub(crate) modified: Option<Timestamp>,
}

/// Something that a manifest names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) digest: String,
    pub(crate) size: Option<u64>,
    /// Its bytes may lie elsewhere, as those of some base layers.
    pub(crate) foreign: bool,
}

impl Manifest {
    /// It with its digest, which must be what was asked for.
    pub(crate) fn checked(
        bytes: bytes::Bytes,
        media_type: &str,
        wanted: Option<&str>,
        modified: Option<Timestamp>,
    ) -> Result<Manifest, Fault> {
        if bytes.len() > MOST {
            return Err(Fault::Refused("a manifest is larger than 32 MiB".to_owned()));
        }
        let digest = format!("sha256:{}", sha256(&bytes));
        match wanted {
            Some(wanted) if wanted != digest => Err(Fault::Refused(format!(
                "the source is damaged: {wanted} was asked for, but {digest} came"
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

    /// What stands in these members.
    pub(super) fn named(&self, members: &[&str]) -> Vec<Named> {
        let json = self.json();
        let one = |value: &Value| {
            Some(Named {
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
    let said = json.get("mediaType").and_then(Value::as_str);
    let index = json.get("manifests").is_some();
    let kind = if index {
        "application/vnd.oci.image.index.v1+json"
    } else {
        "application/vnd.oci.image.manifest.v1+json"
    };
    said.unwrap_or(kind).to_owned()
}

/// The digest as one that bytes are compared with.
pub(super) fn stated(digest: &str) -> Result<Digests, Fault> {
    let stated = digest.split_once(':').map(|(algorithm, hex)| {
        let mut stated = Digests::default();
        stated.add(algorithm, hex);
        stated
    });
    stated
        .filter(|stated| !stated.is_empty())
        .ok_or_else(|| Fault::Refused(format!("`{digest}` is no digest that is known here")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_is_what_was_asked_for() {
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
