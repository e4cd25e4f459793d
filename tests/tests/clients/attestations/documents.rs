//! Bills of materials of versions. The server lists them in every format that supports them and
//! serves them unchanged. It deletes and restores them together with their version.

use super::formats::try_upload;
use super::images::refer;
use super::release::Release;
use super::{AttestationServer, wheel};
use packhouse_tests::images::{ImageRepository, MANIFEST, digest};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::person::Person;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::{Api, Client, MavenRepository, Request, digests};
use serde_json::{Value, json};

const CYCLONEDX: &str = "application/vnd.cyclonedx+json";
const SPDX: &str = "application/spdx+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const BOM: &str = r#"{"bomFormat":"CycloneDX","specVersion":"1.6","components":[]}"#;

/// The path of a version in the API.
fn path(repository: &str, package: &str, version: &str) -> String {
    let package = package.replace('/', "%2F").replace('@', "%40");
    format!("/v1/repositories/{repository}/packages/{package}/versions/{version}")
}

fn documents(api: &Api, version: &str) -> Vec<Value> {
    api.call("GET", version).expect(200).json()["documents"].as_array().unwrap().clone()
}

/// Returns four fields of each document: title, form, media type, and the file that it describes.
fn summaries(documents: &[Value]) -> Vec<[&str; 4]> {
    documents
        .iter()
        .map(|one| ["title", "form", "media_type", "file"].map(|name| one[name].as_str().unwrap()))
        .collect()
}

/// The content of a document, and the file name that a browser would use.
fn fetched(api: &Api, version: &str, document: &Value) -> (String, String) {
    let digest = document["digest"].as_str().unwrap();
    let answer = api.call("GET", &format!("{version}/documents/{digest}")).expect(200);
    assert_eq!(answer.header("content-type"), document["media_type"].as_str());
    assert_eq!(digest, format!("sha256:{}", digests::sha256(answer.text().as_bytes())));
    (answer.text(), answer.header("content-disposition").unwrap().to_owned())
}

#[test]
fn a_wheels_bills_of_materials_are_listed_and_restored_with_it() {
    let set = AttestationServer::new();
    let python = PythonRepository::create(&set.server, "py");
    let folder = "demo-1.0.dist-info";
    let (first, second) =
        (format!("{folder}/sboms/demo.cdx.json"), format!("{folder}/sboms/lib/zlib.spdx.json"));
    let file = wheel::wheel_with(
        "demo",
        "1.0",
        &[(&first, BOM.as_bytes()), (&second, b"{}"), (&format!("{folder}/sboms/notes.txt"), b"no")],
    );
    let name = wheel::wheel_name("demo", "1.0");
    try_upload(&python, "demo", &name, &file, None).expect(200);
    let version = path(&python.id, "demo", "1.0");
    let listed = documents(&set.api, &version);
    let about = format!("packages/demo/1.0/{name}");
    assert_eq!(
        summaries(&listed),
        [["demo.cdx.json", "cyclonedx", CYCLONEDX, &about], ["lib/zlib.spdx.json", "spdx", SPDX, &about]]
    );
    let disposition = "attachment; filename=\"demo.cdx.json\"";
    assert_eq!(fetched(&set.api, &version, &listed[0]), (BOM.to_owned(), disposition.to_owned()));
    assert_eq!(listed[0]["size"], BOM.len());

    // The page links to the same document.
    let mut person = Person::owner(&set.server);
    let page = person.get("/repositories/py/packages/demo/versions/1.0").expect(200).text();
    let link = format!(
        "/repositories/py/packages/demo/versions/1.0/documents/{}",
        listed[0]["digest"].as_str().unwrap()
    );
    assert!(page.contains("Bills of materials") && page.contains(&format!("href=\"{link}\"")), "{page}");
    assert_eq!(person.get(&link).expect(200).text(), BOM);

    // The API returns only documents of this version. It answers 404 for the digest of the
    // version's own file, for an unknown digest and for an invalid digest.
    let of = |digest: &str| format!("{version}/documents/{digest}");
    for digest in
        [format!("sha256:{}", digests::sha256(&file)), format!("sha256:{}", "ab".repeat(32)), "x".to_owned()]
    {
        set.api.call("GET", &of(&digest)).expect(404);
    }
    let anonymous = Client::new(set.server.api());
    anonymous.get(&of(listed[0]["digest"].as_str().unwrap())).expect(401);

    set.api.call("DELETE", &version).expect(204);
    set.api.call("GET", &of(listed[0]["digest"].as_str().unwrap())).expect(404);
    let trash = set.api.call("GET", &format!("/v1/repositories/{}/trash", python.id)).expect(200).json();
    let entry = trash["items"][0]["id"].as_str().unwrap();
    set.api.call("POST", &format!("/v1/repositories/{}/trash/{entry}/restore", python.id)).expect(200);
    assert_eq!(documents(&set.api, &version), listed);
    assert_eq!(fetched(&set.api, &version, &listed[1]).0, "{}");
}

#[test]
fn a_tarballs_bills_of_materials_are_found_in_it() {
    let set = AttestationServer::new();
    let npm = NpmRepository::create(&set.server, "js");
    let release = Release::new("@acme/lib", "1.0.0")
        .file("bom.json", BOM)
        .file("sboms/lib.spdx.json", "{\"spdxVersion\":\"SPDX-2.3\"}")
        .file("src/bom.json", "no");
    npm.put(release.path().trim_start_matches('/'), &release.document()).expect(201);
    let version = path(&npm.id, "@acme/lib", "1.0.0");
    let listed = documents(&set.api, &version);
    let about = "@acme/lib/-/lib-1.0.0.tgz";
    assert_eq!(
        summaries(&listed),
        [["bom.json", "cyclonedx", CYCLONEDX, about], ["sboms/lib.spdx.json", "spdx", SPDX, about]]
    );
    assert_eq!(fetched(&set.api, &version, &listed[0]).0, BOM);
    assert_eq!(fetched(&set.api, &version, &listed[1]).1, "attachment; filename=\"lib.spdx.json\"");
}

