//! Python, npm and Maven packages that clients publish with valid and invalid statements.

use super::release::Release;
use super::{AttestationServer, verdicts, wheel};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::person::Person;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::sigstore::{
    BUNDLE, COMMIT, IDENTITY, ISSUER, Instance, PROVENANCE, SOURCE, Signer, statement,
};
use packhouse_tests::{MavenRepository, Request, Response, digests};
use serde_json::{Value, json};
use sha2::Digest as _;

/// Uploads a wheel with these attestations.
fn upload(repository: &PythonRepository, project: &str, file: &[u8], attestations: &Value) {
    try_upload(repository, project, &wheel::wheel_name(project, "1.0"), file, Some(attestations)).expect(200);
}

/// Uploads a wheel under this name, with or without attestations.
pub(super) fn try_upload(
    repository: &PythonRepository,
    project: &str,
    name: &str,
    file: &[u8],
    attestations: Option<&Value>,
) -> Response {
    let part = |what: &str| format!("--here\r\nContent-Disposition: form-data; name={what}\r\n\r\n");
    let mut form = String::new();
    let attestations = attestations.map(Value::to_string);
    let fields = [
        ("name", Some(project)),
        ("version", name.split('-').nth(1)),
        ("attestations", attestations.as_deref()),
    ];
    for (field, value) in fields.into_iter().filter_map(|(field, value)| Some((field, value?))) {
        form += &format!("{}{value}\r\n", part(&format!("\"{field}\"")));
    }
    form += &part(&format!("\"content\"; filename=\"{name}\""));
    let body = [form.as_bytes(), file, b"\r\n--here--\r\n"].concat();
    let request = Request::new("POST", &repository.path(""))
        .header("Content-Type", "multipart/form-data; boundary=here");
    repository.client.send(request.body(body))
}

#[test]
fn a_wheels_attestations_are_judged_listed_and_served() {
    let set = AttestationServer::new();
    let python = PythonRepository::create(&set.server, "py");
    let (name, file) = (wheel::wheel_name("demo", "1.0"), wheel::wheel("demo", "1.0", ""));
    let about = statement(&name, "sha256", &digests::sha256(&file));
    let good = set.instance.attestation(&Signer::default(), &about);
    let other = set.instance.attestation(&Signer::called("https://github.com/mallory/x"), &about);
    let expired = set.instance.attestation(&Signer::expired(), &about);
    let foreign = Instance::new().attestation(&Signer::default(), &about);
    let mut tampered = good.clone();
    tampered["envelope"]["signature"] = expired["envelope"]["signature"].clone();
    upload(&python, "demo", &file, &json!([good, other, expired, foreign, tampered]));
    let stated = set.stated(&python.id, "demo", "1.0", 5);
    assert_eq!(
        verdicts(&stated),
        ["verified", "other_identity", "failed", "failed", "failed"],
        "{stated:#?}"
    );
    let first = &stated[0];
    let facts =
        ["identity", "issuer", "source", "commit", "kind", "media_type", "reason"].map(|name| &first[name]);
    let expected = [IDENTITY, ISSUER, SOURCE, COMMIT, PROVENANCE, BUNDLE, ""];
    assert_eq!(facts, expected.map(|text| json!(text)).each_ref());
    assert_eq!(first["file"], format!("packages/demo/1.0/{name}"));
    assert_eq!(first["subject"], format!("sha256:{}", digests::sha256(&file)));
    assert!(first["signed_at"].is_i64() && first["judged_at"].is_i64() && stated[1]["identity"] != IDENTITY);
    for (number, words) in [
        (1, "not one of the expected identities"),
        (2, "not valid when it was signed"),
        (3, "not known to any trusted root"),
    ] {
        assert!(stated[number]["reason"].as_str().unwrap().contains(words), "{:#?}", stated[number]);
    }
    let path = first["path"].as_str().unwrap();
    let provenance = python.client.get(&python.path(path)).expect(200).json();
    assert_eq!(provenance["attestation_bundles"][0]["attestations"][0], good);

    // The portal's page shows the same verdicts.
    let page =
        Person::owner(&set.server).get("/repositories/py/packages/demo/versions/1.0").expect(200).text();
    for words in ["verified", "other identity", ">invalid<", IDENTITY, COMMIT] {
        assert!(page.contains(words), "{words}\n{page}");
    }

    // A change of the trust root changes the verdict without another publish.
    std::fs::write(set.file("trusted_root.json"), Instance::new().trusted_root()).unwrap();
    set.api.call("POST", "/v1/reload").expect(200);
    packhouse_tests::server::eventually("another verdict", || {
        (verdicts(&set.stated(&python.id, "demo", "1.0", 5))[0] == "failed").then_some(())
    });
    std::fs::write(set.file("trusted_root.json"), "{").unwrap();
    let refused = set.api.call("POST", "/v1/reload").expect(400).text();
    assert!(refused.contains("trusted_root.json"), "{refused}");

    // A deleted version loses its statements and gets them back when it is restored.
    let version = format!("/v1/repositories/{}/packages/demo/versions/1.0", python.id);
    set.api.call("DELETE", &version).expect(204);
    set.api.call("GET", &version).expect(404);
    let trash = set.api.call("GET", &format!("/v1/repositories/{}/trash", python.id)).expect(200).json();
    let entry = trash["items"][0]["id"].as_str().unwrap();
    let restored = set.api.call("POST", &format!("/v1/repositories/{}/trash/{entry}/restore", python.id));
    restored.expect(200);
    assert_eq!(set.stated(&python.id, "demo", "1.0", 5)[0]["identity"], IDENTITY);
}

