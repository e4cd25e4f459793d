//! Reading and writing of the manifests of components.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::RegistryError;
use super::protocol::{INDEX, MANIFEST, SIGNED_DIGEST, SIGNED_REFERENCE, WASM, WASM_CONFIG};
use super::reference::is_digest;

/// Reference to a blob or a manifest.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) artifact_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) platform: Option<Platform>,
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(super) annotations: serde_json::Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Platform {
    #[serde(default)]
    architecture: String,
}

impl Descriptor {
    pub(super) fn of(media_type: &str, bytes: &[u8]) -> Descriptor {
        Descriptor {
            media_type: media_type.to_owned(),
            digest: digest(bytes),
            size: bytes.len() as u64,
            artifact_type: None,
            platform: None,
            annotations: serde_json::Map::new(),
        }
    }
}

/// Returns the SHA-256 of the bytes, as `sha256:` and hex.
pub(super) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// A manifest or a list of manifests. Contains only the members that the server reads.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestJson {
    schema_version: u32,
    media_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

#[derive(Debug)]
pub(super) enum ManifestKind {
    /// Config and layers of a manifest.
    Manifest(Descriptor, Vec<Descriptor>),
    Index(Vec<Descriptor>),
}

/// Reads a manifest or a list.
pub(super) fn read(bytes: &[u8]) -> Result<ManifestKind, RegistryError> {
    let document: ManifestJson = serde_json::from_slice(bytes)
        .map_err(|error| RegistryError::new(format!("the registry's response is not a manifest: {error}")))?;
    let ManifestJson { schema_version, media_type, config, layers, manifests } = document;
    let is = |expected: &str| media_type.as_deref().is_none_or(|own| own == expected);
    let (found, all) = match (config, layers, manifests) {
        (Some(config), Some(layers), None) if is(MANIFEST) => {
            let all: Vec<Descriptor> = layers.iter().chain([&config]).cloned().collect();
            (ManifestKind::Manifest(config, layers), all)
        }
        (None, None, Some(manifests)) if is(INDEX) => (ManifestKind::Index(manifests.clone()), manifests),
        _ => {
            let named = media_type.unwrap_or_else(|| "an unknown type".to_owned());
            return Err(RegistryError::new(format!("the artifact is not a manifest; its type is {named:?}")));
        }
    };
    if schema_version != 2 {
        return Err(RegistryError::new(format!(
            "the manifest has schema version {schema_version}; expected 2"
        )));
    }
    match all.iter().find(|part| !is_digest(&part.digest)) {
        Some(part) => Err(RegistryError::new(format!(
            "the manifest contains the digest {:?}, which is not SHA-256",
            part.digest
        ))),
        None => Ok(found),
    }
}

/// Returns the only layer of a component's manifest. `most` is the maximum size of the layer in
/// bytes.
pub(super) fn component(
    config: &Descriptor,
    layers: &[Descriptor],
    most: u64,
) -> Result<Descriptor, RegistryError> {
    if config.media_type != WASM_CONFIG {
        return Err(RegistryError::new(format!(
            "the artifact is not a component: its config type is {:?}, not {WASM_CONFIG}",
            config.media_type
        )));
    }
    let [layer] = layers else {
        return Err(RegistryError::new(format!(
            "the artifact has {} layers; a component must have exactly one",
            layers.len()
        )));
    };
    if layer.media_type != WASM {
        return Err(RegistryError::new(format!(
            "the artifact's layer is {:?}, not {WASM}",
            layer.media_type
        )));
    }
    if layer.size > most {
        return Err(RegistryError::new(format!(
            "the component has {} bytes; the limit is {most}",
            layer.size
        )));
    }
    Ok(layer.clone())
}

/// Returns the only manifest for Wasm in a list.
pub(super) fn only(manifests: &[Descriptor]) -> Result<&Descriptor, RegistryError> {
    let wasm = |part: &&Descriptor| {
        part.artifact_type.as_deref() == Some(WASM_CONFIG)
            || part.platform.as_ref().is_some_and(|platform| platform.architecture == "wasm")
    };
    let marked: Vec<&Descriptor> = manifests.iter().filter(wasm).collect();
    match (marked.as_slice(), manifests) {
        (&[one], _) | (&[], [one]) if one.media_type == MANIFEST => Ok(one),
        _ => Err(RegistryError::new(format!(
            "the reference leads to a list of {} manifests; exactly one of them must be for Wasm",
            manifests.len()
        ))),
    }
}

/// Facts about a component that its config and annotations contain.
#[derive(Clone, Debug, Default)]
pub struct ArtifactFacts {
    pub format: String,
    pub version: String,
    pub imports: Vec<String>,
    pub exports: Vec<String>,
}

