//! The forms in which statements come.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sigstore_verify::types::{Bundle, DerCertificate};

/// How the media types of Sigstore's bundles begin.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// cosign's older form of a signature: a [`Detached`] whose `signed` is a document of "simple signing".
pub const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The same of an attestation: `signed` is a DSSE envelope.
pub const DSSE: &str = "application/vnd.dsse.envelope.v1+json";
/// A detached signature of OpenPGP, armored.
pub const PGP: &str = "application/pgp-signature";

/// What stands apart in cosign's older form: a layer of a manifest and what the annotations of that say.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Detached {
    /// What was signed, or the envelope: base64.
    pub signed: String,
    /// The signature of a document: base64.
    pub signature: String,
    /// The signer's certificate, as PEM; empty: it was signed by a key.
    pub certificate: String,
    /// Those between it and the root, as PEM.
    pub chain: String,
    /// The log's entry, as cosign writes it: `{"SignedEntryTimestamp", "Payload"}` in JSON.
    pub bundle: String,
}

/// What is read of a statement.
#[derive(Debug)]
pub(crate) enum Signed {
    Bundle(Box<Bundle>),
    /// The signature is of this document, which names the subject.
    Message(Box<Bundle>, Vec<u8>),
    Pgp,
    Unknown,
}

/// Reads a statement by its kind. The error says what is wrong with it, without a full stop.
pub(crate) fn read(kind: &str, bytes: &[u8]) -> Result<Signed, String> {
    match kind {
        PGP => Ok(Signed::Pgp),
        SIMPLE_SIGNING => {
            let apart = detached(bytes)?;
            let message = decoded(&apart.signed, "what was signed")?;
            let signature = json!({"signature": apart.signature});
            Ok(Signed::Message(bundle_of(&apart, "messageSignature", &signature)?, message))
        }
        DSSE => {
            let apart = detached(bytes)?;
            let envelope: Value = serde_json::from_slice(&decoded(&apart.signed, "the envelope")?)
                .map_err(|_| "its envelope is not JSON")?;
            Ok(Signed::Bundle(bundle_of(&apart, "dsseEnvelope", &envelope)?))
        }
        _ if kind.starts_with(BUNDLE) => {
            let text = std::str::from_utf8(bytes).map_err(|_| "it is no text")?;
            Bundle::from_json(text).map(Box::new).map(Signed::Bundle).map_err(|error| error.to_string())
        }
        _ => Ok(Signed::Unknown),
    }
}

fn detached(bytes: &[u8]) -> Result<Detached, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

fn decoded(text: &str, what: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|_| format!("{what} is not base64"))
}

/// The same as a bundle of the first version, which holds what the older form does.
fn bundle_of(apart: &Detached, content: &str, value: &Value) -> Result<Box<Bundle>, String> {
    let mut material = match apart.certificate.trim() {
        "" => json!({"publicKey": {"hint": ""}}),
        first => {
            let mut certificates = Vec::new();
            for pem in std::iter::once(first).chain(blocks(&apart.chain)) {
                let der = DerCertificate::from_pem(pem).map_err(|error| error.to_string())?;
                certificates.push(json!({"rawBytes": STANDARD.encode(der.as_bytes())}));
            }
            json!({"x509CertificateChain": {"certificates": certificates}})
        }
    };
    let entries: Vec<Value> = entry(&apart.bundle)?.into_iter().collect();
    if let Some(material) = material.as_object_mut() {
        material.insert("tlogEntries".to_owned(), Value::Array(entries));
    }
    let media_type = format!("{BUNDLE}+json;version=0.1");
    let bundle = json!({"mediaType": media_type, "verificationMaterial": material, content: value});
    Bundle::from_json(&bundle.to_string()).map(Box::new).map_err(|error| error.to_string())
}

/// The certificates of a chain.
fn blocks(chain: &str) -> impl Iterator<Item = &str> {
    const END: &str = "-----END CERTIFICATE-----";
    chain.split_inclusive(END).map(str::trim).filter(|block| block.ends_with(END))
}

#[derive(Deserialize)]
struct LogBundle {
    #[serde(rename = "SignedEntryTimestamp")]
    promise: String,
    #[serde(rename = "Payload")]
    payload: LogPayload,
}

#[derive(Deserialize)]
struct LogPayload {
    body: String,
    #[serde(rename = "integratedTime")]
    time: i64,
    #[serde(rename = "logIndex")]
    index: i64,
    #[serde(rename = "logID")]
    log: String,
}

/// The log's entry as bundles have it; none where there is none.
fn entry(text: &str) -> Result<Option<Value>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let LogBundle { promise, payload } =
        serde_json::from_str(text).map_err(|error| format!("its log entry: {error}"))?;
    let body: Value = serde_json::from_slice(&decoded(&payload.body, "its log entry")?)
        .map_err(|_| "its log entry holds no JSON")?;
    let log = hex::decode(&payload.log).map_err(|_| "its log is not named in hex")?;
    let said = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Some(json!({
        "logIndex": payload.index.to_string(),
        "logId": {"keyId": STANDARD.encode(log)},
        "kindVersion": {"kind": said("kind"), "version": said("apiVersion")},
        "integratedTime": payload.time.to_string(),
        "inclusionPromise": {"signedEntryTimestamp": promise},
        "canonicalizedBody": payload.body,
    })))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "test code: to fail is how it speaks")]

    use super::*;

    #[test]
    fn what_is_no_statement_is_told() {
        assert!(read("application/vnd.dev.sigstore.bundle.v0.3+json", b"{").is_err());
        assert!(read(SIMPLE_SIGNING, b"7").is_err());
        assert!(read(SIMPLE_SIGNING, br#"{"signed": "?"}"#).is_err());
        assert!(read(DSSE, br#"{"signed": "e30=", "certificate": "no PEM"}"#).is_err());
        assert!(matches!(read("application/vnd.cncf.notary.signature", b"x"), Ok(Signed::Unknown)));
    }

    #[test]
    fn a_chain_is_its_blocks() {
        let one = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----";
        assert_eq!(blocks(&format!("{one}\n{one}\n")).count(), 2);
        assert_eq!(blocks("").count() + blocks("text").count(), 0);
    }
}
