//! The presentation of a tag: platforms, layers, build history, and referrers.

use crate::records::{self, ManifestRecord, Referrer, TagRecord};
use crate::{MANIFEST_LIMIT, Oci, name};
use packhouse_sdk::{
    Context, Dependency, Digest, Failure, History, Image, Layer, Platform, Present, Presentation, ReadAt,
    Readme, Repository, VersionId,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// Bytes of the largest configuration that is read.
const CONFIG_LIMIT: u64 = 4 << 20;
/// Maximum number of presented referrers.
const MAX_REFERRERS: usize = 500;
/// Maximum number of an index's manifests for which a size is computed.
const MAX_PLATFORMS: usize = 100;
/// The media type of the configuration of a Helm chart.
const HELM: &str = "application/vnd.cncf.helm.config.v1+json";

impl Present for Oci {
    fn present_version(cx: &Context, id: &VersionId) -> Result<Presentation, Failure> {
        let (repository, image) = (cx.target()?, id.name.as_str());
        let missing = || Failure::not_found(format!("There is no {}:{}", id.name, id.version));
        if repository.is_proxy() {
            // A proxy has no records of its manifests, only cached responses.
            return Ok(Presentation::default());
        }
        let tag = repository.get_json::<TagRecord>(&records::tag(image, &id.version))?;
        let digest = tag.ok_or_else(missing)?.value.digest;
        let record = record(repository, image, &digest)?.ok_or_else(missing)?;
        let manifest = document(repository, &digest, MANIFEST_LIMIT)?;
        let config = config(repository, &manifest)?;
        let mut presentation = Presentation::default();
        if text(&manifest, "/config/mediaType") == HELM {
            chart(&config, &mut presentation);
        }
        let mut labels = texts(config.pointer("/config/Labels"));
        labels.extend(texts(manifest.get("annotations")));
        presentation.image = Some(Image {
            digest: digest.to_string(),
            media_type: record.media_type,
            platforms: platforms(repository, image, &manifest, &config)?,
            layers: layers(&manifest),
            history: history(&config),
            labels,
            referrers: referrers(repository, image, &digest)?,
        });
        Ok(presentation)
    }
}

fn record(repository: &Repository, image: &str, digest: &Digest) -> Result<Option<ManifestRecord>, Failure> {
    let entry = repository.get_json::<ManifestRecord>(&records::manifest(image, digest))?;
    Ok(entry.map(|entry| entry.value))
}

/// Parses a blob as JSON. Null if it is missing, too large or not JSON.
fn document(repository: &Repository, digest: &Digest, limit: u64) -> Result<Value, Failure> {
    let Some(blob) = repository.blob(digest)? else { return Ok(Value::Null) };
    if blob.size()? > limit {
        return Ok(Value::Null);
    }
    Ok(serde_json::from_slice(&blob.read_all(limit)?).unwrap_or_default())
}

/// The configuration of a manifest. Null if it is not JSON.
fn config(repository: &Repository, manifest: &Value) -> Result<Value, Failure> {
    match name::digest(&text(manifest, "/config/digest")) {
        Ok(digest) if text(manifest, "/config/mediaType").ends_with("json") => {
            document(repository, &digest, CONFIG_LIMIT)
        }
        _ => Ok(Value::Null),
    }
}

/// The platforms of an index, or the platform in the configuration of an image.
fn platforms(
    repository: &Repository,
    image: &str,
    manifest: &Value,
    config: &Value,
) -> Result<Vec<Platform>, Failure> {
    let platform = |of: &Value, digest: String, size| Platform {
        os: text(of, "/os"),
        architecture: text(of, "/architecture"),
        variant: text(of, "/variant"),
        digest,
        size,
    };
    let Some(parts) = manifest.get("manifests").and_then(Value::as_array) else {
        let own = platform(config, String::new(), Some(size(manifest)));
        return Ok(if own.os.is_empty() { Vec::new() } else { vec![own] });
    };
    let mut found = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let of = part.get("platform").unwrap_or(&Value::Null);
        let digest_text = text(part, "/digest");
        let size = match name::digest(&digest_text) {
            Ok(digest) if at < MAX_PLATFORMS && record(repository, image, &digest)?.is_some() => {
                Some(size(&document(repository, &digest, MANIFEST_LIMIT)?))
            }
            _ => None,
        };
        found.push(platform(of, digest_text, size));
    }
    Ok(found)
}

/// Bytes of the configuration and the layers.
fn size(manifest: &Value) -> u64 {
    let of = |part: &Value| part.get("size").and_then(Value::as_u64).unwrap_or_default();
    let layers = manifest.get("layers").and_then(Value::as_array).into_iter().flatten();
    layers.chain(manifest.get("config")).map(of).fold(0, u64::saturating_add)
}

fn layers(manifest: &Value) -> Vec<Layer> {
    let layers = manifest.get("layers").and_then(Value::as_array).into_iter().flatten();
    let layer = |layer: &Value| Layer {
        digest: text(layer, "/digest"),
        size: layer.get("size").and_then(Value::as_u64).unwrap_or_default(),
        media_type: text(layer, "/mediaType"),
    };
    layers.map(layer).collect()
}

fn history(config: &Value) -> Vec<History> {
    let steps = config.get("history").and_then(Value::as_array).into_iter().flatten();
    let step = |step: &Value| History {
        created: text(step, "/created"),
        created_by: text(step, "/created_by"),
        comment: text(step, "/comment"),
        empty_layer: step.get("empty_layer").and_then(Value::as_bool).unwrap_or_default(),
    };
    steps.map(step).collect()
}

fn referrers(
    repository: &Repository,
    image: &str,
    digest: &Digest,
) -> Result<Vec<packhouse_sdk::Referrer>, Failure> {
    let mut found = Vec::new();
    for entry in repository.scan(records::referrers(image, digest)).take(MAX_REFERRERS) {
        let Referrer { digest, size, artifact_type, annotations, .. } = entry?.json::<Referrer>()?.value;
        let artifact_type = artifact_type.unwrap_or_default();
        found.push(packhouse_sdk::Referrer { digest: digest.to_string(), size, artifact_type, annotations });
    }
    Ok(found)
}

/// Presents a chart. Its configuration is its `Chart.yaml` as JSON.
fn chart(config: &Value, presentation: &mut Presentation) {
    let lines = ["/name", "/description", "/home"].map(|at| text(config, at));
    let lines: Vec<String> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    presentation.readme = (!lines.is_empty()).then(|| Readme::plain(lines.join("\n\n")));
    let dependencies = config.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    presentation.dependencies = dependencies
        .map(|one| Dependency::new(text(one, "/name"), text(one, "/version"), text(one, "/condition")))
        .collect();
}

fn text(value: &Value, at: &str) -> String {
    value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The members of an object that are strings.
fn texts(value: Option<&Value>) -> BTreeMap<String, String> {
    let members = value.and_then(Value::as_object).into_iter().flatten();
    members.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned()))).collect()
}
