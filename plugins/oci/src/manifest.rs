//! Parsing of manifests: images and indexes of the OCI image specification 1.1 and of Docker's
//! schema 2.
//!
//! Config and layers may have any media type: charts, signatures, build caches and modules are all
//! pushed as image manifests.

use crate::failure;
use packhouse_sdk::{Digest, Failure};
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt;

const OCI_IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_IMAGE: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

/// Every media type that a manifest can have here. Requests to upstreams list them in `Accept`.
pub(crate) const ACCEPT: [&str; 4] = [OCI_IMAGE, OCI_INDEX, DOCKER_IMAGE, DOCKER_LIST];
/// The media type of a list of referrers.
pub(crate) const INDEX: &str = OCI_INDEX;

/// Maximum number of manifests that an index may name. Each manifest takes two of the 10,000
/// changes that a commit may have.
const MAX_CHILDREN: usize = 2_000;
/// Maximum number of layers of an image.
const MAX_LAYERS: usize = 5_000;
/// Maximum number of annotations of a manifest.
const MAX_ANNOTATIONS: usize = 5_000;
/// Maximum size of a referrer's annotations as JSON, in bytes. The list of referrers repeats the
/// annotations.
const ANNOTATION_BYTES: usize = 256 << 10;

/// The parts of a manifest that a registry uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Manifest {
    /// One of [`ACCEPT`].
    pub(crate) media_type: String,
    /// Blobs that must be stored here.
    pub(crate) blobs: Vec<Digest>,
    /// Blobs that may be stored elsewhere, such as base layers that may not be redistributed.
    pub(crate) foreign: Vec<Digest>,
    /// Manifests that an index names.
    pub(crate) children: Vec<Digest>,
    /// The manifest that this one refers to.
    pub(crate) subject: Option<Digest>,
    /// The `artifactType` of the manifest, or otherwise the media type of its config.
    pub(crate) artifact_type: Option<String>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// The sizes of the config and the layers of an image, as stated in the manifest, for display.
    pub(crate) sizes: Vec<(Digest, u64)>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestDocument {
    schema_version: u64,
    media_type: Option<String>,
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
    fs_layers: Option<IgnoredAny>,
    subject: Option<Descriptor>,
    annotations: Option<Annotations>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: Option<String>,
    digest: String,
    size: u64,
    urls: Option<Vec<String>>,
}

impl Manifest {
    /// Parses a manifest that was sent as `content_type`. If there is no content type, the
    /// `mediaType` in the manifest decides.
    ///
    /// # Errors
    /// 400 `MANIFEST_INVALID` for another media type and for a malformed or contradictory document;
    /// 400 `DIGEST_INVALID` for a digest that is not SHA-256.
    pub(crate) fn parse(bytes: &[u8], content_type: Option<&str>) -> Result<Self, Failure> {
        let sent = content_type.and_then(|text| text.split(';').next()).map(str::trim);
        if sent.is_some_and(|sent| !ACCEPT.contains(&sent)) {
            return Err(unsupported());
        }
        // The parser refuses a repeated member name, because clients disagree about which of the
        // values applies.
        let document: ManifestDocument = serde_json::from_slice(bytes)
            .map_err(|_| failure::manifest("manifest body is not valid JSON"))?;
        let own = document.media_type.as_deref();
        let media_type = match (sent, own) {
            (Some(sent), Some(own)) if sent != own => {
                return Err(failure::manifest("mediaType in the manifest does not match its Content-Type"));
            }
            (Some(known), _) | (None, Some(known)) if ACCEPT.contains(&known) => known.to_owned(),
            _ => return Err(unsupported()),
        };
        if document.schema_version != 2 || document.fs_layers.is_some() {
            return Err(unsupported());
        }
        match media_type.as_str() {
            OCI_INDEX | DOCKER_LIST => index(document, media_type),
            _ => image(document, media_type),
        }
    }
}

