//! Packages through a proxy: the server fetches their signatures from the upstream, and verifies
//! and lists them like those of hosted packages. A policy that requires provenance applies to the
//! first fetch.

use super::demanded::{demand, denied};
use super::formats::try_upload;
use super::release::Release;
use super::{AttestationServer, verdicts, wheel};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::sigstore::{BUNDLE, IDENTITY, SOURCE, Signer, statement};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Request, Server, digests};
use serde_json::{Value, json};
use sha2::Digest as _;

fn public() -> Value {
    json!({"kind": "hosted", "settings": {"public": true}})
}

#[test]
fn an_upstreams_tarball_is_judged_by_its_signatures_there() {
    let (set, far) = (AttestationServer::new(), Server::start());
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
fn an_upstreams_wheel_is_judged_by_its_signatures_there() {
    let (set, far) = (AttestationServer::new(), Server::start());
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
    // The proxy serves a file again without another request to the upstream.
    drop(far);
    file("1.0").expect(200);
}

#[test]
fn an_upstreams_jar_is_judged_by_the_signature_beside_it() {
    let (set, upstream) = (AttestationServer::new(), Upstream::start());
    let proxy = FormatRepository::proxy(&set.server, "maven", "jars", &upstream.url(), &json!({}));
    let folder = "org/example/lib/1.0";
    let lay = |name: &str, bytes: &[u8], signer: Option<&Signer>| {
        upstream.on(&format!("/{folder}/{name}"), Answer::ok(bytes));
        if let Some(signer) = signer {
            let bundle = set.instance.signature(signer, bytes).to_string();
            upstream.on(&format!("/{folder}/{name}.sigstore.json"), Answer::ok(bundle));
        }
    };
    let asc = "-----BEGIN PGP SIGNATURE-----\n\n?\n-----END PGP SIGNATURE-----\n";
    lay("lib-1.0.pom", b"<project/>", Some(&Signer::default()));
    lay("lib-1.0.jar", b"a jar", Some(&Signer::default()));
    upstream.on(&format!("/{folder}/lib-1.0.jar.asc"), Answer::ok(asc));
    lay("lib-1.0-sources.jar", b"sources", Some(&Signer::called("https://github.com/mallory/x")));
    lay("lib-1.0-javadoc.jar", b"javadoc", None);
    lay("lib-1.0-tests.jar", b"tests", Some(&Signer::default()));
    let ask = |name: &str| proxy.get(&format!("{folder}/{name}"));

    // Without a policy that requires provenance, the proxy fetches only files that clients request.
    // Clients can also request signatures.
    ask("lib-1.0.pom").expect(200);
    assert!(upstream.requests().iter().all(|one| !one.target.contains("sigstore")));
    assert_eq!(ask("lib-1.0.jar.asc").expect(200).text(), asc);

    demand(&set, SOURCE);
    for name in ["lib-1.0.pom", "lib-1.0.jar"] {
        ask(name).expect(200);
    }
    assert_eq!(
        proxy.client.send(Request::new("HEAD", &proxy.path(&format!("{folder}/lib-1.0.jar")))).status,
        200
    );
    let stated = set.stated(&proxy.id, "org.example:lib", "1.0", 3);
    let of = |file: &str, ending: &str| {
        let (file, path) = (format!("{folder}/{file}"), format!("{folder}/{file}{ending}"));
        let found = stated.iter().find(|one| one["file"] == file && one["path"] == path);
        found.unwrap_or_else(|| panic!("{file} {ending}: {stated:#?}"))["verdict"].clone()
    };
    assert_eq!(of("lib-1.0.pom", ".sigstore.json"), "verified");
    assert_eq!(of("lib-1.0.jar", ".sigstore.json"), "verified");
    assert_eq!(of("lib-1.0.jar", ".asc"), "unverifiable");
    // The signatures of the other files do not cover this file of the version.
    denied(&ask("lib-1.0-sources.jar"), "is not verified here");
    denied(&ask("lib-1.0-javadoc.jar"), "has no provenance");
    let requests = || upstream.requests().iter().filter(|one| one.target.contains("javadoc.jar.")).count();
    let before = requests();
    denied(&ask("lib-1.0-javadoc.jar"), "has no provenance");
    assert_eq!(requests(), before, "the absence is cached");
    // A signature does not cover a tampered file either.
    lay("lib-1.0-tests.jar", b"tampered with", None);
    denied(&ask("lib-1.0-tests.jar"), "is not verified here");
    // Signatures need no signature themselves. The server allows a signature if it allows the
    // signed file.
    for name in ["lib-1.0.jar.asc", "lib-1.0.jar.sigstore.json"] {
        ask(name).expect(200);
    }
    denied(&ask("lib-1.0-sources.jar.sigstore.json"), "is not verified here");
    upstream.down(true);
    for name in ["lib-1.0.pom", "lib-1.0.jar", "lib-1.0.jar.asc", "lib-1.0.jar.sigstore.json"] {
        ask(name).expect(200);
    }
}

#[test]
fn a_statement_about_one_wheel_does_not_cover_another() {
    let (set, far) = (AttestationServer::new(), Server::start());
    let origin = PythonRepository::create_as(&far, "py", &public());
    let (first, second) = (wheel::wheel_name("demo", "1.0"), "demo-1.0-py2.py3-none-any.whl");
    let file = wheel::wheel("demo", "1.0", "");
    let about = statement(&first, "sha256", &digests::sha256(&file));
    let signed = json!([set.instance.attestation(&Signer::default(), &about)]);
    try_upload(&origin, "demo", &first, &file, Some(&signed)).expect(200);
    try_upload(&origin, "demo", second, &wheel::wheel("demo", "1.0", "X: y\n"), None).expect(200);
    let proxy = PythonRepository::proxy(&set.server, "py", &origin.url, &json!({}));
    demand(&set, SOURCE);
    proxy.file("demo", "1.0", &first).expect(200);
    denied(&proxy.file("demo", "1.0", second), "has no provenance");
}
