//! The formats of signed statements.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sigstore_verify::types::{Bundle, DerCertificate};

/// Prefix of the media types of Sigstore bundles.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// cosign's older format of a signature: a [`Detached`] whose `signed` is a "simple signing"
/// document.
pub const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// cosign's older format of an attestation: a [`Detached`] whose `signed` is a DSSE envelope.
pub const DSSE: &str = "application/vnd.dsse.envelope.v1+json";
/// A detached, armored OpenPGP signature.
pub const PGP: &str = "application/pgp-signature";

/// A statement in cosign's older format. Its parts come from a layer of a manifest and from the
/// layer's annotations.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default)]
pub struct Detached {
    /// The signed document or the envelope, in base64.
    pub signed: String,
    /// The signature of the document, in base64.
    pub signature: String,
    /// The signer's certificate in PEM. Empty if the document was signed with a key.
    pub certificate: String,
    /// Intermediate certificates up to the root, in PEM.
    pub chain: String,
    /// The log entry in cosign's format: JSON with `SignedEntryTimestamp` and `Payload`.
    pub bundle: String,
}

/// A statement, parsed by its format.
#[derive(Debug)]
pub(crate) enum ParsedStatement {
    Bundle(Box<Bundle>),
    /// A bundle whose signature covers this document. The document names the subject.
    Message(Box<Bundle>, Vec<u8>),
    Pgp,
    Unknown,
}

/// Parses a statement of this media type. The error is a sentence without a full stop.
pub(crate) fn read(kind: &str, bytes: &[u8]) -> Result<ParsedStatement, String> {
    match kind {
        PGP => Ok(ParsedStatement::Pgp),
        SIMPLE_SIGNING => {
            let apart = detached(bytes)?;
            let message = decoded(&apart.signed, "the signed payload")?;
            let signature = json!({"signature": apart.signature});
            Ok(ParsedStatement::Message(bundle_of(&apart, "messageSignature", &signature)?, message))
        }
        DSSE => {
            let apart = detached(bytes)?;
            let envelope: Value = serde_json::from_slice(&decoded(&apart.signed, "the envelope")?)
                .map_err(|_| "its envelope is not JSON")?;
            Ok(ParsedStatement::Bundle(bundle_of(&apart, "dsseEnvelope", &envelope)?))
        }
        _ if kind.starts_with(BUNDLE) => {
            let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
            Bundle::from_json(text)
                .map(Box::new)
                .map(ParsedStatement::Bundle)
                .map_err(|error| error.to_string())
        }
        _ => Ok(ParsedStatement::Unknown),
    }
}

fn detached(bytes: &[u8]) -> Result<Detached, String> {
    serde_json::from_slice(bytes).map_err(|error| error.to_string())
}

fn decoded(text: &str, what: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(text).map_err(|_| format!("{what} is not base64"))
}

/// Converts a statement in cosign's older format to a bundle of version 0.1, which can contain the
/// same parts.
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

/// Splits a PEM chain into its certificates.
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

/// Converts a log entry in cosign's format to a log entry of a bundle. Returns `None` if the text
/// is empty.
fn entry(text: &str) -> Result<Option<Value>, String> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    let LogBundle { promise, payload } =
        serde_json::from_str(text).map_err(|error| format!("its log entry: {error}"))?;
    let body: Value = serde_json::from_slice(&decoded(&payload.body, "its log entry")?)
        .map_err(|_| "its log entry is not JSON")?;
    let log = hex::decode(&payload.log).map_err(|_| "the id of its log is not hexadecimal")?;
    let text_field = |name: &str| body.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Some(json!({
        "logIndex": payload.index.to_string(),
        "logId": {"keyId": STANDARD.encode(log)},
        "kindVersion": {"kind": text_field("kind"), "version": text_field("apiVersion")},
        "integratedTime": payload.time.to_string(),
        "inclusionPromise": {"signedEntryTimestamp": promise},
        "canonicalizedBody": payload.body,
    })))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use super::*;

    #[test]
    fn malformed_statements_are_errors() {
        assert!(read("application/vnd.dev.sigstore.bundle.v0.3+json", b"{").is_err());
        assert!(read(SIMPLE_SIGNING, b"7").is_err());
        assert!(read(SIMPLE_SIGNING, br#"{"signed": "?"}"#).is_err());
        assert!(read(DSSE, br#"{"signed": "e30=", "certificate": "no PEM"}"#).is_err());
        assert!(matches!(read("application/vnd.cncf.notary.signature", b"x"), Ok(ParsedStatement::Unknown)));
    }

    #[test]
    fn a_chain_is_split_into_certificates() {
        let one = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----";
        assert_eq!(blocks(&format!("{one}\n{one}\n")).count(), 2);
        assert_eq!(blocks("").count() + blocks("text").count(), 0);
    }
}
