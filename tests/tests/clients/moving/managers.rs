//! Imports from Nexus 3 and Artifactory. Scripted upstreams simulate both, with answers as their
//! documentation shows them.

use packhouse_tests::digests::{md5, sha1, sha256};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{MavenRepository, Server};
use serde_json::{Value, json};

use super::world::{BEGIN_2020_MS, moved, moved_with, version};
use crate::release::Release;
use crate::wheel;

fn json_of(value: &Value) -> Answer {
    Answer::ok(value.to_string()).header("Content-Type", "application/json")
}

/// Publishes the bytes on the upstream; returns the asset as Nexus describes it.
fn asset(upstream: &Upstream, repository: &str, path: &str, bytes: &[u8]) -> Value {
    let address = format!("/repository/{repository}/{path}");
    upstream.on(&address, Answer::ok(bytes));
    json!({
        "downloadUrl": format!("{}{address}", upstream.url()), "path": path, "id": "x", "repository": repository, "format": "maven2",
        "checksum": {"sha1": sha1(bytes), "md5": md5(bytes), "sha256": sha256(bytes)}, "contentType": "x/y",
        "lastModified": "2021-05-05T00:00:00.000+00:00", "blobCreated": "2020-01-01T00:00:00.000+00:00", "fileSize": bytes.len(),
    })
}

#[test]
fn a_repository_of_nexus_is_moved_page_by_page() {
    let (server, nexus) = (Server::start(), Upstream::start());
    let repository = MavenRepository::create(&server, "maven");
    nexus.on(
        "/service/rest/v1/repositories/releases",
        json_of(&json!({"name": "releases", "format": "maven2", "type": "hosted"})),
    );
    let first = json!({"items": [{"group": "org", "name": "a", "version": "1", "assets": [
        asset(&nexus, "releases", "org/a/1/a-1.jar", b"a jar"), asset(&nexus, "releases", "org/a/1/a-1.jar.sha1", b"x"),
    ]}], "continuationToken": "88491cd1d185dd136f143f20c4e7d50c"});
    let second = json!({"items": [{"group": "org", "name": "a", "version": "2-SNAPSHOT", "assets": [
        asset(&nexus, "releases", "org/a/2-SNAPSHOT/a-2-20200101.000000-1.jar", b"a build"),
        asset(&nexus, "releases", "org/a/2-SNAPSHOT/maven-metadata.xml", b"<metadata/>"),
    ]}], "continuationToken": null});
    let components = "/service/rest/v1/components?repository=releases";
    nexus.on(components, json_of(&first));
    nexus.on(&format!("{components}&continuationToken=88491cd1d185dd136f143f20c4e7d50c"), json_of(&second));
    let url = nexus.url();
    let words = ["import", "maven", "--from", "nexus", &url, "--source-repository", "releases"];
    let done = moved(&server, &words).success();
    assert_eq!((done.count("moved"), done.count("skipped")), (2, 1), "{:#?}", done.lines);
    assert_eq!(version(&server, &repository.id, "org:a", "1")["published_at"], BEGIN_2020_MS);
    assert_eq!(repository.get("org/a/2-SNAPSHOT/a-2-20200101.000000-1.jar").expect(200).body, b"a build");
    moved(&server, &words).adds_nothing();
    moved(&server, &words[..5]).output.refused("--source-repository");

    // The import refuses a source of another format than the repository's, and a format that it
    // cannot import from this manager.
    for (format, words_said) in [("npm", "of the format npm"), ("docker", "--from oci"), ("raw", "raw")] {
        nexus.on("/service/rest/v1/repositories/releases", json_of(&json!({"format": format})));
        moved(&server, &words).output.refused(words_said);
    }
}

#[test]
fn a_blob_store_is_moved_without_its_server() {
    let (server, home) = (Server::start(), tempfile::TempDir::new().unwrap());
    let repository = MavenRepository::create(&server, "maven");
    let blob = |at: &str, repository: &str, path: &str, bytes: &[u8], more: &str| {
        let text = format!(
            "#x\nsize={}\n@Bucket.repo-name={repository}\ncreationTime=1577836800000\n@BlobStore.blob-name={path}\nsha1={}\n{more}",
            bytes.len(),
            sha1(bytes)
        );
        super::world::write(home.path(), &format!("content/{at}.properties"), text);
        super::world::write(home.path(), &format!("content/{at}.bytes"), bytes);
    };
    blob("vol-01/chap-02/a", "releases", "/org/a/1/a-1.jar", b"a jar", "");
    blob("2024/03/15/10/30/b", "releases", "org/a/1/a-1.pom", b"<project/>", "");
    blob("vol-01/chap-02/c", "releases", "/org/a/1/a-1.war", b"gone", "deleted=true\n");
    blob("vol-01/chap-02/d", "other", "/org/b/1/b-1.jar", b"another's", "");
    let at = home.path().to_string_lossy().into_owned();
    let words = ["import", "maven", "--from", "nexus", &at, "--source-repository", "releases"];
    assert_eq!(moved(&server, &words).success().count("moved"), 2);
    moved(&server, &words).adds_nothing();
    assert_eq!(version(&server, &repository.id, "org:a", "1")["published_at"], BEGIN_2020_MS);
    assert_eq!(repository.get("org/a/1/a-1.jar").expect(200).body, b"a jar");
    repository.get("org/b/1/b-1.jar").expect(404);
}

