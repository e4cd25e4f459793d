//! Retention of four formats with realistic packages.

use packhouse_tests::database::Postgres;
use packhouse_tests::images::{ImageRepository, MANIFEST, digest};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::{Api, MavenRepository, Request, Server, skip};
use serde_json::{Value, json};

use super::{enforce, named, names, policy, preview, restore_all, run, trash, wheel};
use crate::release::Release;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// The responses to clients that a deletion and its undo may change.
type ClientView = Vec<(u16, String)>;

/// Previews, enforces and runs a policy. Checks that the run deletes what the preview announced,
/// and restores everything.
fn there_and_back(api: &Api, repository: &str, rule: Value, gone: &[&str], view: impl Fn() -> ClientView) {
    let before = view();
    let id = policy(api, json!([repository]), rule);
    let previewed = preview(api, &id);
    assert_eq!(named(&previewed["items"]), names(gone), "{previewed:#}");
    assert_eq!((&previewed["versions"], &previewed["truncated"]), (&json!(gone.len()), &json!(false)));
    let bytes: u64 =
        previewed["items"].as_array().unwrap().iter().map(|item| item["bytes"].as_u64().unwrap()).sum();
    assert_eq!(previewed["bytes"], bytes);
    for item in previewed["items"].as_array().unwrap() {
        assert_eq!(item["repository"], repository);
        assert!(item["published_at"].is_i64() && !item["because"].as_str().unwrap().is_empty(), "{item}");
    }
    assert_eq!(view(), before, "a preview changes nothing");
    enforce(api, &id);
    let done = run(api, &id);
    assert_eq!(
        (&done["deleted"], &done["bytes"], &done["error"]),
        (&json!(gone.len()), &json!(bytes), &Value::Null),
        "{done:#}"
    );
    assert_eq!(done["skipped"], json!([]));
    let entries = trash(api, repository);
    assert_eq!(named(&entries), names(gone));
    for entry in entries.as_array().unwrap() {
        assert_eq!(entry["deleted_by"], "cleaning");
    }
    assert!(gone.is_empty() || view() != before);
    assert_eq!(preview(api, &id)["items"], json!([]), "nothing is left to delete");
    api.call("DELETE", &format!("/v1/retention-policies/{id}")).expect(204);
    restore_all(api, repository);
    assert_eq!(view(), before);
    assert_eq!(trash(api, repository), json!([]));
}

fn pom(artifact: &str, version: &str, parent: Option<&str>) -> String {
    let parent = parent.map_or(String::new(), |parent| {
        format!("<parent><groupId>org.example</groupId><artifactId>parent</artifactId><version>{parent}</version></parent>")
    });
    format!(
        "<project><modelVersion>4.0.0</modelVersion>{parent}<groupId>org.example</groupId><artifactId>{artifact}</artifactId><version>{version}</version></project>"
    )
}

fn maven(server: &Server, api: &Api) {
    let maven = MavenRepository::create(server, "jars");
    let path = |artifact: &str, version: &str, kind: &str| {
        format!("org/example/{artifact}/{version}/{artifact}-{version}.{kind}")
    };
    let mut files = Vec::new();
    let put = |artifact: &str, version: &str, parent: Option<&str>, files: &mut Vec<String>| {
        maven.put(&path(artifact, version, "pom"), pom(artifact, version, parent)).expect(201);
        files.push(path(artifact, version, "pom"));
        if parent.is_some() {
            maven.put(&path(artifact, version, "jar"), format!("{artifact} {version}")).expect(201);
            files.push(path(artifact, version, "jar"));
        }
    };
    for version in ["1", "2", "3", "4"] {
        put("parent", version, None, &mut files);
    }
    // `lib 1.0` needs the second parent, and the policy keeps `lib 1.0`.
    for (artifact, version, parent) in
        [("app", "1.0", "1"), ("app", "2.0", "3"), ("app", "3.0", "4"), ("lib", "1.0", "2")]
    {
        put(artifact, version, Some(parent), &mut files);
    }
    put("lib", "1.1-rc1", Some("4"), &mut files);
    put("lib", "1.1-SNAPSHOT", Some("4"), &mut files);
    put("lib", "1.0.1", Some("2"), &mut files);
    let view = || {
        let metadata =
            ["app", "lib", "parent"].map(|artifact| format!("org/example/{artifact}/maven-metadata.xml"));
        let all = files.iter().chain(&metadata).map(|path| maven.get(path));
        all.map(|got| (got.status, got.text())).collect::<ClientView>()
    };
    let newest = json!({"keep": {"newest": 1}});
    let gone = [
        "org.example:app 1.0",
        "org.example:app 2.0",
        "org.example:lib 1.0",
        "org.example:lib 1.1-SNAPSHOT",
        "org.example:lib 1.1-rc1",
        "org.example:parent 1",
        "org.example:parent 3",
    ];
    there_and_back(api, &maven.id, newest, &gone, view);
    let before_release = json!({"match": {"prerelease": true, "packages": ["org.example:*"]}, "keep": {"versions": ["*-SNAPSHOT"]}});
    there_and_back(api, &maven.id, before_release, &["org.example:lib 1.1-rc1"], view);
    there_and_back(api, &maven.id, json!({"match": {"tagged": false}}), &[], view);
    // The policy deletes a parent only together with the last module that needs it. A rule that
    // matches parents by name deletes nothing.
    there_and_back(
        api,
        &maven.id,
        json!({"match": {"packages": ["*:parent"], "versions": ["1", "2", "3"]}}),
        &[],
        view,
    );
}

