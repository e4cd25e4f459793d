//! The trash. A version that a caller deletes is gone for clients of each format, and a restore
//! brings it back unchanged. A kill of the server during a deletion or a restore loses nothing and
//! duplicates nothing.

use crate::release;
use crate::wheel;

use packhouse_tests::database::{Postgres, sqlite};
use packhouse_tests::images::{ImageRepository, MANIFEST, digest, manifest};
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, MavenRepository, Request, Server, long, skip};
use release::Release;
use serde_json::{Value, json};

fn trash(api: &Api, repository: &str) -> Vec<Value> {
    let listed = api.call("GET", &format!("/v1/repositories/{repository}/trash")).expect(200).json();
    listed["items"].as_array().unwrap().clone()
}

fn version(repository: &str, package: &str, version: &str) -> String {
    format!("/v1/repositories/{repository}/packages/{package}/versions/{version}")
}

fn restore(api: &Api, repository: &str, entry: &Value) -> packhouse_tests::Response {
    let path = format!("/v1/repositories/{repository}/trash/{}/restore", entry["id"].as_str().unwrap());
    api.call("POST", &path)
}

/// Deletes a version and checks that it is gone. Then restores it and checks that clients and the
/// API return the former state.
fn there_and_back(
    api: &Api,
    repository: &str,
    package: &str,
    number: &str,
    view: impl Fn() -> Vec<(u16, String)>,
) {
    let path = version(repository, package, number);
    // The server verifies attestations shortly after the publish, so the test waits for the
    // verdict.
    let details = packhouse_tests::server::eventually("the attestation is verified", || {
        let details = api.call("GET", &path).expect(200).json();
        let signed = details["attestations"].as_array().into_iter().flatten();
        let is_pending = signed.into_iter().any(|stated| stated["verdict"] == "pending");
        (!is_pending).then_some(details)
    });
    let before = view();
    assert!(before.iter().all(|(status, _)| *status == 200), "{before:?}");
    api.call("DELETE", &path).expect(204);
    api.call("GET", &path).expect(404);
    assert_ne!(view(), before);
    let entries = trash(api, repository);
    assert_eq!(
        (entries.len(), &entries[0]["version"], &entries[0]["deleted_by"]),
        (1, &json!(number), &json!(OWNER))
    );
    let bytes: u64 =
        details["files"].as_array().unwrap().iter().map(|file| file["size"].as_u64().unwrap()).sum();
    assert_eq!(entries[0]["bytes"], bytes);
    restore(api, repository, &entries[0]).expect(200);
    assert_eq!((view(), api.call("GET", &path).expect(200).json()), (before, details));
    assert!(trash(api, repository).is_empty());
    restore(api, repository, &entries[0]).expect(404);
    // A second deletion and restore work like the first.
    api.call("DELETE", &path).expect(204);
    restore(api, repository, &trash(api, repository)[0]).expect(200);
    assert_eq!(view().iter().map(|(status, _)| *status).max(), Some(200));
}

