//! Attestations (PEP 740). The plugin checks the form and the subject of an attestation, and the
//! host verifies the signature. The plugin stores attestations unchanged, and serves them as a
//! provenance object.

use crate::publisher;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{Digest, Failure, Statement};
use serde_json::{Value, json};

/// Media type of a provenance object.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.pypi.integrity.v1+json";
/// Maximum number of attestations of one file. PyPI defines fewer kinds of attestations.
const MOST: usize = 10;

/// Returns the path of a file's provenance object.
pub(crate) fn path(project: &str, version: &str, file: &str) -> String {
    format!("integrity/{project}/{version}/{file}/provenance")
}

/// Checked contents of a form's `attestations`.
pub(crate) struct CheckedAttestations {
    /// The provenance object as it is served.
    pub(crate) provenance: Vec<u8>,
    /// Each attestation as a Sigstore bundle, which the host verifies.
    pub(crate) bundles: Vec<Vec<u8>>,
}

/// Parses and checks the attestations in a form's field `attestations`.
///
/// # Errors
/// 400 if an attestation is invalid or about another file.
pub(crate) fn read(text: &str, filename: &str, sha256: &Digest) -> Result<CheckedAttestations, Failure> {
    let refused = |why: &str| {
        Failure::new(
            400,
            "invalid_attestations",
            format!("The attestations of {filename} are refused: {why}"),
        )
    };
    let list: Vec<Value> = serde_json::from_str(text).map_err(|_| refused("they are not a JSON list"))?;
    if list.is_empty() || list.len() > MOST {
        return Err(refused("their number must be between 1 and 10"));
    }
    for attestation in &list {
        check(attestation, filename, sha256.hex()).map_err(refused)?;
    }
    let bundles = list.iter().map(|one| serde_json::to_vec(&bundle(one))).collect::<Result<_, _>>()?;
    let mut by_publisher: Vec<(Value, Vec<Value>)> = Vec::new();
    for attestation in list {
        let certificate = attestation.pointer("/verification_material/certificate").and_then(Value::as_str);
        let certificate = certificate.and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
        let publisher = publisher::of(&certificate);
        match by_publisher.iter_mut().find(|(known, _)| *known == publisher) {
            Some((_, all)) => all.push(attestation),
            None => by_publisher.push((publisher, vec![attestation])),
        }
    }
    let one = |(publisher, all): (Value, Vec<Value>)| json!({"publisher": publisher, "attestations": all});
    let provenance: Vec<Value> = by_publisher.into_iter().map(one).collect();
    let provenance = serde_json::to_vec(&json!({"version": 1, "attestation_bundles": provenance}))?;
    Ok(CheckedAttestations { provenance, bundles })
}

/// Returns the attestations of this file in an upstream's provenance object, each as a Sigstore
/// bundle. Skips attestations that are invalid or about another file.
pub(crate) fn of_upstream(answer: &[u8], filename: &str, sha256: &str) -> Vec<Vec<u8>> {
    let Ok(answer) = serde_json::from_slice::<Value>(answer) else { return Vec::new() };
    let listed = |of: &'static str| {
        move |one: &Value| one.get(of).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let by_publisher = listed("attestation_bundles")(&answer);
    let all = by_publisher.iter().flat_map(listed("attestations")).take(MOST);
    let about = all.filter(|attestation| check(attestation, filename, sha256).is_ok());
    about.map(|attestation| bundle(&attestation).to_string().into_bytes()).collect()
}

/// Converts an attestation to a Sigstore bundle. PEP 740 uses other names for the same members.
fn bundle(attestation: &Value) -> Value {
    let at = |path: &str| attestation.pointer(path).cloned().unwrap_or_default();
    json!({
        "mediaType": Statement::BUNDLE,
        "verificationMaterial": {
            "certificate": {"rawBytes": at("/verification_material/certificate")},
            "tlogEntries": at("/verification_material/transparency_entries"),
        },
        "dsseEnvelope": {
            "payloadType": "application/vnd.in-toto+json",
            "payload": at("/envelope/statement"),
            "signatures": [{"sig": at("/envelope/signature")}],
        },
    })
}

fn check(attestation: &Value, filename: &str, sha256: &str) -> Result<(), &'static str> {
    let at = |path: &str| attestation.pointer(path);
    if at("/version") != Some(&json!(1)) {
        return Err("one does not have version 1");
    }
    let encoded = |path: &str| at(path).and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
    let material = at("/verification_material/transparency_entries").is_some_and(Value::is_array);
    if !material
        || encoded("/verification_material/certificate").is_none()
        || encoded("/envelope/signature").is_none()
    {
        return Err("one lacks its certificate, transparency entries or signature");
    }
    let statement = encoded("/envelope/statement").ok_or("one has no statement")?;
    let statement: Value = serde_json::from_slice(&statement).map_err(|_| "a statement is not JSON")?;
    let subjects = statement.get("subject").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let [subject] = subjects else { return Err("a statement must be about exactly one file") };
    let about = subject.get("name").and_then(Value::as_str) == Some(filename)
        && subject.pointer("/digest/sha256").and_then(Value::as_str) == Some(sha256);
    if about { Ok(()) } else { Err("a statement is about another file") }
}
