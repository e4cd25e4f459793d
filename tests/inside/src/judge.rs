//! Verdicts on attestations, tested without a server: valid attestations in every form, and each
//! way in which an attestation can be invalid.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use packhouse_attest::{ExpectedIdentity, Judgement, Trust, TrustFiles, Verdict, judge};
use packhouse_tests::sigstore::{
    self, BUNDLE, COMMIT, IDENTITY, ISSUER, Instance, Key, PROVENANCE, RUN, SOURCE, Signer, statement,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const FILE: &[u8] = b"the bytes of a file";
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
const DSSE: &str = "application/vnd.dsse.envelope.v1+json";

fn subject() -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(FILE)))
}

fn about_file() -> Value {
    statement("lib-1.0.tgz", "sha256", &hex::encode(Sha256::digest(FILE)))
}

/// A trust configuration of these roots, keys and identities.
fn trust(roots: &[&Instance], keys: &[&Key], identities: &[(&str, &str)]) -> Trust {
    let folder = tempfile::tempdir().unwrap();
    let mut files = TrustFiles::default();
    for (number, root) in roots.iter().enumerate() {
        let file = folder.path().join(format!("{number}.json"));
        std::fs::write(&file, root.trusted_root()).unwrap();
        files.roots.push(file);
    }
    for (number, key) in keys.iter().enumerate() {
        let file = folder.path().join(format!("{number}.pub"));
        std::fs::write(&file, key.public_pem()).unwrap();
        files.keys.push(file);
    }
    files.identities = identities
        .iter()
        .map(|(issuer, identity)| ExpectedIdentity {
            issuer: (*issuer).to_owned(),
            identity: (*identity).to_owned(),
        })
        .collect();
    Trust::read(&files).unwrap()
}

fn of(trust: &Trust, bundle: &Value) -> Judgement {
    judge(trust, BUNDLE, &subject(), bundle.to_string().as_bytes())
}

#[track_caller]
fn failed(judged: &Judgement, why: &str) {
    assert_eq!(judged.verdict, Verdict::Failed, "{judged:?}");
    assert!(judged.reason.contains(why), "{judged:?}");
}

/// A copy of the bundle in which one character of the text at this JSON pointer is changed.
fn tampered(bundle: &Value, at: &str) -> Value {
    let mut bundle = bundle.clone();
    let place = bundle.pointer_mut(at).unwrap_or_else(|| panic!("{at}"));
    let mut text = place.as_str().unwrap().to_owned().into_bytes();
    let middle = text.len() / 2;
    text[middle] = if text[middle] == b'A' { b'B' } else { b'A' };
    *place = json!(String::from_utf8(text).unwrap());
    bundle
}

#[test]
fn a_valid_bundle_states_its_signer_and_source() {
    let instance = Instance::new();
    let trust = trust(&[&Instance::new(), &instance], &[], &[]);
    let judged = of(&trust, &instance.bundle(&Signer::default(), &about_file()));
    assert_eq!((judged.verdict, judged.reason.as_str()), (Verdict::Verified, ""));
    let facts = &judged.facts;
    let claims =
        [&facts.identity, &facts.issuer, &facts.source, &facts.commit, &facts.run, &facts.predicate_type];
    assert_eq!(claims, [IDENTITY, ISSUER, SOURCE, COMMIT, RUN, PROVENANCE]);
    assert_eq!(
        [facts.source_ref.as_str(), facts.workflow.as_str(), &facts.key],
        ["refs/tags/v1", IDENTITY, ""]
    );
    assert!(facts.signed_at.is_some_and(|at| at > 1_700_000_000_000));
    let blob = instance.signature(&Signer::called("me@example.com"), FILE);
    let judged = of(&trust, &blob);
    assert_eq!((judged.verdict, judged.facts.identity.as_str()), (Verdict::Verified, "me@example.com"));
}

#[test]
fn a_sha512_digest_is_accepted() {
    let instance = Instance::new();
    let trust = trust(&[&instance], &[], &[]);
    let (right, wrong) = ("ab".repeat(64), "cd".repeat(64));
    let bundle = instance.bundle(&Signer::default(), &statement("lib", "sha512", &right)).to_string();
    let judged = |hex: &str| judge(&trust, BUNDLE, &format!("sha512:{hex}"), bundle.as_bytes());
    assert_eq!(judged(&right).verdict, Verdict::Verified);
    failed(&judged(&wrong), "It is about another digest");
}

