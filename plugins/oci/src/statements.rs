//! Signatures, attestations and bills of materials of manifests, as clients push them: in manifests that name what they are about
//! (`subject`), under tags that do (`sha256-….sig`, `.att` and `.sbom`, as cosign has them since before there were referrers), or beside
//! the platforms of an index, as BuildKit has them. The host is handed each for the tags of what it is about.

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

/// Manifests that are looked into for what they say about one other.
const MOST_MANIFESTS: usize = 32;
/// Layers of each.
const MOST_LAYERS: usize = 16;
/// Tags of a manifest for which a statement about it is kept.
const MOST_TAGS: usize = 50;
/// Bytes of what a document is called.
const MOST_TITLE: usize = 200;
/// Notation's signatures.
const NOTATION: &str = "application/vnd.cncf.notary.signature";

/// An unsigned statement of in-toto.
const IN_TOTO: &str = "application/vnd.in-toto+json";
/// The types of what such a statement says, as they begin, and the form of what then lies in it.
const PREDICATES: [(&str, &str); 2] = [
    ("https://spdx.dev/Document", VersionDocument::SPDX),
    ("https://cyclonedx.org/bom", VersionDocument::CYCLONEDX),
];

/// What is said of one manifest in another.
struct Found {
    said: Said,
    /// The manifest in which it lies.
    within: Digest,
}