fn in_all_formats(server: &Server) {
    let api = Api::sign_in(server);
    let maven = MavenRepository::create(server, "jars");
    let (pom, jar) = ("org/example/a/1.0/a-1.0.pom", "org/example/a/1.0/a-1.0.jar");
    maven.put(pom, "<project/>").expect(201);
    maven.put(jar, "bytes").expect(201);
    maven.put("org/example/a/2.0/a-2.0.jar", "other").expect(201);
    let get = |paths: &[&str]| {
        paths.iter().map(|path| maven.get(path)).map(|got| (got.status, got.text())).collect()
    };
    there_and_back(&api, &maven.id, "org.example%3Aa", "1.0", || {
        get(&[pom, jar, &format!("{jar}.sha1"), "org/example/a/maven-metadata.xml"])
    });

    let npm = NpmRepository::create(server, "js");
    for number in ["1.0.0", "1.1.0"] {
        let release = Release::new("@acme/lib", number).attested();
        let path = npm.path(release.path().trim_start_matches('/'));
        let request = Request::new("PUT", &path).header("Content-Type", "application/json");
        npm.client.send(request.body(release.document().to_string())).expect(201);
    }
    there_and_back(&api, &npm.id, "%40acme%2Flib", "1.1.0", || {
        // The test removes the revision of the document. Each change increases the revision,
        // because clients use it to name the state that they change.
        let mut document = npm.get("@acme/lib").json();
        assert!(document.as_object_mut().unwrap().remove("_rev").is_some());
        let files =
            ["@acme/lib/-/lib-1.1.0.tgz", "-/npm/v1/attestations/@acme/lib@1.1.0"].map(|path| npm.get(path));
        let files = files.into_iter().map(|got| (got.status, digest(&got.body)));
        [(200, document.to_string())].into_iter().chain(files).collect()
    });

    let python = PythonRepository::create(server, "py");
    let name = wheel::wheel_name("tool", "1.0");
    python.publish("tool", "1.0", &name, &wheel::wheel("tool", "1.0", "")).expect(200);
    // The project has only this version, so the deletion also removes the project.
    there_and_back(&api, &python.id, "tool", "1.0", || {
        let (page, file) = (python.ask("tool"), python.file("tool", "1.0", &name));
        vec![(page.status, page.text()), (file.status, digest(&file.body))]
    });

    let images = ImageRepository::create(server, "images", &json!({}));
    let image = images.push("app", "one", &[b"layer"]).unwrap();
    let signature = json!({"schemaVersion": 2, "mediaType": MANIFEST, "artifactType": "application/x-signature",
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest(b"{}"), "size": 2}, "layers": [],
        "subject": {"mediaType": MANIFEST, "digest": digest(image.as_bytes()), "size": image.len()}});
    let signature = signature.to_string();
    images.push_manifest("app", &digest(signature.as_bytes()), MANIFEST, &signature).expect(201);
    let tag = images.get("app/manifests/one").expect(200);
    assert_eq!(tag.text(), manifest(&[b"layer"]));
    // The deletion also removes the manifest and its referrers.
    there_and_back(&api, &images.id, "app", "one", || {
        let of = digest(image.as_bytes());
        [
            "app/manifests/one".to_owned(),
            format!("app/manifests/{of}"),
            format!("app/referrers/{of}"),
            format!("app/manifests/{}", digest(signature.as_bytes())),
            format!("app/blobs/{}", digest(b"layer")),
        ]
        .map(|path| images.get(&path))
        .map(|got| (got.status, got.text()))
        .to_vec()
    });
    // Two tags name one manifest. A deletion of both tags removes the manifest, and a restore of
    // one tag brings the manifest back.
    images.push_manifest("app", "two", MANIFEST, &image).expect(201);
    for tag in ["one", "two"] {
        api.call("DELETE", &version(&images.id, "app", tag)).expect(204);
    }
    images.get(&format!("app/manifests/{}", digest(image.as_bytes()))).expect(404);
    let first = trash(&api, &images.id).pop().unwrap();
    assert_eq!(first["version"], "one");
    restore(&api, &images.id, &first).expect(200);
    assert_eq!(images.get("app/manifests/one").expect(200).text(), image);
    images.get("app/manifests/two").expect(404);
    images.get(&format!("app/manifests/{}", digest(signature.as_bytes()))).expect(200);
}

#[test]
fn a_version_comes_back_as_it_was_in_each_format() {
    in_all_formats(&Server::start());
}

#[test]
fn a_version_comes_back_as_it_was_in_each_format_with_postgresql() {
    match Postgres::start() {
        Ok(postgres) => in_all_formats(&Server::with().arg("--database-url").arg(&postgres.url()).start()),
        Err(reason) => skip("the trash on PostgreSQL", &reason),
    }
}

