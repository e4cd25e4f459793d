//! A Sigstore instance of the tests: an authority, a log of certificates and a log of signatures.
//! It signs statements in each form that clients write, and never uses the network.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, CustomExtension, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose, SanType, SerialNumber, date_time_ymd,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::time::{SystemTime, UNIX_EPOCH};

/// The identity of a workflow.
pub const IDENTITY: &str = "https://github.com/acme/lib/.github/workflows/release.yml@refs/tags/v1";
/// The OpenID issuer that vouches for the workflow's identity.
pub const ISSUER: &str = "https://token.actions.githubusercontent.com";
/// The workflow's source repository.
pub const SOURCE: &str = "https://github.com/acme/lib";
/// The commit that the workflow built.
pub const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
/// The run of the workflow.
pub const RUN: &str = "https://github.com/acme/lib/actions/runs/7/attempts/1";
/// The predicate type of provenance.
pub const PROVENANCE: &str = "https://slsa.dev/provenance/v1";
/// The media type of bundles.
pub const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

/// An ECDSA key on P-256.
pub struct Key {
    pair: KeyPair,
}

impl Key {
    /// A new key.
    pub fn new() -> Self {
        Self { pair: KeyPair::generate().expect("a key") }
    }

    /// Signs with SHA-256; returns DER.
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        let der = self.pair.serialize_der();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &der).expect("a key");
        pair.sign(&SystemRandom::new(), bytes).expect("a signature").as_ref().to_vec()
    }

    /// The public key as DER.
    pub fn public(&self) -> Vec<u8> {
        public(&self.pair)
    }

    /// The public key as PEM.
    pub fn public_pem(&self) -> String {
        self.pair.public_key_pem()
    }

    /// The id by which logs name the key.
    fn id(&self) -> [u8; 32] {
        Sha256::digest(self.public()).into()
    }
}

impl Default for Key {
    fn default() -> Self {
        Self::new()
    }
}

/// A Sigstore instance with its authority and logs.
pub struct Instance {
    authority: CertifiedIssuer<'static, KeyPair>,
    log: Key,
    certificates: Key,
}

/// The identity that signs, and the validity of its certificate.
#[derive(Clone, Debug)]
pub struct Signer {
    /// The identity's URL.
    pub identity: String,
    /// The years in which its certificate begins and ends.
    pub years: [i32; 2],
}

impl Default for Signer {
    fn default() -> Self {
        Self { identity: IDENTITY.to_owned(), years: [2020, 2045] }
    }
}

impl Signer {
    /// A signer with this identity.
    pub fn called(identity: &str) -> Self {
        Self { identity: identity.to_owned(), ..Self::default() }
    }

    /// A signer whose certificate had expired when the log recorded the signature.
    pub fn expired() -> Self {
        Self { years: [2019, 2020], ..Self::default() }
    }
}

/// A certificate for one signature, and its key.
struct Leaf {
    key: Key,
    der: Vec<u8>,
}

impl Leaf {
    fn pem(&self) -> String {
        pem("CERTIFICATE", &self.der)
    }
}

