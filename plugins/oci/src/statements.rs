//! Signatures, attestations and bills of materials that clients push. A manifest with statements
//! refers to the manifest that they are about in one of three ways. Most clients name the other
//! manifest in `subject`. Cosign's older form puts the other manifest's digest into the tag:
//! `sha256-….sig`, `.att` or `.sbom`. BuildKit adds the manifest with statements to an index,
//! beside the platforms. The plugin hands each statement to the host for all tags of the manifest
//! that the statement is about.

use crate::MANIFEST_LIMIT;
use crate::records::{self, ManifestRecord, Referrer, TagRecord};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{
    DetachedSignature, Digest, Failure, ReadAt, Repository, Statement, Transaction, VersionDocument,
    VersionId,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Maximum number of manifests that are searched for statements about one manifest.
const MAX_MANIFESTS: usize = 32;
/// Maximum number of layers that are read in each of these manifests.
const MAX_LAYERS: usize = 16;
/// Maximum number of a manifest's tags for which the plugin hands over its statements.
const MAX_TAGS: usize = 50;
/// Maximum size of a document's title, in bytes.
const TITLE_LIMIT: usize = 200;
/// The artifact type of Notation's signatures.
const NOTATION: &str = "application/vnd.cncf.notary.signature";
/// The media type of an unsigned in-toto statement.
const IN_TOTO: &str = "application/vnd.in-toto+json";
/// Prefixes of the predicate types of bills of materials in in-toto statements, with their document
/// forms.
const PREDICATES: [(&str, &str); 2] = [
    ("https://spdx.dev/Document", VersionDocument::SPDX),
    ("https://cyclonedx.org/bom", VersionDocument::CYCLONEDX),
];

/// A statement about a manifest, which another manifest contains.
struct FoundStatement {
    content: StatementContent,
    /// The manifest that contains the statement.
    within: Digest,
}

enum StatementContent {
    /// A signed statement.
    Signed { kind: String, bytes: Vec<u8> },
    /// A bill of materials.
    BillOfMaterials { form: &'static str, media_type: String, title: String, digest: Digest, size: u64 },
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ManifestParts {
    artifact_type: Option<String>,
    config: Option<LayerDescriptor>,
    layers: Vec<LayerDescriptor>,
    manifests: Vec<LayerDescriptor>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LayerDescriptor {
    media_type: String,
    digest: String,
    annotations: BTreeMap<String, String>,
}

/// The suffixes of cosign's tags.
const COSIGN_KINDS: [&str; 3] = ["sig", "att", "sbom"];

/// The manifest that a signature tag is about: see [`is_signature_tag`].
pub(crate) fn subject_of_tag(tag: &str) -> Option<Digest> {
    subject_of_cosign_tag(tag).or_else(|| Digest::new("sha256", tag.strip_prefix("sha256-")?).ok())
}

/// Returns true if a tag is not a version. It is then one of cosign's tags, or a tag `sha256-…`
/// without a suffix. Clients store a list of referrers under a tag `sha256-…` if a registry does
/// not support such lists.
pub(crate) fn is_signature_tag(tag: &str) -> bool {
    subject_of_tag(tag).is_some()
}

/// The tags under which cosign stores signed statements about a manifest.
pub(crate) fn tags_about(digest: &Digest) -> impl Iterator<Item = String> {
    ["sig", "att"].into_iter().map(move |kind| format!("sha256-{}.{kind}", digest.hex()))
}

/// The manifest that a tag of cosign is about.
fn subject_of_cosign_tag(tag: &str) -> Option<Digest> {
    let (digest, _) = tag.rsplit_once('.').filter(|(_, kind)| COSIGN_KINDS.contains(kind))?;
    Digest::new("sha256", digest.strip_prefix("sha256-")?).ok()
}

/// The manifests that a manifest with this `subject` and these tags is about.
fn subjects(subject: Option<&Digest>, tags: &[String]) -> Vec<Digest> {
    let mut subjects: Vec<Digest> = subject
        .cloned()
        .into_iter()
        .chain(tags.iter().filter_map(|tag| subject_of_cosign_tag(tag)))
        .collect();
    subjects.sort_unstable();
    subjects.dedup();
    subjects
}

/// Adds two kinds of statements to a push: the statements in the pushed manifest, and stored
/// statements about it.
pub(crate) fn attest(
    repository: &Repository,
    change: &mut Transaction,
    image: &str,
    pushed: PushedManifest<'_>,
) -> Result<(), Failure> {
    let PushedManifest { digest, bytes, subject, tags } = pushed;
    for subject in subjects(subject, tags) {
        let tags = tags_of(repository, image, &subject)?;
        if tags.is_empty() {
            continue;
        }
        for found in statements_in(repository, digest, bytes)? {
            tags.iter().for_each(|tag| attach(change, image, tag, &subject, &found));
        }
    }
    if !tags.is_empty() {
        for found in statements_about(repository, image, digest, bytes)? {
            tags.iter().take(MAX_TAGS).for_each(|tag| attach(change, image, tag, digest, &found));
        }
    }
    Ok(())
}

/// A pushed manifest, as [`attest`] needs it.
pub(crate) struct PushedManifest<'a> {
    pub(crate) digest: &'a Digest,
    pub(crate) bytes: &'a [u8],
    pub(crate) subject: Option<&'a Digest>,
    pub(crate) tags: &'a [String],
}

/// Removes the statements in a removed manifest from the tags of the manifests that the statements
/// are about.
pub(crate) fn retract(
    repository: &Repository,
    change: &mut Transaction,
    image: &str,
    removal: Removal<'_>,
) -> Result<(), Failure> {
    let subject = removal.record.and_then(|record| record.subject.as_ref());
    let tag: Vec<String> = removal.tag.into_iter().map(str::to_owned).collect();
    for subject in subjects(subject, &tag) {
        for tag in tags_of(repository, image, &subject)? {
            change.hide_file(&VersionId::new(image, tag), &path(image, removal.digest));
        }
    }
    Ok(())
}

/// A removed manifest, or a removed tag of a manifest.
pub(crate) struct Removal<'a> {
    pub(crate) digest: &'a Digest,
    pub(crate) record: Option<&'a ManifestRecord>,
    pub(crate) tag: Option<&'a str>,
}

fn attach(change: &mut Transaction, image: &str, tag: &str, subject: &Digest, found: &FoundStatement) {
    let id = VersionId::new(image, tag);
    let (file, source) = (format!("{image}/manifests/{tag}"), path(image, &found.within));
    match &found.content {
        StatementContent::Signed { kind, bytes } => {
            let statement = Statement::new(id, kind, subject.clone(), bytes.clone());
            change.attest(&statement.of_file(file).at(source));
        }
        StatementContent::BillOfMaterials { form, media_type, title, digest, size } => {
            let document = VersionDocument::new(id, *form, media_type, digest.clone(), *size);
            change.document(&document.of_file(file).at(source).titled(title));
        }
    }
}

/// The path of a manifest in the repository.
fn path(image: &str, digest: &Digest) -> String {
    format!("{image}/manifests/{digest}")
}

fn tags_of(repository: &Repository, image: &str, digest: &Digest) -> Result<Vec<String>, Failure> {
    let prefix = records::tags_of(image, digest);
    let keys = repository.keys(prefix.as_str()).take(MAX_TAGS);
    let tag = |key: String| key.strip_prefix(&prefix).unwrap_or_default().to_owned();
    Ok(keys.map(|key| key.map(tag)).collect::<Result<_, _>>()?)
}

/// Returns the statements that other manifests contain about `subject`. `bytes` are the bytes of
/// `subject`.
fn statements_about(
    repository: &Repository,
    image: &str,
    subject: &Digest,
    bytes: &[u8],
) -> Result<Vec<FoundStatement>, Failure> {
    let mut within = attestations_of_index(bytes);
    for entry in repository.scan(records::referrers(image, subject)).take(MAX_MANIFESTS) {
        within.push(entry?.json::<Referrer>()?.value.digest);
    }
    // One scan finds all of cosign's tags. Separate look-ups would cost more, and most manifests
    // have no such tag.
    let tags = records::tag(image, &format!("sha256-{}.", subject.hex()));
    for entry in repository.scan(tags.as_str()).take(MAX_MANIFESTS) {
        let entry = entry?;
        if entry.key.strip_prefix(&tags).is_some_and(|kind| COSIGN_KINDS.contains(&kind)) {
            within.push(entry.json::<TagRecord>()?.value.digest);
        }
    }
    let mut found = Vec::new();
    for digest in within {
        let Some(blob) = repository.blob(&digest)? else { continue };
        found.extend(statements_in(repository, &digest, &blob.read_all(MANIFEST_LIMIT)?)?);
    }
    Ok(found)
}

/// The manifests in an index that contain attestations about its platforms.
fn attestations_of_index(bytes: &[u8]) -> Vec<Digest> {
    let parts: ManifestParts = serde_json::from_slice(bytes).unwrap_or_default();
    let is_attestation = |part: &&LayerDescriptor| {
        part.annotations.get("vnd.docker.reference.type").is_some_and(|kind| kind == "attestation-manifest")
    };
    let digests = parts.manifests.iter().filter(is_attestation).filter_map(|part| part.digest.parse().ok());
    digests.take(MAX_MANIFESTS).collect()
}

/// Returns the statements in a manifest. Empty if it contains none.
fn statements_in(
    repository: &Repository,
    within: &Digest,
    bytes: &[u8],
) -> Result<Vec<FoundStatement>, Failure> {
    let parts: ManifestParts = serde_json::from_slice(bytes).unwrap_or_default();
    let mut found = Vec::new();
    for layer in parts.layers.iter().take(MAX_LAYERS) {
        let Some(form) = layer.form() else { continue };
        let Ok(digest) = layer.digest.parse::<Digest>() else { continue };
        let Some(blob) = repository.blob(&digest)? else { continue };
        let (media_type, title) = (layer.media_type.clone(), layer.title());
        let content =
            StatementContent::BillOfMaterials { form, media_type, title, digest, size: blob.size()? };
        found.push(FoundStatement { content, within: within.clone() });
    }
    let here = |digest: &Digest| -> Result<Option<Vec<u8>>, Failure> {
        let Some(blob) = repository.blob(digest)? else { return Ok(None) };
        let fits = blob.size()? <= Statement::MAX_BYTES as u64;
        Ok(Some(if fits { blob.read_all(Statement::MAX_BYTES as u64)? } else { Vec::new() }))
    };
    let signed = signed_statements(bytes, here)?.into_iter();
    found.extend(signed.map(|SignedStatement { kind, bytes }| FoundStatement {
        content: StatementContent::Signed { kind, bytes },
        within: within.clone(),
    }));
    Ok(found)
}

/// A signed statement: its form and its bytes. The bytes are empty if they exceed the limit.
pub(crate) struct SignedStatement {
    pub(crate) kind: String,
    pub(crate) bytes: Vec<u8>,
}

/// The signed statements in a manifest. `layer` returns the bytes of a layer: `None` if it does not
/// exist, and empty bytes if it is too large.
pub(crate) fn signed_statements(
    manifest: &[u8],
    layer: impl Fn(&Digest) -> Result<Option<Vec<u8>>, Failure>,
) -> Result<Vec<SignedStatement>, Failure> {
    let parts: ManifestParts = serde_json::from_slice(manifest).unwrap_or_default();
    let config = parts.config.map(|config| config.media_type);
    let notation = parts.artifact_type.or(config).is_some_and(|kind| kind == NOTATION);
    let mut found = Vec::new();
    for part in parts.layers.iter().take(MAX_LAYERS).filter(|part| part.form().is_none()) {
        let kind = match part.media_type.as_str() {
            _ if notation => NOTATION,
            Statement::SIMPLE_SIGNING | Statement::DSSE => part.media_type.as_str(),
            kind if kind.starts_with(Statement::BUNDLES) => kind,
            _ => continue,
        };
        let Some(bytes) = part.digest.parse().ok().map(|digest| layer(&digest)).transpose()?.flatten() else {
            continue;
        };
        let bytes = match kind {
            Statement::SIMPLE_SIGNING | Statement::DSSE if !bytes.is_empty() => {
                part.detached(&bytes).write()?
            }
            _ => bytes,
        };
        found.push(SignedStatement { kind: kind.to_owned(), bytes });
    }
    Ok(found)
}

impl LayerDescriptor {
    /// The form of the bill of materials in this layer. `None` if it has none.
    fn form(&self) -> Option<&'static str> {
        if self.media_type != IN_TOTO {
            return VersionDocument::form_of(&self.media_type);
        }
        let predicate = self.annotations.get("in-toto.io/predicate-type")?;
        PREDICATES.iter().find(|(prefix, _)| predicate.starts_with(prefix)).map(|(_, form)| *form)
    }

    /// The title in the annotations, or otherwise the digest.
    fn title(&self) -> String {
        let title = self.annotations.get("org.opencontainers.image.title");
        let title =
            title.filter(|title| !title.is_empty() && title.len() <= TITLE_LIMIT && !title.contains('\0'));
        title.unwrap_or(&self.digest).clone()
    }

    /// The detached signature: the signed bytes of the layer, and the signature in the annotations.
    fn detached(&self, signed: &[u8]) -> DetachedSignature {
        let annotation = |name: &str| self.annotations.get(name).cloned().unwrap_or_default();
        DetachedSignature {
            signed: STANDARD.encode(signed),
            signature: annotation("dev.cosignproject.cosign/signature"),
            certificate: annotation("dev.sigstore.cosign/certificate"),
            chain: annotation("dev.sigstore.cosign/chain"),
            bundle: annotation("dev.sigstore.cosign/bundle"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attestations_in_an_index_are_found() {
        let digest = |hex: &str| format!("sha256:{}", hex.repeat(32));
        let entry = |hex: &str, kind: &str| {
            serde_json::json!({"mediaType": "m", "digest": digest(hex), "size": 1,
                "platform": {"os": "unknown"}, "annotations": {"vnd.docker.reference.type": kind}})
        };
        let index = serde_json::json!({"schemaVersion": 2, "manifests": [
            {"mediaType": "m", "digest": digest("aa"), "size": 1}, entry("bb", "attestation-manifest"), entry("cc", "other")]});
        let found = attestations_of_index(index.to_string().as_bytes());
        assert_eq!(found.iter().map(Digest::to_string).collect::<Vec<_>>(), [digest("bb")]);
        assert!(attestations_of_index(b"no JSON").is_empty());
    }

    #[test]
    fn the_form_of_an_in_toto_statement_is_that_of_its_predicate() {
        let form = |media_type: &str, predicate: &str| {
            let annotations = [("in-toto.io/predicate-type".to_owned(), predicate.to_owned())];
            let (media_type, digest) = (media_type.to_owned(), String::new());
            LayerDescriptor { media_type, digest, annotations: annotations.into() }.form()
        };
        assert_eq!(form(IN_TOTO, "https://spdx.dev/Document/v2.3"), Some("spdx"));
        assert_eq!(form(IN_TOTO, "https://cyclonedx.org/bom"), Some("cyclonedx"));
        assert_eq!(form(IN_TOTO, "https://slsa.dev/provenance/v1"), None);
        assert_eq!(form("application/json", "https://spdx.dev/Document"), None);
    }

    #[test]
    fn a_cosign_tag_names_a_digest() {
        let hex = "ab".repeat(32);
        let named = |tag: String| subject_of_cosign_tag(&tag).map(|digest| digest.to_string());
        assert_eq!(named(format!("sha256-{hex}.sig")), Some(format!("sha256:{hex}")));
        assert_eq!(named(format!("sha256-{hex}.att")), Some(format!("sha256:{hex}")));
        assert_eq!(named(format!("sha256-{hex}.sbom")), Some(format!("sha256:{hex}")));
        assert!(is_signature_tag(&format!("sha256-{hex}")) && is_signature_tag(&format!("sha256-{hex}.sig")));
        assert!(!is_signature_tag("sha256-ab") && !is_signature_tag("1.0"));
        for other in [
            format!("sha256-{hex}.json"),
            format!("sha256-{hex}"),
            "sha256-ab.sig".to_owned(),
            "1.0".to_owned(),
        ] {
            assert_eq!(named(other), None);
        }
    }
}
