//! Hosted names in Maven, Python and npm. Each format runs the steps of `scheme`.

use super::scheme::{Scheme, run};
use super::{HiddenNamesFixture, offer_maven, wheel};
use packhouse_tests::Request;
use packhouse_tests::digests;
use packhouse_tests::python::SIMPLE_JSON;
use packhouse_tests::upstream::{Answer, Upstream};
use serde_json::{Value, json};

#[test]
fn a_hosted_maven_artifact_is_hidden_from_clients_without_access() {
    run(&Scheme {
        format: "maven",
        offer: &|world, name| offer_maven(&world.upstream, name),
        publish: &|world, name| {
            let path = format!("/repositories/own/org/example/{name}/1.0/{name}-1.0.jar");
            world.owner.put(&path, "ours").expect(201);
        },
        withdraw: &|world, name| world.remove(&format!("org.example:{name}"), "1.0"),
        paths: &|_, name| {
            let folder = format!("/repositories/all/org/example/{name}");
            let file = format!("{folder}/99.0/{name}-99.0.jar");
            let beside = [format!("{folder}/99.0/notes.txt"), format!("{folder}/maven-metadata.xml")];
            let sums = [format!("{file}.sha1"), format!("{folder}/maven-metadata.xml.sha1")];
            [file].into_iter().chain(beside).chain(sums).collect()
        },
        claim: &|name| format!("org.example:{name}"),
    });
}

/// Offers a project with one version at the upstream.
pub(crate) fn offer(upstream: &Upstream, project: &str) {
    let (name, bytes) = (wheel::wheel_name(project, "99.0"), wheel::wheel(project, "99.0", ""));
    let path = format!("/files/{name}");
    let file = json!({"filename": name, "url": path, "hashes": {"sha256": digests::sha256(&bytes)},
        "core-metadata": true});
    upstream.on(&path, Answer::ok(bytes));
    upstream.on(&format!("{path}.metadata"), Answer::ok("METADATA"));
    let page = json!({"meta": {"api-version": "1.1"}, "name": project, "files": [file]}).to_string();
    upstream.on(&format!("/simple/{project}/"), Answer::ok(page).header("Content-Type", SIMPLE_JSON));
}

/// Uploads a wheel of version 1.0 as twine does.
#[track_caller]
pub(crate) fn upload(world: &HiddenNamesFixture, project: &str) {
    let (name, bytes) = (wheel::wheel_name(project, "1.0"), wheel::wheel(project, "1.0", ""));
    let mut body = Vec::new();
    let fields = [
        (":action", "file_upload"),
        ("protocol_version", "1"),
        ("metadata_version", "2.1"),
        ("filetype", "bdist_wheel"),
        ("pyversion", "py3"),
        ("name", project),
        ("version", "1.0"),
    ];
    for (field, value) in fields {
        let part = format!("--edge\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n");
        body.extend_from_slice(part.as_bytes());
    }
    let head =
        format!("--edge\r\nContent-Disposition: form-data; name=\"content\"; filename=\"{name}\"\r\n\r\n");
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(&bytes);
    body.extend_from_slice(b"\r\n--edge--\r\n");
    let request = Request::new("POST", "/repositories/own")
        .header("Content-Type", "multipart/form-data; boundary=edge")
        .body(body);
    world.owner.send(request).expect(200);
}

#[test]
fn a_hosted_python_project_is_hidden_from_clients_without_access() {
    run(&Scheme {
        format: "python",
        offer: &|world, name| offer(&world.upstream, name),
        publish: &upload,
        withdraw: &|world, name| world.remove(name, "1.0"),
        paths: &|_, name| {
            let file = format!("/repositories/all/packages/{name}/99.0/{}", wheel::wheel_name(name, "99.0"));
            let pages =
                [format!("/repositories/all/simple/{name}/"), format!("/repositories/all/pypi/{name}/json")];
            [format!("{file}.metadata"), file].into_iter().chain(pages).collect()
        },
        // The server normalizes names, so a claim may use any spelling.
        claim: &|name| format!("{}{}*", name[..1].to_uppercase(), &name[1..]),
    });
}

/// Offers a packument and its tarball at the upstream. The tarball is not a valid archive, because
/// a proxy does not read archives.
pub(crate) fn offer_npm(upstream: &Upstream, name: &str) {
    let bare = name.rsplit('/').next().unwrap();
    let (path, bytes) = (format!("/{name}/-/{bare}-99.0.0.tgz"), format!("{name} 99.0.0"));
    let document = json!({
        "_id": name, "name": name, "dist-tags": {"latest": "99.0.0"}, "time": {"99.0.0": "2015-01-05T10:00:00.000Z"},
        "versions": {"99.0.0": {"name": name, "version": "99.0.0", "dist": {
            "tarball": format!("{}{path}", upstream.url()), "shasum": digests::sha1(bytes.as_bytes())}}},
    });
    upstream.on(&path, Answer::ok(bytes));
    let answer = Answer::ok(document.to_string()).header("Content-Type", "application/json");
    upstream.on(&format!("/{}", name.replace('/', "%2f")), answer);
    let attestations = Answer::ok(r#"{"attestations": []}"#);
    upstream.on(&format!("/-/npm/v1/attestations/{}@99.0.0", name.replace('/', "%2f")), attestations);
}

/// Publishes version 1.0.0 as npm does.
#[track_caller]
pub(crate) fn publish_npm(world: &HiddenNamesFixture, name: &str) {
    let document = release::Release::new(name, "1.0.0").document();
    let path = format!("/repositories/own/{}", name.replace('/', "%2f"));
    world.owner.put(&path, document.to_string()).expect(201);
}

use crate::release;

#[test]
fn a_hosted_npm_package_is_hidden_from_clients_without_access() {
    run(&Scheme {
        format: "npm",
        offer: &|world, name| offer_npm(&world.upstream, &format!("@acme/{name}")),
        publish: &|world, name| publish_npm(world, &format!("@acme/{name}")),
        withdraw: &|world, name| world.remove(&format!("@acme/{name}"), "1.0.0"),
        paths: &|_, name| {
            let below = [
                format!("@acme%2f{name}"),
                format!("@acme/{name}/99.0.0"),
                format!("@acme/{name}/-/{name}-99.0.0.tgz"),
                format!("-/package/@acme%2f{name}/dist-tags"),
                format!("-/npm/v1/attestations/@acme%2f{name}@99.0.0"),
            ];
            below.into_iter().map(|path| format!("/repositories/all/{path}")).collect()
        },
        claim: &|name| format!("@acme/{name}"),
    });
}

/// The body as a JSON document.
pub(crate) fn document(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}
