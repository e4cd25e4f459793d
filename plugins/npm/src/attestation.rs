//! Attestations that a client publishes beside a tarball: Sigstore bundles, kept and served as they came.

use crate::dist::Tarball;
use crate::document::{Data, Document, invalid};
use crate::name::Name;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{Failure, Statement};
use serde_json::{Value, json};

/// Where predicates that say how something was built begin.
const PROVENANCE: &str = "https://slsa.dev/provenance/";

/// Bundles of an upstream's that are looked at.
const MOST: usize = 10;

/// What is kept of a version's attestations.
#[derive(Debug)]
pub(crate) struct Attestations {
    /// What is served.
    pub(crate) document: Vec<u8>,
    /// The bundles, each with its media type.
    pub(crate) bundles: Vec<(String, Vec<u8>)>,
    /// The predicate of the one that says how the version was built.
    pub(crate) provenance: Option<String>,
}

/// Where a version's attestations are fetched.
pub(crate) fn path(name: &Name, number: &str) -> String {
    format!("-/npm/v1/attestations/{name}@{number}")
}

/// The attestations among a document's attachments; none when there are none.
///
/// # Errors
/// 400 for what is no bundle, or one about another file.
pub(crate) fn read(document: &Document, tarball: &Tarball) -> Result<Option<Attestations>, Failure> {
    let (mut all, mut bundles) = (Vec::new(), Vec::new());
    let mut provenance = None;
    for (name, attachment, data) in document.attachments() {
        if !attachment.is_bundle(name) {
            continue;
        }
        let Data::Text(text) = data else {
            return Err(invalid(&format!("the attestation {name} is no JSON document")));
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

/// The bundles about this tarball of what an upstream answers, each with its media type. What is no bundle, or about another file, is left
/// out: a proxy passes on what it is told, and states what makes sense.
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

/// A bundle and the type of what it says. Whether its signature holds is for those to check who trust its signer; that it is
/// about this tarball is checked here.
fn bundle(name: &str, text: &str, sha512: &str) -> Result<(String, Value), Failure> {
    let refuse = |what: &str| invalid(&format!("the attestation {name} {what}"));
    let bundle: Value = serde_json::from_str(text).map_err(|_| refuse("is no JSON document"))?;
    let payload = bundle.pointer("/dsseEnvelope/payload").and_then(Value::as_str);
    let payload = payload.and_then(|payload| STANDARD.decode(payload).ok());
    let statement: Option<Value> = payload.and_then(|payload| serde_json::from_slice(&payload).ok());
    let statement = statement.ok_or_else(|| refuse("holds no statement"))?;
    let subjects = statement.get("subject").and_then(Value::as_array).into_iter().flatten();
    let mut digests =
        subjects.filter_map(|subject| subject.pointer("/digest/sha512").and_then(Value::as_str));
    if !digests.any(|digest| digest.eq_ignore_ascii_case(sha512)) {
        return Err(refuse("is about another file than the tarball"));
    }
    let predicate = statement.get("predicateType").and_then(Value::as_str);
    Ok((predicate.ok_or_else(|| refuse("has no type"))?.to_owned(), bundle))
}