#[test]
fn an_attached_file_is_a_bill_of_materials_by_its_name() {
    let set = AttestationServer::new();
    let maven = MavenRepository::create(&set.server, "jars");
    let folder = "org/example/lib/1.0";
    for (name, bytes) in [
        ("lib-1.0.jar", "a jar"),
        ("lib-1.0-cyclonedx.json", BOM),
        ("lib-1.0-cyclonedx.xml", "<bom/>"),
        ("lib-1.0.spdx.json", "{}"),
        ("lib-1.0-sources.jar", "sources"),
    ] {
        maven.put(&format!("{folder}/{name}"), bytes.as_bytes().to_vec()).expect(201);
    }
    let version = path(&maven.id, "org.example:lib", "1.0");
    let listed = documents(&set.api, &version);
    assert_eq!(
        summaries(&listed),
        [
            ["lib-1.0-cyclonedx.json", "cyclonedx", CYCLONEDX, ""],
            ["lib-1.0-cyclonedx.xml", "cyclonedx", "application/vnd.cyclonedx+xml", ""],
            ["lib-1.0.spdx.json", "spdx", SPDX, ""],
        ]
    );
    assert_eq!(listed[0]["path"], format!("{folder}/lib-1.0-cyclonedx.json"));
    assert_eq!(fetched(&set.api, &version, &listed[0]).0, BOM);
    let gone = maven.path(&format!("{folder}/lib-1.0-cyclonedx.json"));
    maven.client.send(Request::new("DELETE", &gone)).expect(204);
    assert_eq!(documents(&set.api, &version).len(), 2);
}

#[test]
fn referrers_and_platform_attestations_are_listed_with_an_images_tags() {
    let set = AttestationServer::new();
    let images = ImageRepository::create(&set.server, "images", &json!({}));
    let (manifest, version) =
        (images.push("app", "1.0", &[b"a layer"]).unwrap(), path(&images.id, "app", "1.0"));
    let image = digest(manifest.as_bytes());
    let referrer = refer(&images, CYCLONEDX, CYCLONEDX, BOM.as_bytes(), &image);
    refer(&images, "application/vnd.syft+json", "application/vnd.syft+json", b"{\"syft\":1}", &image);
    let listed = documents(&set.api, &version);
    let mut forms: Vec<&str> = listed.iter().map(|one| one["form"].as_str().unwrap()).collect();
    forms.sort_unstable();
    assert_eq!(forms, ["cyclonedx", "syft"]);
    let bom = listed.iter().find(|one| one["form"] == "cyclonedx").unwrap();
    assert_eq!(
        [&bom["path"], &bom["file"], &bom["title"]].map(|text| text.as_str().unwrap()),
        [format!("app/manifests/{referrer}").as_str(), "app/manifests/1.0", &digest(BOM.as_bytes())]
    );
    assert_eq!(fetched(&set.api, &version, bom).0, BOM);
    assert!(set.stated(&images.id, "app", "1.0", 0).is_empty(), "none of them is a signed statement");

    // Another tag has the same documents. Deleting a referrer also removes the document that it
    // contains.
    images.push("app", "latest", &[b"a layer"]).unwrap();
    assert_eq!(documents(&set.api, &path(&images.id, "app", "latest")).len(), 2);
    images.ask("DELETE", &format!("app/manifests/{referrer}")).expect(202);
    for tag in ["1.0", "latest"] {
        assert_eq!(documents(&set.api, &path(&images.id, "app", tag)).len(), 1);
    }

    // BuildKit writes unsigned in-toto statements beside the platforms of an index.
    let statement =
        json!({"predicateType": "https://spdx.dev/Document", "predicate": {"spdxVersion": "SPDX-2.3"}})
            .to_string();
    let provenance =
        json!({"predicateType": "https://slsa.dev/provenance/v0.2", "predicate": {}}).to_string();
    images.push_blob("app", statement.as_bytes()).expect(201);
    images.push_blob("app", provenance.as_bytes()).expect(201);
    let layer = |bytes: &str, predicate: &str| {
        json!({"mediaType": "application/vnd.in-toto+json", "digest": digest(bytes.as_bytes()), "size": bytes.len(),
            "annotations": {"in-toto.io/predicate-type": predicate}})
    };
    let attached = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(b"{}"), "size": 2},
        "layers": [layer(&statement, "https://spdx.dev/Document"), layer(&provenance, "https://slsa.dev/provenance/v0.2")],
    })
    .to_string();
    let own = digest(attached.as_bytes());
    images.push_manifest("app", &own, MANIFEST, &attached).expect(201);
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [
        {"mediaType": MANIFEST, "digest": image, "size": manifest.len(), "platform": {"os": "linux", "architecture": "amd64"}},
        {"mediaType": MANIFEST, "digest": own, "size": attached.len(), "platform": {"os": "unknown", "architecture": "unknown"},
            "annotations": {"vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": image}},
    ]})
    .to_string();
    images.push_manifest("app", "2.0", INDEX, &index).expect(201);
    let version = path(&images.id, "app", "2.0");
    let listed = documents(&set.api, &version);
    assert_eq!(
        summaries(&listed),
        [[
            digest(statement.as_bytes()).as_str(),
            "spdx",
            "application/vnd.in-toto+json",
            "app/manifests/2.0"
        ]]
    );
    assert_eq!(fetched(&set.api, &version, &listed[0]).0, statement);
}