enum Said {
    /// A signed statement.
    Signed { kind: String, bytes: Vec<u8> },
    /// What it is made of.
    MadeOf { form: &'static str, media_type: String, title: String, digest: Digest, size: u64 },
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Parts {
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Vec<Descriptor>,
    manifests: Vec<Descriptor>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Descriptor {
    media_type: String,
    digest: String,
    annotations: BTreeMap<String, String>,
}

/// What tags of cosign's end with.
const KINDS: [&str; 3] = ["sig", "att", "sbom"];

/// The manifest that a tag is about which is none of a version: see [`is_of_signatures`].
pub(crate) fn subject_of_tag(tag: &str) -> Option<Digest> {
    of_tag(tag).or_else(|| Digest::new("sha256", tag.strip_prefix("sha256-")?).ok())
}

/// Whether a tag is none of a version: one of cosign's, or that under which clients list referrers where a registry does not (`sha256-…`).
pub(crate) fn is_of_signatures(tag: &str) -> bool {
    subject_of_tag(tag).is_some()
}

/// cosign's tags for what is signed of a manifest.
pub(crate) fn tags_about(digest: &Digest) -> impl Iterator<Item = String> {
    ["sig", "att"].into_iter().map(move |kind| format!("sha256-{}.{kind}", digest.hex()))
}

/// What a tag of cosign's is about.
fn of_tag(tag: &str) -> Option<Digest> {
    let (digest, _) = tag.rsplit_once('.').filter(|(_, kind)| KINDS.contains(kind))?;
    Digest::new("sha256", digest.strip_prefix("sha256-")?).ok()
}

/// What a manifest that is pushed under these tags says something about.
fn subjects(subject: Option<&Digest>, tags: &[String]) -> Vec<Digest> {
    let mut subjects: Vec<Digest> =
        subject.cloned().into_iter().chain(tags.iter().filter_map(|tag| of_tag(tag))).collect();
    subjects.sort_unstable();
    subjects.dedup();
    subjects
}

/// Adds to a push what it states about others, and what is stated about it already.
pub(crate) fn attest(
    repository: &Repository,
    change: &mut Transaction,
    image: &str,
    pushed: Pushed<'_>,
) -> Result<(), Failure> {
    let Pushed { digest, bytes, subject, tags } = pushed;
    for subject in subjects(subject, tags) {
        let tags = tags_of(repository, image, &subject)?;
        if tags.is_empty() {
            continue;
        }
        for found in said(repository, digest, bytes)? {
            tags.iter().for_each(|tag| state(change, image, tag, &subject, &found));
        }
    }
    if !tags.is_empty() {
        for found in about(repository, image, digest, bytes)? {
            tags.iter().take(MOST_TAGS).for_each(|tag| state(change, image, tag, digest, &found));
        }
    }
    Ok(())
}

/// A manifest that is pushed.
pub(crate) struct Pushed<'a> {
    pub(crate) digest: &'a Digest,
    pub(crate) bytes: &'a [u8],
    pub(crate) subject: Option<&'a Digest>,
    pub(crate) tags: &'a [String],
}

/// Takes back what a manifest that goes has stated, from the tags of what it is about. `tag` is its own, where that goes.
pub(crate) fn retract(
    repository: &Repository,
    change: &mut Transaction,
    image: &str,
    gone: Gone<'_>,
) -> Result<(), Failure> {
    let subject = gone.record.and_then(|record| record.subject.as_ref());
    let tag: Vec<String> = gone.tag.into_iter().map(str::to_owned).collect();
    for subject in subjects(subject, &tag) {
        for tag in tags_of(repository, image, &subject)? {
            change.hide_file(&VersionId::new(image, tag), &path(image, gone.digest));
        }
    }
    Ok(())
}

/// A manifest that goes, or a tag of it.
pub(crate) struct Gone<'a> {
    pub(crate) digest: &'a Digest,
    pub(crate) record: Option<&'a ManifestRecord>,
    pub(crate) tag: Option<&'a str>,
}

fn state(change: &mut Transaction, image: &str, tag: &str, subject: &Digest, found: &Found) {
    let id = VersionId::new(image, tag);
    let (file, source) = (format!("{image}/manifests/{tag}"), path(image, &found.within));
    match &found.said {
        Said::Signed { kind, bytes } => {
            let statement = Statement::new(id, kind, subject.clone(), bytes.clone());
            change.attest(&statement.of_file(file).at(source));
        }
        Said::MadeOf { form, media_type, title, digest, size } => {
            let document = VersionDocument::new(id, *form, media_type, digest.clone(), *size);
            change.document(&document.of_file(file).at(source).titled(title));
        }
    }
}

/// Where a manifest is fetched.
fn path(image: &str, digest: &Digest) -> String {
    format!("{image}/manifests/{digest}")
}

fn tags_of(repository: &Repository, image: &str, digest: &Digest) -> Result<Vec<String>, Failure> {
    let prefix = records::tags_of(image, digest);
    let keys = repository.keys(prefix.as_str()).take(MOST_TAGS);
    let tag = |key: String| key.strip_prefix(&prefix).unwrap_or_default().to_owned();
    Ok(keys.map(|key| key.map(tag)).collect::<Result<_, _>>()?)
}

/// What is said about a manifest by others that are here; `bytes` are its own.
fn about(
    repository: &Repository,
    image: &str,
    subject: &Digest,
    bytes: &[u8],
) -> Result<Vec<Found>, Failure> {
    let mut within = beside(bytes);
    for entry in repository.scan(records::referrers(image, subject)).take(MOST_MANIFESTS) {
        within.push(entry?.json::<Referrer>()?.value.digest);
    }
    // One reading for all of cosign's tags, of which there mostly is none.
    let tags = records::tag(image, &format!("sha256-{}.", subject.hex()));
    for entry in repository.scan(tags.as_str()).take(MOST_MANIFESTS) {
        let entry = entry?;
        if entry.key.strip_prefix(&tags).is_some_and(|kind| KINDS.contains(&kind)) {
            within.push(entry.json::<TagRecord>()?.value.digest);
        }
    }
    let mut found = Vec::new();
    for digest in within {
        let Some(blob) = repository.blob(&digest)? else { continue };
        found.extend(said(repository, &digest, &blob.read_all(MANIFEST_LIMIT)?)?);
    }
    Ok(found)
}

/// Of an index, the manifests that stand beside its platforms to say something of them.
fn beside(bytes: &[u8]) -> Vec<Digest> {
    let parts: Parts = serde_json::from_slice(bytes).unwrap_or_default();
    let says = |part: &&Descriptor| {
        part.annotations.get("vnd.docker.reference.type").is_some_and(|kind| kind == "attestation-manifest")
    };
    let said = parts.manifests.iter().filter(says).filter_map(|part| part.digest.parse().ok());
    said.take(MOST_MANIFESTS).collect()
}

/// What lies in a manifest; nothing where it is something else.
fn said(repository: &Repository, within: &Digest, bytes: &[u8]) -> Result<Vec<Found>, Failure> {
    let parts: Parts = serde_json::from_slice(bytes).unwrap_or_default();
    let mut found = Vec::new();
    for layer in parts.layers.iter().take(MOST_LAYERS) {
        let Some(form) = layer.form() else { continue };
        let Ok(digest) = layer.digest.parse::<Digest>() else { continue };
        let Some(blob) = repository.blob(&digest)? else { continue };
        let (media_type, title) = (layer.media_type.clone(), layer.title());
        let said = Said::MadeOf { form, media_type, title, digest, size: blob.size()? };
        found.push(Found { said, within: within.clone() });
    }
    let here = |digest: &Digest| -> Result<Option<Vec<u8>>, Failure> {
        let Some(blob) = repository.blob(digest)? else { return Ok(None) };
        let fits = blob.size()? <= Statement::MAX_BYTES as u64;
        Ok(Some(if fits { blob.read_all(Statement::MAX_BYTES as u64)? } else { Vec::new() }))
    };
    let signed = signed(bytes, here)?.into_iter();
    found.extend(
        signed.map(|Signed { kind, bytes }| Found {
            said: Said::Signed { kind, bytes },
            within: within.clone(),
        }),
    );
    Ok(found)
}

/// A signed statement: its form and its bytes, none of which there are where they are too many.
pub(crate) struct Signed {
    pub(crate) kind: String,
    pub(crate) bytes: Vec<u8>,
}

/// The signed statements in a manifest. `layer` has the bytes of one: none where it is not there, and no bytes of what is too large.
pub(crate) fn signed(
    manifest: &[u8],
    layer: impl Fn(&Digest) -> Result<Option<Vec<u8>>, Failure>,
) -> Result<Vec<Signed>, Failure> {
    let parts: Parts = serde_json::from_slice(manifest).unwrap_or_default();
    let config = parts.config.map(|config| config.media_type);
    let notation = parts.artifact_type.or(config).is_some_and(|kind| kind == NOTATION);
    let mut found = Vec::new();
    for part in parts.layers.iter().take(MOST_LAYERS).filter(|part| part.form().is_none()) {
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
            Statement::SIMPLE_SIGNING | Statement::DSSE if !bytes.is_empty() => part.apart(&bytes).write()?,
            _ => bytes,
        };
        found.push(Signed { kind: kind.to_owned(), bytes });
    }
    Ok(found)
}