impl Instance {
    /// A new instance.
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, "made for tests");
        (params.not_before, params.not_after) = (date_time_ymd(2019, 1, 1), date_time_ymd(2049, 1, 1));
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key"));
        Self { authority: authority.expect("an authority"), log: Key::new(), certificates: Key::new() }
    }

    /// The trust root for clients: `trusted_root.json`.
    pub fn trusted_root(&self) -> String {
        let log = |key: &Key| {
            json!({
                "baseUrl": "https://log.invalid", "hashAlgorithm": "SHA2_256",
                "publicKey": {"rawBytes": STANDARD.encode(key.public()), "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": {"start": "2019-01-01T00:00:00Z"}},
                "logId": {"keyId": STANDARD.encode(key.id())},
            })
        };
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(&self.log)],
            "certificateAuthorities": [{
                "subject": {"organization": "made for tests", "commonName": "made for tests"},
                "uri": "https://authority.invalid",
                "certChain": {"certificates": [{"rawBytes": STANDARD.encode(self.authority.der())}]},
                "validFor": {"start": "2019-01-01T00:00:00Z"},
            }],
            "ctlogs": [log(&self.certificates)],
            "timestampAuthorities": [],
        })
        .to_string()
    }

    /// A certificate with a timestamp of the certificate log. The log signs the certificate without
    /// a timestamp; then the authority adds the timestamp.
    fn leaf(&self, signer: &Signer) -> Leaf {
        let key = Key::new();
        let mut params = CertificateParams::default();
        params.serial_number = Some(SerialNumber::from(Sha256::digest(key.public())[..8].to_vec()));
        params.use_authority_key_identifier_extension = true;
        params.distinguished_name = rcgen::DistinguishedName::new();
        let san = signer.identity.as_str().try_into().expect("ASCII");
        params.subject_alt_names =
            vec![if signer.identity.contains("://") { SanType::URI(san) } else { SanType::Rfc822Name(san) }];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
        let [from, to] = signer.years.map(|year| date_time_ymd(year, 1, 1));
        (params.not_before, params.not_after) = (from, to);
        let facts = [
            (8, ISSUER),
            (9, signer.identity.as_str()),
            (12, SOURCE),
            (13, COMMIT),
            (14, "refs/tags/v1"),
            (18, signer.identity.as_str()),
            (21, RUN),
        ];
        params.custom_extensions = facts
            .iter()
            .map(|(number, text)| {
                CustomExtension::from_oid_content(
                    &[1, 3, 6, 1, 4, 1, 57264, 1, *number],
                    der(0x0c, text.as_bytes()),
                )
            })
            .collect();
        // The oldest extension (`.1`, the issuer) contains plain text; the newer ones contain DER.
        params.custom_extensions.push(CustomExtension::from_oid_content(
            &[1, 3, 6, 1, 4, 1, 57264, 1, 1],
            ISSUER.as_bytes().to_vec(),
        ));
        let unmarked = params.signed_by(&key.pair, &self.authority).expect("a certificate");
        let mark = self.mark(first_part(unmarked.der()));
        params
            .custom_extensions
            .push(CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 11129, 2, 4, 2], der(0x04, &mark)));
        let certificate = params.signed_by(&key.pair, &self.authority).expect("a certificate");
        Leaf { der: certificate.der().to_vec(), key }
    }

    /// A list of one signed certificate timestamp (RFC 6962).
    fn mark(&self, unmarked: &[u8]) -> Vec<u8> {
        let time = 1_600_000_000_000_u64.to_be_bytes();
        let issuer = Sha256::digest(public(self.authority.key()));
        let length = u32::try_from(unmarked.len()).expect("a certificate").to_be_bytes();
        let signed = [&[0, 0][..], &time, &[0, 1], &issuer, &length[1..], unmarked, &[0, 0]].concat();
        let signature = self.certificates.sign(&signed);
        let short = |length: usize| u16::try_from(length).expect("a few bytes").to_be_bytes();
        let one =
            [&[0][..], &self.certificates.id(), &time, &[0, 0, 4, 3], &short(signature.len()), &signature];
        let one = one.concat();
        let one = [&short(one.len())[..], &one].concat();
        [&short(one.len())[..], &one].concat()
    }

    /// The log's entry for this body, in the form of bundles.
    fn entry(&self, kind: &str, body: &Value) -> Value {
        let body = body.to_string();
        let encoded = STANDARD.encode(&body);
        let time = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() - 10;
        let id = self.log.id();
        let promised = format!(
            r#"{{"body":"{encoded}","integratedTime":{time},"logID":"{}","logIndex":0}}"#,
            hex::encode(id)
        );
        let root = STANDARD.encode(Sha256::digest([&[0], body.as_bytes()].concat()));
        let note = format!("log.invalid - 1\n1\n{root}\n");
        let signed = STANDARD.encode([&id[..4], &self.log.sign(note.as_bytes())].concat());
        json!({
            "logIndex": "0",
            "logId": {"keyId": STANDARD.encode(id)},
            "kindVersion": {"kind": kind, "version": "0.0.1"},
            "integratedTime": time.to_string(),
            "inclusionPromise": {"signedEntryTimestamp": STANDARD.encode(self.log.sign(promised.as_bytes()))},
            "inclusionProof": {"logIndex": "0", "rootHash": root, "treeSize": "1", "hashes": [],
                "checkpoint": {"envelope": format!("{note}\n\u{2014} log.invalid {signed}\n")}},
            "canonicalizedBody": encoded,
        })
    }

    fn entry_of_envelope(&self, payload: &[u8], signature: &[u8], verifier: &str) -> Value {
        let hash = |bytes: &[u8]| json!({"algorithm": "sha256", "value": hex::encode(Sha256::digest(bytes))});
        let body = json!({"apiVersion": "0.0.1", "kind": "dsse", "spec": {
            "envelopeHash": hash(payload), "payloadHash": hash(payload),
            "signatures": [{"signature": STANDARD.encode(signature), "verifier": STANDARD.encode(verifier)}],
        }});
        self.entry("dsse", &body)
    }

    fn entry_of_message(&self, message_sha256: &[u8], signature: &[u8], verifier: &str) -> Value {
        let body = json!({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {
            "data": {"hash": {"algorithm": "sha256", "value": hex::encode(message_sha256)}},
            "signature": {"content": STANDARD.encode(signature), "publicKey": {"content": STANDARD.encode(verifier)}},
        }});
        self.entry("hashedrekord", &body)
    }

    /// A bundle that contains this in-toto statement and its signature.
    pub fn bundle(&self, signer: &Signer, statement: &Value) -> Value {
        let (leaf, payload) = (self.leaf(signer), statement.to_string().into_bytes());
        let signature = leaf.key.sign(&pae(&payload));
        let entry = self.entry_of_envelope(&payload, &signature, &leaf.pem());
        json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {"certificate": {"rawBytes": STANDARD.encode(&leaf.der)}, "tlogEntries": [entry]},
            "dsseEnvelope": envelope(&payload, &signature),
        })
    }

    /// A bundle with a signature over the bytes themselves, as `cosign sign-blob` makes it.
    pub fn signature(&self, signer: &Signer, bytes: &[u8]) -> Value {
        let leaf = self.leaf(signer);
        let (digest, signature) = (Sha256::digest(bytes), leaf.key.sign(bytes));
        let entry = self.entry_of_message(&digest, &signature, &leaf.pem());
        json!({
            "mediaType": BUNDLE,
            "verificationMaterial": {"certificate": {"rawBytes": STANDARD.encode(&leaf.der)}, "tlogEntries": [entry]},
            "messageSignature": {"messageDigest": {"algorithm": "SHA2_256", "digest": STANDARD.encode(digest)},
                "signature": STANDARD.encode(&signature)},
        })
    }

    /// The bundle of [`Instance::bundle`] in the form of PEP 740.
    pub fn attestation(&self, signer: &Signer, statement: &Value) -> Value {
        let bundle = self.bundle(signer, statement);
        let at = |path: &str| bundle.pointer(path).expect("it is there").clone();
        json!({
            "version": 1,
            "verification_material": {"certificate": at("/verificationMaterial/certificate/rawBytes"),
                "transparency_entries": at("/verificationMaterial/tlogEntries")},
            "envelope": {"statement": at("/dsseEnvelope/payload"), "signature": at("/dsseEnvelope/signatures/0/sig")},
        })
    }

    /// The annotations with which older versions of cosign store the signature of a document.
    pub fn annotations(&self, signer: &Signer, document: &[u8]) -> Value {
        let leaf = self.leaf(signer);
        let signature = leaf.key.sign(document);
        let entry = self.entry_of_message(&Sha256::digest(document), &signature, &leaf.pem());
        let text = |path: &str| entry.pointer(path).and_then(Value::as_str).expect("a text").to_owned();
        let log = json!({"SignedEntryTimestamp": text("/inclusionPromise/signedEntryTimestamp"), "Payload": {
            "body": text("/canonicalizedBody"), "integratedTime": text("/integratedTime").parse::<i64>().expect("a time"),
            "logIndex": 0, "logID": hex::encode(self.log.id()),
        }});
        json!({
            "dev.cosignproject.cosign/signature": STANDARD.encode(&signature),
            "dev.sigstore.cosign/certificate": leaf.pem(),
            "dev.sigstore.cosign/chain": pem("CERTIFICATE", self.authority.der()),
            "dev.sigstore.cosign/bundle": log.to_string(),
        })
    }
}