#[test]
fn a_restore_needs_the_right_to_delete_and_no_conflicting_version() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let maven = MavenRepository::create_with(&server, "jars", &json!({"republish_deleted": true}));
    let jar = "org/example/a/1.0/a-1.0.jar";
    let path = version(&maven.id, "org.example%3Aa", "1.0");
    maven.put(jar, vec![1; 100]).expect(201);
    api.call("DELETE", &path).expect(204);
    let entry = trash(&api, &maven.id).remove(0);
    assert_eq!(
        entry["gone_at"].as_i64().unwrap() - entry["deleted_at"].as_i64().unwrap(),
        7 * 24 * 60 * 60 * 1000
    );
    // A client published the version again after the deletion, so the new version stays.
    maven.put(jar, vec![2; 100]).expect(201);
    assert_eq!(restore(&api, &maven.id, &entry).expect(409).field("error"), "version_already_exists");
    assert_eq!(maven.get(jar).expect(200).body, vec![2; 100]);
    // The quota has no room for the restored version.
    api.call("DELETE", &path).expect(204);
    let settings = |settings: Value| {
        api.patch(&format!("/v1/repositories/{}", maven.id), &json!({"settings": settings})).expect(200);
    };
    settings(json!({"quota_bytes": 99}));
    let latest = trash(&api, &maven.id).remove(0);
    assert_eq!(restore(&api, &maven.id, &latest).expect(403).field("error"), "quota_exceeded");
    settings(json!({"quota_bytes": null}));
    // A member who may not delete gets no access to the trash.
    let rights = json!([{"repository": maven.id, "actions": ["read", "publish"]}]);
    let member = json!({"email": "m@example.com", "password": PASSWORD,
        "permissions": {"organization": [], "repositories": rights}});
    api.post("/v1/members", &member).expect(201);
    let member = Api::sign_in_as(&server, "m@example.com", PASSWORD);
    let list = format!("/v1/repositories/{}/trash", maven.id);
    assert_eq!(member.call("GET", &list).expect(403).field("error"), "role_mismatch");
    assert_eq!(restore(&member, &maven.id, &latest).expect(403).field("error"), "role_mismatch");
    restore(&api, &maven.id, &json!({"id": "12"})).expect(404);
    restore(&api, &maven.id, &latest).expect(200);
    assert_eq!(maven.get(jar).expect(200).body, vec![2; 100]);
    let events = api.call("GET", "/v1/audit-events?action=restore_version").expect(200).json();
    assert_eq!(events["items"][0]["subject"], "jars/org.example:a 1.0");
    // The list is paginated and begins with the latest deletion. With a retention of 0 days a
    // deletion leaves no entry.
    let first = api.call("GET", &format!("{list}?limit=1")).expect(200).json();
    assert_eq!((first["items"].as_array().unwrap().len(), &first["next"]), (1, &Value::Null));
    settings(json!({"trash_days": 0}));
    api.call("DELETE", &path).expect(204);
    assert_eq!(trash(&api, &maven.id).len(), 1);
}

#[test]
fn after_a_kill_each_version_is_deleted_or_present_and_can_be_restored() {
    let mut server = Server::start();
    let maven = MavenRepository::create(&server, "jars");
    const VERSIONS: usize = 60;
    let jar = |number: usize| format!("org/example/a/{number}/a-{number}.jar");
    for number in 0..VERSIONS {
        maven.put(&jar(number), format!("bytes of {number}")).expect(201);
    }
    let records = "select count(*), sum(length(value)) from records where key not like '%//t'";
    let before = sqlite(&server, records);
    // After each kill the new server waits until the killed server's claim on the deletion expires.
    // This takes half a minute each time.
    for round in 0..if long() { 5 } else { 1 } {
        let api = Api::sign_in(&server);
        let path = format!("/v1/repositories/{}/packages/org.example%3Aa", maven.id);
        let client = api.client().clone();
        let deleting = std::thread::spawn(move || client.try_send(Request::new("DELETE", &path)));
        // The test kills the server when some versions are deleted and others are not.
        packhouse_tests::server::eventually("the deletion has begun", || {
            let gone = sqlite(&server, "select count(*) from trash").trim().parse::<usize>().unwrap();
            (gone > 2 + round).then_some(())
        });
        server.kill9();
        let _ = deleting.join();
        server.restart();
        let api = Api::sign_in(&server);
        // The restarted server continues the deletion to its end.
        packhouse_tests::server::eventually("the deletion has ended", || {
            let left = sqlite(&server, "select count(*) from versions");
            (left.trim() == "0" && sqlite(&server, "select count(*) from deletions").trim() == "0")
                .then_some(())
        });
        let listed = format!("/v1/repositories/{}/trash?limit=200", maven.id);
        let entries = api.call("GET", &listed).expect(200).json()["items"].as_array().unwrap().clone();
        assert_eq!(entries.len(), VERSIONS);
        // The test also kills the server during the restore.
        let (client, id) = (api.client().clone(), maven.id.clone());
        let back = entries.clone();
        let restoring = std::thread::spawn(move || {
            for entry in back {
                let path = format!("/v1/repositories/{id}/trash/{}/restore", entry["id"].as_str().unwrap());
                if client.try_send(Request::new("POST", &path)).is_err() {
                    return;
                }
            }
        });
        packhouse_tests::server::eventually("some versions are back", || {
            let back = sqlite(&server, "select count(*) from versions").trim().parse::<usize>().unwrap();
            (back > 2 + round).then_some(())
        });
        server.kill9();
        let _ = restoring.join();
        server.restart();
        let api = Api::sign_in(&server);
        for entry in api.call("GET", &listed).expect(200).json()["items"].as_array().unwrap() {
            let status = restore(&api, &maven.id, entry).status;
            assert!([200, 404].contains(&status), "{status}");
        }
        assert!(trash(&api, &maven.id).is_empty());
        for number in 0..VERSIONS {
            assert_eq!(maven.get(&jar(number)).expect(200).text(), format!("bytes of {number}"));
        }
        assert_eq!(sqlite(&server, records), before);
    }
}