fn python(server: &Server, api: &Api) {
    let python = PythonRepository::create(server, "py");
    let file = |version: &str| wheel::wheel_name("tool", version);
    let versions = ["1.0", "1.1a1", "1.1.dev3", "1.1", "2.0rc1"];
    for version in versions {
        python.publish("tool", version, &file(version), &wheel::wheel("tool", version, "")).expect(200);
    }
    let view = || {
        let files = versions.map(|version| python.file("tool", version, &file(version)));
        let files = files.into_iter().map(|got| (got.status, digest(&got.body)));
        let page = python.ask("tool");
        [(page.status, page.text())].into_iter().chain(files).collect::<ClientView>()
    };
    let gone = ["tool 1.1.dev3", "tool 1.1a1"];
    there_and_back(
        api,
        &python.id,
        json!({"match": {"prerelease": true}, "keep": {"newest": 2}}),
        &gone,
        view,
    );
    let all = ["tool 1.0", "tool 1.1", "tool 1.1.dev3", "tool 1.1a1", "tool 2.0rc1"];
    there_and_back(api, &python.id, json!({"delete": {"not_downloaded_days": 0}}), &all, view);
}

fn npm(server: &Server, api: &Api) {
    let npm = NpmRepository::create(server, "js");
    let publish = |name: &str, number: &str| {
        let release = Release::new(name, number);
        let path = npm.path(release.path().trim_start_matches('/'));
        let request = Request::new("PUT", &path).header("Content-Type", "application/json");
        npm.client.send(request.body(release.document().to_string())).expect(201);
    };
    let numbers = ["1.0.0", "1.1.0-beta.1", "1.1.0", "2.0.0-rc.1"];
    numbers.iter().for_each(|number| publish("@acme/lib", number));
    publish("other", "1.0.0");
    let tag = Request::new("PUT", &npm.path("-/package/@acme%2flib/dist-tags/old"))
        .header("Content-Type", "application/json");
    npm.client.send(tag.body("\"1.0.0\"")).expect(201);
    let view = || {
        let mut document = npm.get("@acme/lib").json();
        let _revision = document.as_object_mut().unwrap().remove("_rev");
        let files = numbers.map(|number| npm.get(&format!("@acme/lib/-/lib-{number}.tgz")));
        let files = files.into_iter().map(|got| (got.status, digest(&got.body)));
        let other = npm.get("other");
        [(200, document.to_string()), (other.status, String::new())]
            .into_iter()
            .chain(files)
            .collect::<ClientView>()
    };
    let tagged: Vec<String> = {
        let tags = npm.get("@acme/lib").json()["dist-tags"].clone();
        tags.as_object().unwrap().values().map(|number| number.as_str().unwrap().to_owned()).collect()
    };
    let untagged: Vec<String> = numbers
        .iter()
        .filter(|number| !tagged.iter().any(|tagged| tagged == *number))
        .map(|number| format!("@acme/lib {number}"))
        .collect();
    assert!(!untagged.is_empty() && tagged.contains(&"1.0.0".to_owned()), "{tagged:?}");
    let untagged: Vec<&str> = untagged.iter().map(String::as_str).collect();
    there_and_back(api, &npm.id, json!({"match": {"tagged": false}}), &untagged, view);
    let beta = ["@acme/lib 1.1.0-beta.1"];
    there_and_back(
        api,
        &npm.id,
        json!({"match": {"packages": ["@acme/*"], "prerelease": true}, "keep": {"newest": 1}}),
        &beta,
        view,
    );
}

/// Returns an index of these manifests.
fn index(parts: &[&str]) -> String {
    let part = |(at, part): (usize, &&str)| {
        let architecture = ["amd64", "arm64"][at % 2];
        json!({"mediaType": MANIFEST, "digest": digest(part.as_bytes()), "size": part.len(),
            "platform": {"os": "linux", "architecture": architecture}})
    };
    let parts: Vec<Value> = parts.iter().enumerate().map(part).collect();
    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": parts}).to_string()
}

fn signature(of: &str, kind: &str) -> String {
    json!({"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "application/x-signature",
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(b"{}"), "size": 2}, "layers": [],
        "subject": {"mediaType": kind, "digest": digest(of.as_bytes()), "size": of.len()}})
    .to_string()
}