impl Default for Instance {
    fn default() -> Self {
        Self::new()
    }
}

/// A bundle that a key signed and that no log recorded.
pub fn by_key(key: &Key, statement: &Value) -> Value {
    let payload = statement.to_string().into_bytes();
    json!({
        "mediaType": BUNDLE,
        "verificationMaterial": {"publicKey": {"hint": "k"}, "tlogEntries": []},
        "dsseEnvelope": envelope(&payload, &key.sign(&pae(&payload))),
    })
}

/// An in-toto statement of provenance about one file.
pub fn statement(file: &str, algorithm: &str, hex: &str) -> Value {
    let mut digest = serde_json::Map::new();
    digest.insert(algorithm.to_owned(), json!(hex));
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": file, "digest": digest}],
        "predicateType": PROVENANCE,
        "predicate": {"buildDefinition": {"buildType": "https://slsa-framework.github.io/github-actions-buildtypes/workflow/v1"}},
    })
}

/// The document that older versions of cosign sign for a manifest.
pub fn simple_signing(manifest: &str) -> String {
    json!({"critical": {"identity": {"docker-reference": ""}, "image": {"docker-manifest-digest": manifest},
        "type": "cosign container image signature"}, "optional": null})
    .to_string()
}

fn envelope(payload: &[u8], signature: &[u8]) -> Value {
    json!({"payload": STANDARD.encode(payload), "payloadType": "application/vnd.in-toto+json",
        "signatures": [{"sig": STANDARD.encode(signature), "keyid": ""}]})
}

