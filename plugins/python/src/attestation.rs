//! Attestations (PEP 740): checked for their form and for being about this very file, kept as they are, served as a provenance
//! object. Their signatures are judged by the host.

use crate::publisher;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_sdk::{Digest, Failure, Statement};
use serde_json::{Value, json};

/// A provenance object's.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.pypi.integrity.v1+json";
/// Attestations of one file: as many as there are kinds of them, and some.
const MOST: usize = 10;

/// Where a file's provenance object is fetched.
pub(crate) fn path(project: &str, version: &str, file: &str) -> String {
    format!("integrity/{project}/{version}/{file}/provenance")
}

/// What comes of a form's `attestations`.
pub(crate) struct Attested {
    /// The provenance object, as it is served.
    pub(crate) provenance: Vec<u8>,
    /// Each as the host judges it: a bundle of Sigstore's.
    pub(crate) bundles: Vec<Vec<u8>>,
}

/// Reads a form's `attestations`. 400 when they are none, or are about another file.
pub(crate) fn read(text: &str, filename: &str, sha256: &Digest) -> Result<Attested, Failure> {
    let refused = |why: &str| {
        Failure::new(
            400,
            "invalid_attestations",
            format!("The attestations of {filename} are refused: {why}"),
        )
    };
    let list: Vec<Value> = serde_json::from_str(text).map_err(|_| refused("they are no list in JSON"))?;
    if list.is_empty() || list.len() > MOST {
        return Err(refused("there are none, or too many"));
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
    Ok(Attested { provenance, bundles })
}

/// The attestations of this file in a provenance object that an upstream answers, each as a bundle of Sigstore's. What is none, or about another
/// file, is left out.
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

/// The same as a bundle: PEP 740 has other names for what stands in one.
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
        return Err("one is not of version 1");
    }
    let encoded = |path: &str| at(path).and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
    let material = at("/verification_material/transparency_entries").is_some_and(Value::is_array);
    if !material
        || encoded("/verification_material/certificate").is_none()
        || encoded("/envelope/signature").is_none()
    {
        return Err("one has no certificate, no transparency entries or no signature");
    }
    let statement = encoded("/envelope/statement").ok_or("one has no statement")?;
    let statement: Value = serde_json::from_slice(&statement).map_err(|_| "a statement is not JSON")?;
    let subjects = statement.get("subject").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let [subject] = subjects else { return Err("a statement is not about one file") };
    let about = subject.get("name").and_then(Value::as_str) == Some(filename)
        && subject.pointer("/digest/sha256").and_then(Value::as_str) == Some(sha256);
    if about { Ok(()) } else { Err("a statement is about another file") }
}