#[test]
fn a_tarballs_provenance_is_judged_by_its_sha512() {
    let set = AttestationServer::new();
    let npm = NpmRepository::create(&set.server, "js");
    let publish = |release: &Release, bundle: &Value| {
        let mut document = release.document();
        let text = bundle.to_string();
        let attachment = json!({"content_type": BUNDLE, "length": text.len(), "data": text});
        document["_attachments"]["bundle.sigstore"] = attachment;
        npm.put(release.path().trim_start_matches('/'), &document).expect(201);
    };
    let about = |release: &Release| {
        statement("pkg:npm/x", "sha512", &hex::encode(sha2::Sha512::digest(release.tarball())))
    };
    let release = Release::new("@acme/lib", "1.0.0");
    publish(&release, &set.instance.bundle(&Signer::default(), &about(&release)));
    let stated = set.stated(&npm.id, "@acme/lib", "1.0.0", 1);
    assert_eq!(
        (verdicts(&stated), &stated[0]["identity"]),
        (vec!["verified"], &json!(IDENTITY)),
        "{stated:#?}"
    );
    assert_eq!(stated[0]["path"], "-/npm/v1/attestations/@acme/lib@1.0.0");
    let next = Release::new("@acme/lib", "1.1.0");
    publish(&next, &Instance::new().bundle(&Signer::default(), &about(&next)));
    assert_eq!(verdicts(&set.stated(&npm.id, "@acme/lib", "1.1.0", 1)), ["failed"]);
    let packument = npm.get("@acme%2flib").expect(200).json();
    let url = packument["versions"]["1.0.0"]["dist"]["attestations"]["url"].as_str().unwrap();
    assert!(url.ends_with("/-/npm/v1/attestations/@acme/lib@1.0.0"), "{url}");
}

#[test]
fn a_jars_signatures_are_stated_whichever_comes_first() {
    let set = AttestationServer::new();
    let maven = MavenRepository::create(&set.server, "jars");
    let folder = "org/example/lib/1.0";
    let (jar, pom) = (b"a jar".to_vec(), b"<project/>".to_vec());
    let bundle = |bytes: &[u8]| set.instance.signature(&Signer::default(), bytes).to_string();
    let put = |name: &str, bytes: Vec<u8>| drop(maven.put(&format!("{folder}/{name}"), bytes).expect(201));
    put("lib-1.0.jar", jar.clone());
    put("lib-1.0.jar.sigstore.json", bundle(&jar).into_bytes());
    put("lib-1.0.jar.asc", b"-----BEGIN PGP SIGNATURE-----\n\n?\n-----END PGP SIGNATURE-----\n".to_vec());
    put("lib-1.0.pom.sigstore.json", bundle(&pom).into_bytes());
    put("lib-1.0.pom", pom);
    put("lib-1.0-sources.jar", b"sources".to_vec());
    put("lib-1.0-sources.jar.sigstore.json", bundle(&jar).into_bytes());
    let stated = set.stated(&maven.id, "org.example:lib", "1.0", 4);
    let of = |file: &str, kind: &str| {
        let found =
            stated.iter().find(|one| one["file"] == format!("{folder}/{file}") && one["media_type"] == kind);
        found.unwrap_or_else(|| panic!("{file} {kind}: {stated:#?}"))
    };
    assert_eq!(of("lib-1.0.jar", BUNDLE)["verdict"], "verified");
    assert_eq!(of("lib-1.0.pom", BUNDLE)["verdict"], "verified");
    assert_eq!(of("lib-1.0.jar", "application/pgp-signature")["verdict"], "unverifiable");
    let sources = of("lib-1.0-sources.jar", BUNDLE);
    assert_eq!(sources["verdict"], "failed");
    assert!(sources["reason"].as_str().unwrap().contains("another digest"), "{sources:#?}");
    // Deleting the file of a signature removes its statement.
    let gone = maven.path(&format!("{folder}/lib-1.0-sources.jar.sigstore.json"));
    maven.client.send(Request::new("DELETE", &gone)).expect(204);
    set.stated(&maven.id, "org.example:lib", "1.0", 3);
}