/// Creates the config of a component. The config contains no current time, so that the same file
/// always gives the same artifact.
pub(super) fn wasm_config(layer: &str, facts: &ArtifactFacts) -> Vec<u8> {
    let ArtifactFacts { imports, exports, .. } = facts;
    let config = json!({
        "created": "1970-01-01T00:00:00Z",
        "author": null,
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [layer],
        "component": {"exports": exports, "imports": imports, "target": null},
    });
    config.to_string().into_bytes()
}

/// Creates a manifest from its parts.
pub(super) fn manifest(config: &Descriptor, layers: &[Descriptor], annotations: Option<&Value>) -> Vec<u8> {
    let mut manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
    if let (Some(fields), Some(annotations)) = (manifest.as_object_mut(), annotations) {
        fields.insert("annotations".to_owned(), annotations.clone());
    }
    manifest.to_string().into_bytes()
}

/// Creates the payload that cosign signs for an artifact.
pub(super) fn payload(reference: &str, manifest: &str) -> Vec<u8> {
    let payload = json!({
        "critical": {
            "identity": {SIGNED_REFERENCE: reference},
            "image": {SIGNED_DIGEST: manifest},
            "type": "cosign container image signature",
        },
        "optional": null,
    });
    payload.to_string().into_bytes()
}

/// Returns the digest of the manifest to which a signed payload refers.
pub(super) fn signed_digest(payload: &[u8]) -> Option<String> {
    let payload: Value = serde_json::from_slice(payload).ok()?;
    Some(payload.pointer("/critical/image")?.get(SIGNED_DIGEST)?.as_str()?.to_owned())
}

/// Returns the tag under which the signatures of a manifest are stored.
pub(super) fn signature_tag(manifest: &str) -> String {
    format!("{}.sig", manifest.replace(':', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(document: &Value) -> String {
        match read(document.to_string().as_bytes()) {
            Err(error) => error.to_string(),
            Ok(ManifestKind::Manifest(config, layers)) => {
                component(&config, &layers, 10).unwrap_err().to_string()
            }
            Ok(ManifestKind::Index(manifests)) => only(&manifests).unwrap_err().to_string(),
        }
    }

    #[test]
    fn written_manifests_can_be_read() {
        let facts = ArtifactFacts { format: "raw".to_owned(), ..ArtifactFacts::default() };
        let layer = Descriptor::of(WASM, b"component");
        let config = Descriptor::of(WASM_CONFIG, &wasm_config(&layer.digest, &facts));
        let ManifestKind::Manifest(config, layers) =
            read(&manifest(&config, std::slice::from_ref(&layer), None)).unwrap()
        else {
            panic!("no manifest")
        };
        assert_eq!(component(&config, &layers, 10), Ok(layer));
        let signed = payload("h.test/raw", "sha256:00");
        assert_eq!(signed_digest(&signed).as_deref(), Some("sha256:00"));
        assert_eq!(signature_tag("sha256:00"), "sha256-00.sig");
    }

    #[test]
    fn an_artifact_that_is_not_a_component_is_refused_with_a_reason() {
        let part = |media_type: &str, size: u64| json!({"mediaType": media_type, "digest": digest(b""), "size": size});
        let of =
            |config: Value, layers: Value| json!({"schemaVersion": 2, "config": config, "layers": layers});
        let (config, layer) = (part(WASM_CONFIG, 1), part(WASM, 1));
        assert!(
            refused(&of(part(super::super::protocol::IMAGE_CONFIG, 1), json!([layer])))
                .contains("not a component")
        );
        assert!(refused(&of(config.clone(), json!([layer, layer]))).contains("2 layers"));
        assert!(refused(&of(config.clone(), json!([]))).contains("0 layers"));
        assert!(refused(&of(config.clone(), json!([part("application/x", 1)]))).contains("application/x"));
        assert!(refused(&of(config.clone(), json!([part(WASM, 11)]))).contains("11 bytes; the limit is 10"));
        let mut wrong = layer.clone();
        wrong["digest"] = json!("md5:00");
        assert!(refused(&of(config.clone(), json!([wrong]))).contains("md5:00"));
        assert!(
            refused(&json!({"schemaVersion": 1, "config": config, "layers": [layer]})).contains("version 1")
        );
        assert!(refused(&json!([])).contains("not a manifest"));
        let one = part(MANIFEST, 1);
        let mut wasm = one.clone();
        wasm["platform"] = json!({"architecture": "wasm", "os": "wasip2"});
        let list = |items: Value| json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": items});
        assert!(refused(&list(json!([one, one]))).contains("exactly one of them must be"));
        assert!(refused(&list(json!([wasm, wasm]))).contains("exactly one of them must be"));
        let ManifestKind::Index(both) = read(list(json!([one, wasm])).to_string().as_bytes()).unwrap() else {
            panic!()
        };
        assert!(only(&both).is_ok());
    }
}