impl Descriptor {
    /// In which language the bill of materials is written that lies there, as far as one does.
    fn form(&self) -> Option<&'static str> {
        if self.media_type != IN_TOTO {
            return VersionDocument::form_of(&self.media_type);
        }
        let predicate = self.annotations.get("in-toto.io/predicate-type")?;
        PREDICATES.iter().find(|(begins, _)| predicate.starts_with(begins)).map(|(_, form)| *form)
    }

    /// What it is called: as it says, else by its digest.
    fn title(&self) -> String {
        let said = self.annotations.get("org.opencontainers.image.title");
        let said = said.filter(|said| !said.is_empty() && said.len() <= MOST_TITLE && !said.contains('\0'));
        said.unwrap_or(&self.digest).clone()
    }

    /// A signature as it stands apart: what was signed, and what the annotations say of it.
    fn apart(&self, signed: &[u8]) -> DetachedSignature {
        let said = |name: &str| self.annotations.get(name).cloned().unwrap_or_default();
        DetachedSignature {
            signed: STANDARD.encode(signed),
            signature: said("dev.cosignproject.cosign/signature"),
            certificate: said("dev.sigstore.cosign/certificate"),
            chain: said("dev.sigstore.cosign/chain"),
            bundle: said("dev.sigstore.cosign/bundle"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_beside_the_platforms_of_an_index_is_found() {
        let digest = |hex: &str| format!("sha256:{}", hex.repeat(32));
        let entry = |hex: &str, kind: &str| {
            serde_json::json!({"mediaType": "m", "digest": digest(hex), "size": 1,
                "platform": {"os": "unknown"}, "annotations": {"vnd.docker.reference.type": kind}})
        };
        let index = serde_json::json!({"schemaVersion": 2, "manifests": [
            {"mediaType": "m", "digest": digest("aa"), "size": 1}, entry("bb", "attestation-manifest"), entry("cc", "other")]});
        let found = beside(index.to_string().as_bytes());
        assert_eq!(found.iter().map(Digest::to_string).collect::<Vec<_>>(), [digest("bb")]);
        assert!(beside(b"no JSON").is_empty());
    }

    #[test]
    fn a_statement_of_in_toto_is_of_the_form_of_what_it_says() {
        let form = |media_type: &str, predicate: &str| {
            let annotations = [("in-toto.io/predicate-type".to_owned(), predicate.to_owned())];
            let (media_type, digest) = (media_type.to_owned(), String::new());
            Descriptor { media_type, digest, annotations: annotations.into() }.form()
        };
        assert_eq!(form(IN_TOTO, "https://spdx.dev/Document/v2.3"), Some("spdx"));
        assert_eq!(form(IN_TOTO, "https://cyclonedx.org/bom"), Some("cyclonedx"));
        assert_eq!(form(IN_TOTO, "https://slsa.dev/provenance/v1"), None);
        assert_eq!(form("application/json", "https://spdx.dev/Document"), None);
    }

    #[test]
    fn a_tag_of_cosigns_names_a_digest() {
        let hex = "ab".repeat(32);
        let named = |tag: String| of_tag(&tag).map(|digest| digest.to_string());
        assert_eq!(named(format!("sha256-{hex}.sig")), Some(format!("sha256:{hex}")));
        assert_eq!(named(format!("sha256-{hex}.att")), Some(format!("sha256:{hex}")));
        assert_eq!(named(format!("sha256-{hex}.sbom")), Some(format!("sha256:{hex}")));
        assert!(is_of_signatures(&format!("sha256-{hex}")) && is_of_signatures(&format!("sha256-{hex}.sig")));
        assert!(!is_of_signatures("sha256-ab") && !is_of_signatures("1.0"));
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
