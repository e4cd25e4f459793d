//! What comes through a proxy: what is signed of it upstream is judged and shown as if it had been published here, and where a policy demands
//! provenance the first fetch is judged by it.

use super::demanded::{demand, denied};
use super::formats::try_upload;
use super::release::Release;
use super::{Set, verdicts, wheel};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::sigstore::{BUNDLE, IDENTITY, SOURCE, Signer, statement};
use packhouse_tests::{Server, digests};
use serde_json::{Value, json};
use sha2::Digest as _;

fn public() -> Value {
    json!({"kind": "hosted", "settings": {"public": true}})
}

#[test]
fn a_tarball_of_an_upstream_is_judged_by_what_is_signed_there() {
    let (set, far) = (Set::new(), Server::start());
    let origin = NpmRepository::create_as(&far, "js", &public());
    let publish = |version: &str, signer: Option<&Signer>| {
        let release = Release::new("lib", version);
        let mut document = release.document();
        if let Some(signer) = signer {
            let sha512 = hex::encode(sha2::Sha512::digest(release.tarball()));
            let text = set.instance.bundle(signer, &statement("pkg:npm/lib", "sha512", &sha512)).to_string();
            document["_attachments"]["bundle.sigstore"] =
                json!({"content_type": BUNDLE, "length": text.len(), "data": text});
        }
        origin.put("lib", &document).expect(201);
    };
    publish("1.0.0", Some(&Signer::default()));
    publish("1.1.0", Some(&Signer::called("https://github.com/mallory/x")));
    publish("1.2.0", None);
    let kind = json!({"kind": "proxy", "upstream": {"url": origin.url(&far)}});
    let proxy = NpmRepository::create_as(&set.server, "js", &kind);
    demand(&set, SOURCE);
    let tarball = |version: &str| proxy.get(&format!("lib/-/lib-{version}.tgz"));
    tarball("1.0.0").expect(200);
    denied(&tarball("1.1.0"), "is not verified here");
    denied(&tarball("1.2.0"), "has no provenance");
    let stated = set.stated(&proxy.id, "lib", "1.0.0", 1);
    assert_eq!((verdicts(&stated), &stated[0]["identity"]), (vec!["verified"], &json!(IDENTITY)));
    assert_eq!(stated[0]["file"], "lib/-/lib-1.0.0.tgz");
    let path = stated[0]["path"].as_str().unwrap();
    assert_eq!(proxy.get(path).expect(200).json()["attestations"].as_array().unwrap().len(), 1);
    assert_eq!(verdicts(&set.stated(&proxy.id, "lib", "1.1.0", 1)), ["other_identity"]);
    set.stated(&proxy.id, "lib", "1.2.0", 0);
}

#[test]
fn a_wheel_of_an_upstream_is_judged_by_what_is_signed_there() {
    let (set, far) = (Set::new(), Server::start());
    let origin = PythonRepository::create_as(&far, "py", &public());
    let name = |version: &str| wheel::wheel_name("demo", version);
    let publish = |version: &str, signer: Option<&Signer>| {
        let file = wheel::wheel("demo", version, "");
        let about = statement(&name(version), "sha256", &digests::sha256(&file));
        let signed = signer.map(|signer| json!([set.instance.attestation(signer, &about)]));
        try_upload(&origin, "demo", &name(version), &file, signed.as_ref()).expect(200);
    };
    publish("1.0", Some(&Signer::default()));
    publish("1.1", Some(&Signer::called("https://github.com/mallory/x")));
    publish("1.2", None);
    let proxy = PythonRepository::proxy(&set.server, "py", &origin.url, &json!({}));
    demand(&set, SOURCE);
    let file = |version: &str| proxy.file("demo", version, &name(version));
    file("1.0").expect(200);
    denied(&file("1.1"), "is not verified here");
    denied(&file("1.2"), "has no provenance");
    let stated = set.stated(&proxy.id, "demo", "1.0", 1);
    assert_eq!((verdicts(&stated), &stated[0]["identity"]), (vec!["verified"], &json!(IDENTITY)));
    assert_eq!(stated[0]["file"], format!("packages/demo/1.0/{}", name("1.0")));
    assert_eq!(verdicts(&set.stated(&proxy.id, "demo", "1.1", 1)), ["other_identity"]);
    // What was served is served again without another question.
    drop(far);
    file("1.0").expect(200);
}
