//! Policies that require provenance: the server verifies the statements of a publish before it
//! accepts the publish.

use super::formats::try_upload;
use super::release::Release;
use super::{AttestationServer, wheel};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::sigstore::{BUNDLE, Instance, SOURCE, Signer, statement};
use packhouse_tests::{Response, digests};
use serde_json::{Value, json};
use sha2::Digest as _;

/// Adds a policy: versions must be signed by the test's identity and built from this source.
pub(crate) fn demand(set: &AttestationServer, source: &str) {
    let settings = json!({"identities": ["https://github.com/acme/*"], "source_repositories": [source]});
    let body =
        json!({"name": "signed", "component": "provenance", "settings": settings, "repositories": "*"});
    let id = set.api.post("/v1/policies", &body).expect(201).field("id");
    set.api.call("POST", &format!("/v1/policies/{id}/preview")).expect(200);
    set.api.patch(&format!("/v1/policies/{id}"), &json!({"mode": "enforced"})).expect(200);
}

#[track_caller]
pub(crate) fn denied(answer: &Response, words: &str) {
    let text = answer.text();
    assert!(answer.status == 403 && text.contains("policy_denied") && text.contains(words), "{text}");
}

#[test]
fn a_wheel_with_a_valid_statement_is_accepted() {
    let set = AttestationServer::new();
    let python = PythonRepository::create(&set.server, "py");
    demand(&set, SOURCE);
    let (name, file) = (wheel::wheel_name("demo", "1.0"), wheel::wheel("demo", "1.0", ""));
    let about = statement(&name, "sha256", &digests::sha256(&file));
    let upload = |attestations: Option<&Value>| try_upload(&python, "demo", &name, &file, attestations);
    denied(&upload(None), "has no provenance");
    for signer in [Signer::called("https://github.com/mallory/x"), Signer::expired()] {
        denied(&upload(Some(&json!([set.instance.attestation(&signer, &about)]))), "is not verified here");
    }
    let foreign = Instance::new().attestation(&Signer::default(), &about);
    denied(&upload(Some(&json!([foreign]))), "is not verified here");
    let version = format!("/v1/repositories/{}/packages/demo/versions/1.0", python.id);
    set.api.call("GET", &version).expect(404);
    let good = set.instance.attestation(&Signer::default(), &about);
    upload(Some(&json!([good]))).expect(200);
    // The statement about the first file does not cover another file of the version.
    let (second, bytes) = (name.replace("-py3-", "-py2.py3-"), wheel::wheel("demo", "1.0", "X: y\n"));
    denied(&try_upload(&python, "demo", &second, &bytes, None), "has no provenance");
}

#[test]
fn a_tarball_of_the_right_source_is_accepted_and_deprecated_without_another_signature() {
    let set = AttestationServer::new();
    let npm = NpmRepository::create(&set.server, "js");
    demand(&set, SOURCE);
    let release = Release::new("lib", "1.0.0");
    npm.put("lib", &release.document()).expect(403);
    let about = statement("pkg:npm/lib", "sha512", &hex::encode(sha2::Sha512::digest(release.tarball())));
    let text = set.instance.bundle(&Signer::default(), &about).to_string();
    let mut document = release.document();
    document["_attachments"]["bundle.sigstore"] =
        json!({"content_type": BUNDLE, "length": text.len(), "data": text});
    npm.put("lib", &document).expect(201);
    let mut packument = npm.get("lib?write=true").expect(200).json();
    packument["versions"]["1.0.0"]["deprecated"] = json!("use another");
    npm.put("lib", &packument).expect(201);
    assert_eq!(npm.get("lib").expect(200).json()["versions"]["1.0.0"]["deprecated"], "use another");
}

#[test]
fn a_package_built_from_another_source_is_refused() {
    let set = AttestationServer::new();
    let python = PythonRepository::create(&set.server, "py");
    demand(&set, "https://github.com/acme/other");
    let (name, file) = (wheel::wheel_name("demo", "1.0"), wheel::wheel("demo", "1.0", ""));
    let about = statement(&name, "sha256", &digests::sha256(&file));
    let good = json!([set.instance.attestation(&Signer::default(), &about)]);
    denied(&try_upload(&python, "demo", &name, &file, Some(&good)), "it was built from");
}
