//! Signatures and attestations of manifests, as clients push them: in manifests that name what they are about (`subject`), or under tags
//! that do (`sha256-….sig` and `.att`, as cosign has them since before there were referrers). The host is handed each for the tags of
//! what it is about, and says what it is worth.

use crate::MANIFEST_LIMIT;
use crate::records::{self, ManifestRecord, Referrer, TagRecord};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{
    DetachedSignature, Digest, Failure, ReadAt, Repository, Statement, Transaction, VersionId,
};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Manifests that are looked into for what they say about one other.
const MOST_MANIFESTS: usize = 32;
/// Layers of each.
const MOST_LAYERS: usize = 16;
/// Tags of a manifest for which a statement about it is kept.
const MOST_TAGS: usize = 50;
/// Notation's signatures.
const NOTATION: &str = "application/vnd.cncf.notary.signature";

/// A statement that lies in a manifest.
struct Found {
    kind: String,
    bytes: Vec<u8>,
    /// Of the manifest in which it lies.
    within: Digest,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    layers: Vec<Descriptor>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Descriptor {
    media_type: String,
    digest: String,
    annotations: BTreeMap<String, String>,
}

/// What a tag of cosign's is about.
fn of_tag(tag: &str) -> Option<Digest> {
    let (digest, _) = tag.rsplit_once('.').filter(|(_, kind)| matches!(*kind, "sig" | "att"))?;
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
        for found in statements(repository, digest, bytes)? {
            tags.iter().for_each(|tag| state(change, image, tag, &subject, &found));
        }
    }
    if !tags.is_empty() {
        for found in about(repository, image, digest)? {
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
    let statement = Statement::new(id, &found.kind, subject.clone(), found.bytes.clone());
    let file = format!("{image}/manifests/{tag}");
    change.attest(&statement.of_file(file).at(path(image, &found.within)));
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

/// What is stated about a manifest by others that are here.
fn about(repository: &Repository, image: &str, subject: &Digest) -> Result<Vec<Found>, Failure> {
    let mut within = Vec::new();
    for entry in repository.scan(records::referrers(image, subject)).take(MOST_MANIFESTS) {
        within.push(entry?.json::<Referrer>()?.value.digest);
    }
    for kind in ["sig", "att"] {
        let tag = records::tag(image, &format!("sha256-{}.{kind}", subject.hex()));
        if let Some(entry) = repository.get_json::<TagRecord>(&tag)? {
            within.push(entry.value.digest);
        }
    }
    let mut found = Vec::new();
    for digest in within {
        let Some(blob) = repository.blob(&digest)? else { continue };
        found.extend(statements(repository, &digest, &blob.read_all(MANIFEST_LIMIT)?)?);
    }
    Ok(found)
}

/// The statements that lie in a manifest; none where it is something else.
fn statements(repository: &Repository, within: &Digest, bytes: &[u8]) -> Result<Vec<Found>, Failure> {
    let document: Document = serde_json::from_slice(bytes).unwrap_or_default();
    let config = document.config.map(|config| config.media_type);
    let notation = document.artifact_type.or(config).is_some_and(|kind| kind == NOTATION);
    let mut found = Vec::new();
    for layer in document.layers.iter().take(MOST_LAYERS) {
        let kind = match layer.media_type.as_str() {
            _ if notation => NOTATION,
            Statement::SIMPLE_SIGNING | Statement::DSSE => layer.media_type.as_str(),
            kind if kind.starts_with(Statement::BUNDLES) => kind,
            _ => continue,
        };
        let Some(blob) =
            layer.digest.parse().ok().map(|digest| repository.blob(&digest)).transpose()?.flatten()
        else {
            continue;
        };
        let fits = blob.size()? <= Statement::MAX_BYTES as u64;
        let bytes = if fits { blob.read_all(Statement::MAX_BYTES as u64)? } else { Vec::new() };
        let bytes = match kind {
            Statement::SIMPLE_SIGNING | Statement::DSSE if fits => layer.apart(&bytes).write()?,
            _ => bytes,
        };
        found.push(Found { kind: kind.to_owned(), bytes, within: within.clone() });
    }
    Ok(found)
}

impl Descriptor {
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
    fn a_tag_of_cosigns_names_a_digest() {
        let hex = "ab".repeat(32);
        let named = |tag: String| of_tag(&tag).map(|digest| digest.to_string());
        assert_eq!(named(format!("sha256-{hex}.sig")), Some(format!("sha256:{hex}")));
        assert_eq!(named(format!("sha256-{hex}.att")), Some(format!("sha256:{hex}")));
        for other in [
            format!("sha256-{hex}.sbom"),
            format!("sha256-{hex}"),
            "sha256-ab.sig".to_owned(),
            "1.0".to_owned(),
        ] {
            assert_eq!(named(other), None);
        }
    }
}