#[test]
fn nexus_lists_the_names_of_projects_and_packages() {
    let (server, nexus) = (Server::start(), Upstream::start());
    let (py, js) = (PythonRepository::create(&server, "py"), NpmRepository::create(&server, "js"));
    for (name, format) in [("py", "pypi"), ("js", "npm")] {
        nexus.on(&format!("/service/rest/v1/repositories/{name}"), json_of(&json!({"format": format})));
    }
    nexus.on(
        "/service/rest/v1/components?repository=py",
        json_of(&json!({"items": [{"group": null, "name": "demo", "version": "1.0", "assets": []}], "continuationToken": null})),
    );
    let bytes = wheel::wheel("demo", "1.0", "");
    let file = wheel::wheel_name("demo", "1.0");
    let page = format!("<a href='../../packages/demo/1.0/{file}#sha256={}'>{file}</a>", sha256(&bytes));
    nexus.on("/repository/py/simple/demo/", Answer::ok(page).header("Content-Type", "text/html"));
    nexus.on(&format!("/repository/py/packages/demo/1.0/{file}"), Answer::ok(bytes.clone()));
    let url = nexus.url();
    let words = ["import", "py", "--from", "nexus", &url, "--source-repository", "py"];
    assert_eq!(moved(&server, &words).success().count("moved"), 1);
    moved(&server, &words).adds_nothing();
    assert_eq!(py.file("demo", "1.0", &file).expect(200).body, bytes);

    let own = json!({"name": "@acme/lib", "version": "1.0.0"});
    let document = Release::new("@acme/lib", "1.0.0").package_json(&own.to_string()).document();
    let encoded = document["_attachments"].as_object().unwrap().values().next().unwrap()["data"]
        .as_str()
        .unwrap()
        .to_owned();
    let tarball = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, encoded).unwrap();
    let mut packument = json!({"name": "@acme/lib", "dist-tags": {"latest": "1.0.0"}, "versions": document["versions"],
        "time": {"1.0.0": "2020-01-01T00:00:00.000Z"}});
    packument["versions"]["1.0.0"]["dist"]["tarball"] =
        json!(format!("{url}/repository/js/@acme/lib/-/lib-1.0.0.tgz"));
    nexus.on(
        "/service/rest/v1/components?repository=js",
        json_of(&json!({"items": [{"group": "acme", "name": "lib", "version": "1.0.0"}], "continuationToken": null})),
    );
    nexus.on("/repository/js/@acme%2flib", json_of(&packument));
    nexus.on("/repository/js/@acme/lib/-/lib-1.0.0.tgz", Answer::ok(tarball));
    let words = ["import", "js", "--from", "nexus", &url, "--source-repository", "js"];
    assert_eq!(moved(&server, &words).success().count("moved"), 1);
    moved(&server, &words).adds_nothing();
    assert_eq!(js.get("@acme%2flib").expect(200).json()["time"]["1.0.0"], "2020-01-01T00:00:00.000Z");
}

#[test]
fn a_repository_of_artifactory_is_moved_by_its_file_list_or_a_query() {
    let (server, host) = (Server::start(), Upstream::start());
    let repository = MavenRepository::create(&server, "maven");
    host.on(
        "/artifactory/api/repositories",
        json_of(&json!([{"key": "libs", "type": "LOCAL", "packageType": "Maven"}])),
    );
    host.on("/artifactory/libs/org/a/1/a-1.jar", Answer::ok("a jar"));
    host.on("/artifactory/libs/org/a/1/a-1.pom", Answer::ok("<project/>"));
    let file = |uri: &str, bytes: &[u8]| {
        json!({"uri": uri, "size": bytes.len(), "lastModified": "2020-01-01T00:00:00.000Z", "folder": false,
            "sha1": sha1(bytes), "sha2": sha256(bytes)})
    };
    let list = json!({"uri": "x", "created": "x", "files": [
        {"uri": "/org", "size": -1, "lastModified": "2020-01-01T00:00:00.000Z", "folder": true},
        file("/org/a/1/a-1.jar", b"a jar"), file("/org/a/1/maven-metadata.xml", b"x"),
    ]});
    let storage = "/artifactory/api/storage/libs?list&deep=1&listFolders=0";
    host.on(storage, json_of(&list));
    let url = format!("{}/artifactory", host.url());
    let words = ["import", "maven", "--from", "artifactory", &url, "--source-repository", "libs"];
    let done = moved_with(&server, &words, &[("PACKHOUSE_SOURCE_TOKEN", "abc")]).success();
    assert_eq!((done.count("moved"), done.count("skipped")), (1, 1), "{:#?}", done.lines);
    assert_eq!(host.requests().last().unwrap().header("authorization"), Some("Bearer abc"));
    assert_eq!(version(&server, &repository.id, "org:a", "1")["published_at"], BEGIN_2020_MS);

    // The free edition of Artifactory has no list of files.
    host.on(
        storage,
        Answer::new(
            400,
            r#"{"errors":[{"status":400,"message":"This REST API is available only in Artifactory Pro"}]}"#,
        ),
    );
    let item = |name: &str, bytes: &[u8]| {
        json!({"repo": "libs", "path": "org/a/1", "name": name, "size": bytes.len(), "created": "2020-01-01T00:00:00.000Z",
            "actual_sha1": sha1(bytes), "actual_md5": md5(bytes), "sha256": sha256(bytes)})
    };
    let results = json!([item("a-1.jar", b"a jar"), item("a-1.pom", b"<project/>")]);
    host.on("/artifactory/api/search/aql", json_of(&json!({"results": results, "range": {"total": 2}})));
    let done = moved(&server, &words).success();
    assert_eq!((done.count("moved"), done.count("present")), (1, 1), "{:#?}", done.lines);
    let query = host.requests().into_iter().find(|request| request.target.ends_with("/aql")).unwrap();
    assert!(String::from_utf8_lossy(&query.body).contains(r#""repo":"libs""#));
    moved(&server, &words).adds_nothing();
}