#[test]
fn a_tampered_bundle_is_invalid() {
    let instance = Instance::new();
    let trust = trust(&[&instance], &[], &[]);
    let good = instance.bundle(&Signer::default(), &about_file());
    assert_eq!(of(&trust, &good).verdict, Verdict::Verified);
    let entry = "/verificationMaterial/tlogEntries/0";
    for at in [
        "/dsseEnvelope/payload",
        "/dsseEnvelope/signatures/0/sig",
        "/verificationMaterial/certificate/rawBytes",
        &format!("{entry}/inclusionPromise/signedEntryTimestamp"),
        &format!("{entry}/inclusionProof/rootHash"),
        &format!("{entry}/canonicalizedBody"),
    ] {
        failed(&of(&trust, &tampered(&good, at)), "");
    }
    let blob = instance.signature(&Signer::default(), FILE);
    failed(&of(&trust, &tampered(&blob, "/messageSignature/signature")), "");
    let mut other_log = good.clone();
    let other = Instance::new().bundle(&Signer::default(), &about_file());
    other_log["verificationMaterial"]["tlogEntries"] = other["verificationMaterial"]["tlogEntries"].clone();
    failed(&of(&trust, &other_log), "not known to any trusted root");
    let mut no_log = good.clone();
    no_log["verificationMaterial"]["tlogEntries"] = json!([]);
    failed(&of(&trust, &no_log), "It is not valid");
    failed(&judge(&trust, BUNDLE, &subject(), b"{}"), "It cannot be read");
    failed(&judge(&trust, BUNDLE, &subject(), &vec![b' '; 600 << 10]), "bytes");
}

#[test]
fn another_file_time_or_authority_is_invalid() {
    let (instance, other) = (Instance::new(), Instance::new());
    let trust = trust(&[&instance], &[], &[]);
    let elsewhere = statement("lib-1.0.tgz", "sha256", &"ab".repeat(32));
    failed(&of(&trust, &instance.bundle(&Signer::default(), &elsewhere)), "It is about another digest");
    failed(
        &of(&trust, &instance.signature(&Signer::default(), b"other bytes")),
        "It is about another digest",
    );
    failed(&of(&trust, &instance.bundle(&Signer::expired(), &about_file())), "not valid when it was signed");
    let foreign = of(&trust, &other.bundle(&Signer::default(), &about_file()));
    failed(&foreign, "not known to any trusted root");
    assert_eq!(foreign.facts.signed_at, None, "only a verified statement has a signing time");
}

#[test]
fn another_identity_is_reported_but_not_verified() {
    let instance = Instance::new();
    let trust =
        trust(&[&instance], &[], &[(ISSUER, "https://github.com/acme/*"), ("https://idp.invalid", "*")]);
    let by = |identity: &str| of(&trust, &instance.bundle(&Signer::called(identity), &about_file()));
    assert_eq!(by(IDENTITY).verdict, Verdict::Verified);
    let judged = by("https://github.com/mallory/lib/.github/workflows/release.yml@refs/tags/v1");
    assert_eq!(judged.verdict, Verdict::OtherIdentity);
    assert!(
        judged.reason.contains("mallory") && judged.reason.contains("not one of the expected identities")
    );
}

#[test]
fn nothing_is_verified_without_trust() {
    let nothing = trust(&[], &[], &[]);
    let (instance, key) = (Instance::new(), Key::new());
    let judged = of(&nothing, &instance.bundle(&Signer::default(), &about_file()));
    assert_eq!((judged.verdict, judged.facts.identity.as_str()), (Verdict::Unverifiable, IDENTITY));
    let judged = of(&nothing, &sigstore::by_key(&key, &about_file()));
    assert_eq!(judged.verdict, Verdict::Unverifiable);
    let judged = judge(&nothing, "application/vnd.cncf.notary.signature", &subject(), b"x");
    assert_eq!(judged.verdict, Verdict::Unverifiable);
}

#[test]
fn a_trusted_key_needs_no_log() {
    let (instance, key, other) = (Instance::new(), Key::new(), Key::new());
    let trust = trust(&[&instance], &[&other, &key], &[]);
    let good = sigstore::by_key(&key, &about_file());
    let judged = of(&trust, &good);
    assert_eq!(judged.verdict, Verdict::Verified, "{judged:?}");
    assert_eq!(judged.facts.key, format!("SHA256:{}", hex::encode(Sha256::digest(key.public()))));
    failed(&of(&trust, &sigstore::by_key(&Key::new(), &about_file())), "does not trust");
    failed(&of(&trust, &tampered(&good, "/dsseEnvelope/signatures/0/sig")), "");
    failed(&of(&trust, &tampered(&good, "/dsseEnvelope/payload")), "");
    let elsewhere = statement("lib-1.0.tgz", "sha256", &"ab".repeat(32));
    failed(&of(&trust, &sigstore::by_key(&key, &elsewhere)), "It is about another digest");
    // A trusted key does not make a certificate of another authority valid.
    failed(&of(&trust, &Instance::new().bundle(&Signer::default(), &about_file())), "");
}

