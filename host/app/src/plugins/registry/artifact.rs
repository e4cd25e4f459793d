//! Manifests: what one is taken for a component, and what is written for one.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::RegistryError;
use super::reference::is_digest;
use super::words::{INDEX, MANIFEST, SIGNED_DIGEST, SIGNED_REFERENCE, WASM, WASM_CONFIG};

/// What names a blob or a manifest.
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
    /// Of these bytes.
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

/// `sha256:` and hex.
pub(super) fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// A manifest, or a list of manifests, as far as it is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: u32,
    media_type: Option<String>,
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    manifests: Option<Vec<Descriptor>>,
}

/// What a document is.
#[derive(Debug)]
pub(super) enum Found {
    /// A manifest's config and its layers.
    Manifest(Descriptor, Vec<Descriptor>),
    /// What a list names.
    Index(Vec<Descriptor>),
}

/// Reads a manifest or a list.
pub(super) fn read(bytes: &[u8]) -> Result<Found, RegistryError> {
    let document: Document = serde_json::from_slice(bytes)
        .map_err(|error| RegistryError::new(format!("what the registry sent is no manifest: {error}")))?;
    let Document { schema_version, media_type, config, layers, manifests } = document;
    let is = |wanted: &str| media_type.as_deref().is_none_or(|own| own == wanted);
    let (found, all) = match (config, layers, manifests) {
        (Some(config), Some(layers), None) if is(MANIFEST) => {
            let all: Vec<Descriptor> = layers.iter().chain([&config]).cloned().collect();
            (Found::Manifest(config, layers), all)
        }
        (None, None, Some(manifests)) if is(INDEX) => (Found::Index(manifests.clone()), manifests),
        _ => {
            let named = media_type.unwrap_or_else(|| "no type that it names".to_owned());
            return Err(RegistryError::new(format!("the artifact is no manifest but of {named:?}")));
        }
    };
    if schema_version != 2 {
        return Err(RegistryError::new(format!("the manifest is of schema version {schema_version}, not 2")));
    }
    match all.iter().find(|part| !is_digest(&part.digest)) {
        Some(part) => {
            Err(RegistryError::new(format!("the manifest names {:?}, which is no SHA-256", part.digest)))
        }
        None => Ok(found),
    }
}

/// The one layer of a component's manifest, of at most so many bytes.
pub(super) fn component(
    config: &Descriptor,
    layers: &[Descriptor],
    most: u64,
) -> Result<Descriptor, RegistryError> {
    if config.media_type != WASM_CONFIG {
        return Err(RegistryError::new(format!(
            "the artifact is no component: its config is {:?}, not {WASM_CONFIG}",
            config.media_type
        )));
    }
    let [layer] = layers else {
        return Err(RegistryError::new(format!(
            "the artifact has {} layers, and a component has exactly one",
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
        return Err(RegistryError::new(format!("the component has {} bytes, over {most}", layer.size)));
    }
    Ok(layer.clone())
}

/// The one manifest of a list that is for Wasm.
pub(super) fn only(manifests: &[Descriptor]) -> Result<&Descriptor, RegistryError> {
    let wasm = |part: &&Descriptor| {
        part.artifact_type.as_deref() == Some(WASM_CONFIG)
            || part.platform.as_ref().is_some_and(|platform| platform.architecture == "wasm")
    };
    let marked: Vec<&Descriptor> = manifests.iter().filter(wasm).collect();
    match (marked.as_slice(), manifests) {
        (&[one], _) | (&[], [one]) if one.media_type == MANIFEST => Ok(one),
        _ => Err(RegistryError::new(format!(
            "the reference names a list of {} manifests, of which not exactly one is for Wasm",
            manifests.len()
        ))),
    }
}

/// What a component says of itself, for its config and its annotations.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The format.
    pub format: String,
    /// The plugin's own version.
    pub version: String,
    /// Interfaces that it imports.
    pub imports: Vec<String>,
    /// Interfaces that it exports.
    pub exports: Vec<String>,
}

/// The config of a component. It holds no time, so that the same file makes the same artifact.
pub(super) fn wasm_config(layer: &str, facts: &Facts) -> Vec<u8> {
    let Facts { imports, exports, .. } = facts;
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

/// A manifest of these.
pub(super) fn manifest(config: &Descriptor, layers: &[Descriptor], annotations: Option<&Value>) -> Vec<u8> {
    let mut manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
    if let (Some(fields), Some(annotations)) = (manifest.as_object_mut(), annotations) {
        fields.insert("annotations".to_owned(), annotations.clone());
    }
    manifest.to_string().into_bytes()
}

/// What cosign signs of an artifact.
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

/// The digest of the manifest that a payload is about.
pub(super) fn signed_digest(payload: &[u8]) -> Option<String> {
    let payload: Value = serde_json::from_slice(payload).ok()?;
    Some(payload.pointer("/critical/image")?.get(SIGNED_DIGEST)?.as_str()?.to_owned())
}

/// The tag under which a manifest's signatures lie.
pub(super) fn signature_tag(manifest: &str) -> String {
    format!("{}.sig", manifest.replace(':', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(document: &Value) -> String {
        match read(document.to_string().as_bytes()) {
            Err(error) => error.to_string(),
            Ok(Found::Manifest(config, layers)) => component(&config, &layers, 10).unwrap_err().to_string(),
            Ok(Found::Index(manifests)) => only(&manifests).unwrap_err().to_string(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let facts = Facts { format: "raw".to_owned(), ..Facts::default() };
        let layer = Descriptor::of(WASM, b"component");
        let config = Descriptor::of(WASM_CONFIG, &wasm_config(&layer.digest, &facts));
        let Found::Manifest(config, layers) =
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
    fn what_is_no_component_is_refused_in_words() {
        let part = |media_type: &str, size: u64| json!({"mediaType": media_type, "digest": digest(b""), "size": size});
        let of =
            |config: Value, layers: Value| json!({"schemaVersion": 2, "config": config, "layers": layers});
        let (config, layer) = (part(WASM_CONFIG, 1), part(WASM, 1));
        assert!(
            refused(&of(part(super::super::words::IMAGE_CONFIG, 1), json!([layer]))).contains("no component")
        );
        assert!(refused(&of(config.clone(), json!([layer, layer]))).contains("2 layers"));
        assert!(refused(&of(config.clone(), json!([]))).contains("0 layers"));
        assert!(refused(&of(config.clone(), json!([part("application/x", 1)]))).contains("application/x"));
        assert!(refused(&of(config.clone(), json!([part(WASM, 11)]))).contains("11 bytes, over 10"));
        let mut wrong = layer.clone();
        wrong["digest"] = json!("md5:00");
        assert!(refused(&of(config.clone(), json!([wrong]))).contains("md5:00"));
        assert!(
            refused(&json!({"schemaVersion": 1, "config": config, "layers": [layer]})).contains("version 1")
        );
        assert!(refused(&json!([])).contains("no manifest"));
        let one = part(MANIFEST, 1);
        let mut wasm = one.clone();
        wasm["platform"] = json!({"architecture": "wasm", "os": "wasip2"});
        let list = |items: Value| json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": items});
        assert!(refused(&list(json!([one, one]))).contains("not exactly one"));
        assert!(refused(&list(json!([wasm, wasm]))).contains("not exactly one"));
        let Found::Index(both) = read(list(json!([one, wasm])).to_string().as_bytes()).unwrap() else {
            panic!()
        };
        assert!(only(&both).is_ok());
    }
}
