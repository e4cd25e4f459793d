//! Uploads by other clients than twine, and the attestations in the index.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::{Request, Response, Server, digests};
use serde_json::json;

use crate::wheel;

const BOUNDARY: &str = "a-boundary";

/// Uploads a wheel of version 1.0 of this project, with these additional fields.
fn upload(repository: &PythonRepository, project: &str, file: &[u8], fields: &[(&str, &str)]) -> Response {
    let part = |what: &str| format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name={what}\r\n\r\n");
    let mut form = String::new();
    for (name, value) in [("name", project), ("version", "1.0")].iter().chain(fields) {
        form += &format!("{}{value}\r\n", part(&format!("\"{name}\"")));
    }
    form += &part(&format!("\"content\"; filename=\"{}\"", wheel::wheel_name(project, "1.0")));
    let body = [form.as_bytes(), file, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat();
    let kind = format!("multipart/form-data; boundary={BOUNDARY}");
    repository
        .client
        .send(Request::new("POST", &repository.path("")).header("Content-Type", &kind).body(body))
}

#[test]
fn a_form_without_an_action_is_an_upload() {
    let server = Server::start();
    let repository = PythonRepository::create(&server, "forms");
    let good = |project: &str| wheel::wheel(project, "1.0", "");
    upload(&repository, "bare", &good("bare"), &[]).expect(200);
    upload(&repository, "empty", &good("empty"), &[(":action", ""), ("protocol_version", "1")]).expect(200);
    for project in ["bare", "empty"] {
        let name = wheel::wheel_name(project, "1.0");
        assert_eq!(repository.page(project)["files"][0]["filename"], name.as_str());
        assert_eq!(repository.file(project, "1.0", &name).expect(200).body, good(project));
    }
    // The server still checks all fields that the form contains.
    upload(&repository, "bare", &good("bare"), &[]).expect(409);
    upload(&repository, "other", &good("bare"), &[]).expect(400);
    upload(&repository, "next", &good("next"), &[("sha256_digest", &"0".repeat(64))]).expect(400);
    upload(&repository, "next", &good("next"), &[("protocol_version", "2")]).expect(400);
    upload(&repository, "next", &good("next"), &[(":action", "upload")]).expect(400);
    upload(&repository, "next", &good("next"), &[(":action", "submit")]).expect(410);
    repository.ask("next").expect(404);
}

/// Returns an attestation of this file, with content that cannot be verified.
fn attestation(name: &str, file: &[u8]) -> String {
    let statement = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": name, "digest": {"sha256": digests::sha256(file)}}],
        "predicateType": "https://docs.pypi.org/attestations/publish/v1",
        "predicate": null,
    });
    let encoded = |text: &str| STANDARD.encode(text);
    let material = json!({"certificate": encoded("certificate"), "transparency_entries": [{}]});
    let envelope = json!({"statement": encoded(&statement.to_string()), "signature": encoded("signature")});
    json!([{"version": 1, "verification_material": material, "envelope": envelope}]).to_string()
}

/// PEP 740 requires "a fully qualified URL" of the provenance in both forms of the index. A group
/// has URLs of its own.
#[test]
fn the_address_of_a_provenance_is_absolute() {
    let server = Server::start();
    let repository = PythonRepository::create(&server, "attested");
    let group = PythonRepository::group(&server, "all", &[&repository], &json!({}));
    let (file, name) = (wheel::wheel("demo", "1.0", ""), wheel::wheel_name("demo", "1.0"));
    upload(&repository, "demo", &file, &[("attestations", &attestation(&name, &file))]).expect(200);
    upload(&repository, "plain", &wheel::wheel("plain", "1.0", ""), &[]).expect(200);
    for repository in [&repository, &group] {
        let address = format!("{}/integrity/demo/1.0/{name}/provenance", repository.url);
        assert_eq!(repository.page("demo")["files"][0]["provenance"], address.as_str());
        let request = Request::new("GET", &repository.path("simple/demo/")).header("Accept", "text/html");
        let page = repository.client.send(request).expect(200).text();
        assert!(page.contains(&format!("data-provenance=\"{address}\"")), "{page}");
        let path = address.strip_prefix(&server.base_url()).unwrap();
        let provenance = repository.client.get(path).expect(200).json();
        assert_eq!(provenance["attestation_bundles"][0]["attestations"][0]["version"], 1);
        assert!(repository.page("plain")["files"][0]["provenance"].is_null());
    }
}