/// The form in which older versions of cosign store a signature: the document and its annotations.
fn detached(document: &[u8], annotations: &Value) -> Vec<u8> {
    let text = |name: &str| annotations.get(name).cloned().unwrap_or_else(|| json!(""));
    json!({
        "signed": STANDARD.encode(document),
        "signature": text("dev.cosignproject.cosign/signature"),
        "certificate": text("dev.sigstore.cosign/certificate"),
        "chain": text("dev.sigstore.cosign/chain"),
        "bundle": text("dev.sigstore.cosign/bundle"),
    })
    .to_string()
    .into_bytes()
}

#[test]
fn older_signatures_sign_a_document_with_the_digest() {
    let (instance, key) = (Instance::new(), Key::new());
    let trust = trust(&[&instance], &[&key], &[]);
    let document = sigstore::simple_signing(&subject());
    let of = |bytes: &[u8]| judge(&trust, SIMPLE_SIGNING, &subject(), bytes);
    let annotations = instance.annotations(&Signer::default(), document.as_bytes());
    let judged = of(&detached(document.as_bytes(), &annotations));
    assert_eq!((judged.verdict, judged.facts.identity.as_str()), (Verdict::Verified, IDENTITY), "{judged:?}");
    let other = sigstore::simple_signing(&format!("sha256:{}", "ab".repeat(32)));
    failed(
        &of(&detached(other.as_bytes(), &instance.annotations(&Signer::default(), other.as_bytes()))),
        "another digest",
    );
    // A document that names the digest, with the signature of another document.
    failed(
        &of(&detached(document.as_bytes(), &instance.annotations(&Signer::default(), other.as_bytes()))),
        "",
    );
    let by_key = |signed: &str| json!({"dev.cosignproject.cosign/signature": STANDARD.encode(key.sign(signed.as_bytes()))});
    assert_eq!(of(&detached(document.as_bytes(), &by_key(&document))).verdict, Verdict::Verified);
    failed(&of(&detached(document.as_bytes(), &by_key(&other))), "does not trust");
    failed(&of(&detached(other.as_bytes(), &by_key(&other))), "another digest");
}

#[test]
fn older_attestations_are_envelopes_beside_their_certificate() {
    let key = Key::new();
    let trust = trust(&[], &[&key], &[]);
    let bundle = sigstore::by_key(&key, &about_file());
    let envelope = bundle["dsseEnvelope"].to_string();
    let judged = judge(&trust, DSSE, &subject(), &detached(envelope.as_bytes(), &json!({})));
    assert_eq!(
        (judged.verdict, judged.facts.predicate_type.as_str()),
        (Verdict::Verified, PROVENANCE),
        "{judged:?}"
    );
}

/// A file of the fixtures, such as a bundle that the public Sigstore instance signed.
fn of_the_public(name: &str) -> Vec<u8> {
    std::fs::read(packhouse_tests::checkout().join("tests/fixtures/sigstore").join(name)).unwrap()
}

#[test]
fn signatures_of_the_public_instance_are_verified() {
    let roots = vec![packhouse_tests::checkout().join("tests/fixtures/sigstore/trusted_root.json")];
    let trust = Trust::read(&TrustFiles { roots, ..TrustFiles::default() }).unwrap();
    let bundle = of_the_public("npm-provenance.json");
    let sha512 = "46d4e2f74c4877316640000a6fdf8a8b59f1e0847667973e9859f774dd31b8f1\
                  e0937813b777fb66a2ac67d50540fe34640966eee9fc2ccca387082b4c85cd3c";
    let kind = "application/vnd.dev.sigstore.bundle+json;version=0.1";
    let judged = judge(&trust, kind, &format!("sha512:{sha512}"), &bundle);
    assert_eq!(judged.verdict, Verdict::Verified, "{judged:?}");
    assert!(judged.facts.identity.starts_with("https://github.com/sigstore/sigstore-js/"), "{judged:?}");
    assert_eq!([judged.facts.issuer.as_str(), &judged.facts.predicate_type], [ISSUER, PROVENANCE]);
    failed(&judge(&trust, kind, &format!("sha512:{}", "0".repeat(128)), &bundle), "another digest");
    let blob = format!("sha256:{}", hex::encode(Sha256::digest(of_the_public("blob.txt"))));
    let judged = judge(&trust, BUNDLE, &blob, &of_the_public("blob.json"));
    assert_eq!(judged.verdict, Verdict::Verified, "{judged:?}");
    // A statement that the test's own Sigstore instance signed fails with the public instance's
    // root.
    failed(&of(&trust, &Instance::new().bundle(&Signer::default(), &about_file())), "");
}
