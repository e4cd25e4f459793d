//! Attestations that a client publishes with a tarball: Sigstore bundles, stored and served
//! unchanged.

use crate::dist::Tarball;
use crate::document::{AttachmentData, RequestDocument, invalid};
use crate::name::PackageName;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{Failure, Statement};
use serde_json::{Value, json};

/// Prefix of the predicate types of provenance.
const PROVENANCE: &str = "https://slsa.dev/provenance/";

/// Maximum number of bundles that are read from an upstream's response.
const MOST: usize = 10;

/// Attestations of a version that is being published.
#[derive(Debug)]
pub(crate) struct Attestations {
    /// The document that clients get as the version's attestations.
    pub(crate) document: Vec<u8>,
    /// The bundles, each with its media type.
    pub(crate) bundles: Vec<(String, Vec<u8>)>,
    /// Predicate type of the provenance, if one of the bundles is a provenance.
    pub(crate) provenance: Option<String>,
}

/// The path of a version's attestations.
pub(crate) fn path(name: &PackageName, number: &str) -> String {
    format!("-/npm/v1/attestations/{name}@{number}")
}

/// Reads the attestations among a document's attachments. Returns `None` without any.
///
/// # Errors
/// 400 for an invalid bundle, or for a bundle about another file.
pub(crate) fn read(document: &RequestDocument, tarball: &Tarball) -> Result<Option<Attestations>, Failure> {
    let (mut all, mut bundles) = (Vec::new(), Vec::new());
    let mut provenance = None;
    for (name, attachment, data) in document.attachments() {
        if !attachment.is_bundle(name) {
            continue;
        }
        let AttachmentData::Text(text) = data else {
            return Err(invalid(&format!("the attestation {name} is not a JSON document")));
        };
        let (predicate, bundle) = bundle(name, text, &tarball.sha512)?;
        if predicate.starts_with(PROVENANCE) {
            provenance = Some(predicate.clone());
        }
        let kind = bundle.get("mediaType").and_then(Value::as_str).unwrap_or(Statement::BUNDLE);
        bundles.push((kind.to_owned(), text.as_bytes().to_vec()));
        all.push(json!({"predicateType": predicate, "bundle": bundle}));
    }
    if all.is_empty() {
        return Ok(None);
    }
    let document = serde_json::to_vec(&json!({"attestations": all}))?;
    Ok(Some(Attestations { document, bundles, provenance }))
}

/// Returns the bundles about this tarball in an upstream's response, each with its media type.
/// Leaves out invalid bundles and bundles about other files. A proxy serves the upstream's document
/// unchanged, but records only these bundles as statements.
pub(crate) fn of_upstream(answer: &[u8], sha512: &str) -> Vec<(String, Vec<u8>)> {
    let Ok(Value::Object(answer)) = serde_json::from_slice(answer) else { return Vec::new() };
    let listed = answer.get("attestations").and_then(Value::as_array).into_iter().flatten();
    let texts = listed.filter_map(|one| Some(one.get("bundle")?.to_string())).take(MOST);
    let about = texts.filter_map(|text| {
        let (_, bundle) = bundle("of the upstream", &text, sha512).ok()?;
        let kind = bundle.get("mediaType").and_then(Value::as_str).unwrap_or(Statement::BUNDLE);
        Some((kind.to_owned(), text.into_bytes()))
    });
    about.collect()
}

/// Parses a bundle and returns its predicate type and content. Checks that the bundle is about this
/// tarball. Does not check the signature, which is the task of clients that trust the signer.
fn bundle(name: &str, text: &str, sha512: &str) -> Result<(String, Value), Failure> {
    let refuse = |problem: &str| invalid(&format!("the attestation {name} {problem}"));
    let bundle: Value = serde_json::from_str(text).map_err(|_| refuse("is not a JSON document"))?;
    let payload = bundle.pointer("/dsseEnvelope/payload").and_then(Value::as_str);
    let payload = payload.and_then(|payload| STANDARD.decode(payload).ok());
    let statement: Option<Value> = payload.and_then(|payload| serde_json::from_slice(&payload).ok());
    let statement = statement.ok_or_else(|| refuse("does not contain a statement"))?;
    let subjects = statement.get("subject").and_then(Value::as_array).into_iter().flatten();
    let mut digests =
        subjects.filter_map(|subject| subject.pointer("/digest/sha512").and_then(Value::as_str));
    if !digests.any(|digest| digest.eq_ignore_ascii_case(sha512)) {
        return Err(refuse("is about another file than the tarball"));
    }
    let predicate = statement.get("predicateType").and_then(Value::as_str);
    Ok((predicate.ok_or_else(|| refuse("has no predicate type"))?.to_owned(), bundle))
}