/// The bytes that DSSE signs for a payload.
fn pae(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 28 application/vnd.in-toto+json {} ", payload.len());
    [head.as_bytes(), payload].concat()
}

/// A DER value with this tag.
fn der(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let length = bytes.len();
    let head = match length {
        0..128 => vec![tag, u8::try_from(length).expect("below 128")],
        128..256 => vec![tag, 0x81, u8::try_from(length).expect("below 256")],
        _ => [&[tag, 0x82][..], &u16::try_from(length).expect("a short one").to_be_bytes()].concat(),
    };
    [head, bytes.to_vec()].concat()
}

/// The first value within a sequence: for a certificate, its signed part.
fn first_part(sequence: &[u8]) -> &[u8] {
    let head = |bytes: &[u8]| match bytes[1] {
        short if short < 0x80 => (2, usize::from(short)),
        0x81 => (3, usize::from(bytes[2])),
        _ => (4, usize::from(u16::from_be_bytes([bytes[2], bytes[3]]))),
    };
    let (skip, _) = head(sequence);
    let (start, length) = head(&sequence[skip..]);
    &sequence[skip..skip + start + length]
}

/// The public key as DER.
fn public(pair: &KeyPair) -> Vec<u8> {
    let pem = pair.public_key_pem();
    let data: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    STANDARD.decode(data).expect("base64")
}

fn pem(label: &str, der: &[u8]) -> String {
    let data = STANDARD.encode(der);
    let lines: Vec<&str> =
        data.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("base64")).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}