fn images(server: &Server, api: &Api) {
    let images = ImageRepository::create(server, "images", &json!({}));
    let by_digest = |manifest: &str, kind: &str| {
        images.push_manifest("app", &digest(manifest.as_bytes()), kind, manifest).expect(201);
    };
    let part = |name: &str| {
        let manifest = images.push("app", "building", &[name.as_bytes()]).unwrap();
        images.ask("DELETE", "app/manifests/building").expect(202);
        manifest
    };
    let platforms = ["old one", "old two", "new one", "new two", "lost"].map(part);
    let [one, two, three, four, lost] = platforms.each_ref().map(String::as_str);
    let (old, new) = (index(&[one, two]), index(&[three, four]));
    images.push_manifest("app", "1.0", INDEX, &old).expect(201);
    images.push_manifest("app", "latest", INDEX, &old).expect(201);
    let signed = signature(&old, INDEX);
    by_digest(&signed, MANIFEST);
    // The tag `latest` moves. Afterwards the old index has only its version tag, and the new one
    // has two tags.
    images.push_manifest("app", "latest", INDEX, &new).expect(201);
    images.push_manifest("app", "2.0", INDEX, &new).expect(201);
    let all = [one, two, three, four, lost, &old, &new, &signed];
    let view = || {
        let mut paths: Vec<String> =
            all.iter().map(|manifest| format!("app/manifests/{}", digest(manifest.as_bytes()))).collect();
        paths.extend(["1.0", "2.0", "latest"].map(|tag| format!("app/manifests/{tag}")));
        paths.push(format!("app/referrers/{}", digest(old.as_bytes())));
        paths.push("app/tags/list".to_owned());
        paths.iter().map(|path| images.get(path)).map(|got| (got.status, got.text())).collect::<ClientView>()
    };
    let lost_one = format!("app {}", digest(lost.as_bytes()));
    there_and_back(api, &images.id, json!({"match": {"tagged": false}}), &[&lost_one], view);
    // The rule `newest` treats two tags of one image as one version. The deletion of an image
    // includes its platforms and its signature.
    let id = policy(api, json!([images.id]), json!({"match": {"tagged": true}, "keep": {"newest": 1}}));
    assert_eq!(named(&preview(api, &id)["items"]), names(&["app 1.0"]));
    there_and_back(
        api,
        &images.id,
        json!({"match": {"tagged": true}, "keep": {"newest": 1}}),
        &["app 1.0"],
        || {
            let mut view = view();
            // A restore may change the order of the referrers of a manifest that stays.
            view.sort();
            view
        },
    );
    enforce(api, &id);
    assert_eq!(run(api, &id)["deleted"], 1);
    for gone in [one, two, &old, &signed] {
        images.get(&format!("app/manifests/{}", digest(gone.as_bytes()))).expect(404);
    }
    for remaining in [three, four, &new] {
        images.get(&format!("app/manifests/{}", digest(remaining.as_bytes()))).expect(200);
    }
    restore_all(api, &images.id);
    // A tag names one platform of an index that stays. The run deletes only the tag.
    images.push_manifest("app", "pr-7", MANIFEST, three).expect(201);
    there_and_back(api, &images.id, json!({"match": {"versions": ["pr-*"]}}), &["app pr-7"], || {
        vec![
            (images.get(&format!("app/manifests/{}", digest(three.as_bytes()))).status, String::new()),
            (images.get("app/manifests/pr-7").status, String::new()),
        ]
    });
    // The tag moves to another index. The old index is then untagged and keeps its age.
    images.push_manifest("app", "1.0", INDEX, &new).expect(201);
    let untagged = format!("app {}", digest(old.as_bytes()));
    there_and_back(api, &images.id, json!({"match": {"tagged": false}}), &[&lost_one, &untagged], view);
    // A signature that is stored under a tag stays as long as the image that it signs.
    let name = format!("{}.sig", digest(new.as_bytes()).replace(':', "-"));
    images.push("app", &name, &[b"signature"]).unwrap();
    let id = policy(api, json!([images.id]), json!({"match": {"versions": ["sha256-*"]}}));
    assert_eq!(named(&preview(api, &id)["items"]), names(&[]));
}

fn in_all_formats(server: &Server) {
    let api = Api::sign_in(server);
    maven(server, &api);
    python(server, &api);
    npm(server, &api);
    images(server, &api);
}

#[test]
fn a_run_deletes_the_previewed_versions_and_an_undo_restores_them_in_each_format() {
    in_all_formats(&Server::start());
}

#[test]
fn a_run_and_its_undo_work_in_each_format_with_postgresql() {
    match Postgres::start() {
        Ok(postgres) => in_all_formats(&Server::with().arg("--database-url").arg(&postgres.url()).start()),
        Err(reason) => skip("retention on PostgreSQL", &reason),
    }
}