/// Returns true if these bytes can be a manifest of this media type. Checks only the members that
/// every client relies on: manifests of an upstream need not follow the rules for a push here.
pub(crate) fn is_manifest(bytes: &[u8], media_type: &str) -> bool {
    let Ok(outline) = serde_json::from_slice::<Outline>(bytes) else { return false };
    let parts = match media_type {
        OCI_INDEX | DOCKER_LIST => outline.manifests.is_some(),
        _ => outline.config.is_some(),
    };
    outline.schema_version == 2 && parts && outline.media_type.is_none_or(|own| own == media_type)
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Outline {
    schema_version: u64,
    media_type: Option<String>,
    config: Option<BTreeMap<String, IgnoredAny>>,
    manifests: Option<Vec<IgnoredAny>>,
}

/// Returns true if a descriptor of this type refers to a manifest.
fn is_manifest_type(media_type: Option<&str>) -> bool {
    media_type.is_some_and(|media_type| ACCEPT.contains(&media_type))
}

fn unsupported() -> Failure {
    failure::manifest("unsupported manifest media type")
}

fn image(document: ManifestDocument, media_type: String) -> Result<Manifest, Failure> {
    if document.manifests.is_some() {
        return Err(failure::manifest("an image manifest must not have `manifests`"));
    }
    let Some(config) = &document.config else {
        return Err(failure::manifest("an image manifest must have a `config`"));
    };
    let artifact_type = document.artifact_type.clone().or_else(|| config.media_type.clone());
    let (mut blobs, mut foreign) = (vec![config.checked()?], Vec::new());
    let mut sizes = vec![(config.checked()?, config.size)];
    let layers = document.layers.as_deref().unwrap_or_default();
    if layers.len() > MAX_LAYERS {
        return Err(failure::manifest(format!("an image may have at most {MAX_LAYERS} layers")));
    }
    for layer in layers {
        if layer.is_foreign() {
            foreign.push(layer.checked()?)
        } else {
            blobs.push(layer.checked()?);
            sizes.push((layer.checked()?, layer.size));
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    finish(document, media_type, Manifest { blobs, foreign, artifact_type, sizes, ..Manifest::empty() })
}

fn index(document: ManifestDocument, media_type: String) -> Result<Manifest, Failure> {
    if document.layers.is_some() || document.config.is_some() {
        return Err(failure::manifest("an index must not have `layers` or `config`"));
    }
    let (mut blobs, mut children) = (Vec::new(), Vec::new());
    let parts = document.manifests.as_deref().unwrap_or_default();
    if parts.len() > MAX_CHILDREN {
        return Err(failure::manifest(format!("an index may name at most {MAX_CHILDREN} manifests")));
    }
    for part in parts {
        // Some build caches list layers in an index.
        if is_manifest_type(part.media_type.as_deref()) {
            children.push(part.checked()?)
        } else {
            blobs.push(part.checked()?)
        }
    }
    children.sort_unstable();
    children.dedup();
    let artifact_type = document.artifact_type.clone();
    finish(document, media_type, Manifest { blobs, children, artifact_type, ..Manifest::empty() })
}

fn finish(document: ManifestDocument, media_type: String, manifest: Manifest) -> Result<Manifest, Failure> {
    let subject = document.subject.map(|subject| subject.checked()).transpose()?;
    let annotations = document.annotations.unwrap_or_default().0;
    if subject.is_some() && serde_json::to_vec(&annotations)?.len() > ANNOTATION_BYTES {
        return Err(failure::manifest(format!(
            "a referrer may have at most {ANNOTATION_BYTES} bytes of annotations"
        )));
    }
    Ok(Manifest { media_type, subject, annotations, ..manifest })
}

impl Manifest {
    fn empty() -> Self {
        Self {
            media_type: String::new(),
            blobs: Vec::new(),
            foreign: Vec::new(),
            children: Vec::new(),
            subject: None,
            artifact_type: None,
            annotations: BTreeMap::new(),
            sizes: Vec::new(),
        }
    }
}

impl Descriptor {
    fn checked(&self) -> Result<Digest, Failure> {
        crate::name::digest(&self.digest)
    }

    fn is_foreign(&self) -> bool {
        let kind = self.media_type.as_deref().unwrap_or_default();
        kind.contains(".nondistributable.")
            || kind.contains(".foreign.")
            || self.urls.as_ref().is_some_and(|urls| !urls.is_empty())
    }
}

/// A map of strings, of bounded size.
#[derive(Default)]
struct Annotations(BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct AnnotationsVisitor;
        impl<'de> Visitor<'de> for AnnotationsVisitor {
            type Value = Annotations;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(out, "at most {MAX_ANNOTATIONS} names with strings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Annotations, A::Error> {
                let mut all = BTreeMap::new();
                while let Some((name, value)) = map.next_entry()? {
                    if all.len() == MAX_ANNOTATIONS {
                        return Err(serde::de::Error::invalid_length(all.len() + 1, &self));
                    }
                    all.insert(name, value);
                }
                Ok(Annotations(all))
            }
        }
        from.deserialize_map(AnnotationsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn descriptor(kind: &str, digit: char) -> Value {
        json!({"mediaType": kind, "digest": format!("sha256:{}", String::from(digit).repeat(64)), "size": 1})
    }

    fn image() -> Value {
        json!({
            "schemaVersion": 2,
            "mediaType": OCI_IMAGE,
            "config": descriptor("application/x.config", '1'),
            "layers": [descriptor("application/x.layer", '2')],
        })
    }

    fn parse(document: &Value, sent: Option<&str>) -> Result<Manifest, String> {
        Manifest::parse(document.to_string().as_bytes(), sent)
            .map_err(|failure| failure.problems[0].message.clone())
    }

    fn with(name: &str, value: Value) -> Value {
        let mut document = image();
        document[name] = value;
        document
    }

    #[test]
    fn an_image_names_its_config_and_its_layers() {
        let manifest = parse(&image(), Some(&format!("{OCI_IMAGE}; charset=utf-8"))).unwrap();
        assert_eq!((manifest.blobs.len(), manifest.foreign.len()), (2, 0));
        assert_eq!(manifest.artifact_type.as_deref(), Some("application/x.config"));
        let typed = parse(&with("artifactType", json!("application/x.sbom")), None).unwrap();
        assert_eq!(typed.artifact_type.as_deref(), Some("application/x.sbom"));
        assert_eq!(parse(&with("layers", Value::Null), None).unwrap().blobs.len(), 1);
    }

    #[test]
    fn a_web_page_is_not_a_manifest() {
        let is = |document: &Value, media_type| is_manifest(document.to_string().as_bytes(), media_type);
        assert!(is(&image(), OCI_IMAGE) && is(&with("mediaType", Value::Null), DOCKER_IMAGE));
        let index = json!({"schemaVersion": 2, "manifests": [], "anything": [1, {"else": null}]});
        assert!(is(&index, OCI_INDEX) && is(&index, DOCKER_LIST));
        for (document, media_type) in [
            (image(), DOCKER_IMAGE),
            (image(), OCI_INDEX),
            (index, OCI_IMAGE),
            (with("schemaVersion", json!(1)), OCI_IMAGE),
            (with("config", json!("x")), OCI_IMAGE),
            (json!({"errors": []}), OCI_IMAGE),
            (json!([]), OCI_INDEX),
        ] {
            assert!(!is(&document, media_type), "{media_type} {document}");
        }
        for text in ["", "<html></html>", "{", "null"] {
            assert!(!is_manifest(text.as_bytes(), OCI_IMAGE), "{text}");
        }
    }

    #[test]
    fn foreign_layers_need_not_be_stored_here() {
        let mut elsewhere = descriptor("application/x.layer", '3');
        elsewhere["urls"] = json!(["https://example.com/layer"]);
        for layer in [
            descriptor("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", '3'),
            descriptor("application/vnd.oci.image.layer.nondistributable.v1.tar", '3'),
            elsewhere,
        ] {
            let manifest = parse(&with("layers", json!([layer])), None).unwrap();
            assert_eq!((manifest.blobs.len(), manifest.foreign.len()), (1, 1));
        }
    }

    #[test]
    fn an_index_names_manifests_or_the_layers_of_a_cache() {
        let child = descriptor(DOCKER_IMAGE, '4');
        let layers = [child.clone(), child, descriptor("application/x.layer", '5')];
        let document = json!({"schemaVersion": 2, "manifests": layers});
        let manifest = parse(&document, Some(DOCKER_LIST)).unwrap();
        assert_eq!((manifest.children.len(), manifest.blobs.len()), (1, 1));
        assert_eq!(manifest.artifact_type, None);
    }

    #[test]
    fn a_contradictory_manifest_is_refused() {
        let both = with("manifests", json!([]));
        for (document, sent, message) in [
            (image(), Some(DOCKER_IMAGE), "mediaType in the manifest does not match its Content-Type"),
            (image(), Some("application/json"), "unsupported manifest media type"),
            (with("mediaType", Value::Null), None, "unsupported manifest media type"),
            (with("schemaVersion", json!(1)), None, "unsupported manifest media type"),
            (with("fsLayers", json!([])), None, "unsupported manifest media type"),
            (both, Some(OCI_IMAGE), "an image manifest must not have `manifests`"),
            (with("config", Value::Null), None, "an image manifest must have a `config`"),
            (with("layers", json!([{"digest": "sha256:1"}])), None, "manifest body is not valid JSON"),
            (with("annotations", json!({"a": 1})), None, "manifest body is not valid JSON"),
        ] {
            assert_eq!(parse(&document, sent).unwrap_err(), message, "{document}");
        }
        let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [], "layers": []});
        assert_eq!(parse(&index, None).unwrap_err(), "an index must not have `layers` or `config`");
        let twice = r#"{"schemaVersion": 2, "config": null, "config": null}"#;
        let failure = Manifest::parse(twice.as_bytes(), Some(OCI_IMAGE)).unwrap_err();
        assert_eq!(failure.problems[0].message, "manifest body is not valid JSON");
    }

    #[test]
    fn digests_must_be_sha256() {
        let mut document = image();
        document["config"]["digest"] = json!(format!("sha512:{}", "1".repeat(128)));
        assert!(parse(&document, None).unwrap_err().contains("a digest must be `sha256:`"));
        assert!(parse(&with("subject", json!({"digest": "x", "size": 0})), None).is_err());
    }

    #[test]
    fn numbers_of_parts_are_bounded() {
        let layers: Vec<Value> = (0..=MAX_LAYERS).map(|_| descriptor("x", '1')).collect();
        assert!(parse(&with("layers", json!(layers)), None).unwrap_err().contains("at most 5000 layers"));
        let children: Vec<Value> = (0..=MAX_CHILDREN).map(|_| descriptor(OCI_IMAGE, '1')).collect();
        let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": children});
        assert!(parse(&index, None).unwrap_err().contains("at most 2000 manifests"));
        let annotations: serde_json::Map<_, _> =
            (0..=MAX_ANNOTATIONS).map(|n| (n.to_string(), json!(""))).collect();
        assert_eq!(
            parse(&with("annotations", json!(annotations)), None).unwrap_err(),
            "manifest body is not valid JSON"
        );
    }
}
