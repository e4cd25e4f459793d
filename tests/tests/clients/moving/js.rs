//! npm packages with and without scope, with tags, deprecations and times. The tests move them from
//! one registry to another, export them into a folder, and import the folder.

use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Server, skip};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::world::{lines, moved, moved_with, version};
use crate::release::Release;

fn publish(repository: &NpmRepository, name: &str, number: &str, tag: &str) {
    let own = json!({"name": name, "version": number, "description": "moved"});
    let release = Release::new(name, number).package_json(&own.to_string()).tag(tag);
    repository.put(release.path().trim_start_matches('/'), &release.document()).expect(201);
}

fn fill(repository: &NpmRepository, server: &Server) {
    publish(repository, "left", "1.0.0", "latest");
    publish(repository, "left", "2.0.0-rc.1", "next");
    publish(repository, "left", "0.9.1", "old");
    let own = json!({"name": "@acme/right", "version": "1.0.0"}).to_string();
    let release = Release::new("@acme/right", "1.0.0").package_json(&own).attested();
    repository.put(release.path().trim_start_matches('/'), &release.document()).expect(201);
    let path = format!("/v1/repositories/{}/packages/left/versions/0.9.1/state", repository.id);
    let state = json!({"state": "deprecated", "reason": "use 1.0.0"});
    Api::sign_in(server).send("PUT", &path, &state).expect(200);
}

const FILES: usize = 4;

/// The data of a package that installers read, without the locations of its files.
fn metadata(repository: &NpmRepository, name: &str) -> Value {
    let mut packument = repository.get(&name.replace('/', "%2f")).expect(200).json();
    let mut attestations = Vec::new();
    for (number, manifest) in packument["versions"].as_object_mut().unwrap() {
        let dist = manifest["dist"].as_object_mut().unwrap();
        dist.remove("tarball");
        // Each registry adds its own signatures, so these differ.
        dist.remove("signatures");
        if let Some(attested) = dist.get_mut("attestations") {
            attested.as_object_mut().unwrap().remove("url");
            attestations
                .push(repository.get(&format!("-/npm/v1/attestations/{name}@{number}")).expect(200).json());
        }
    }
    // The time of the last change belongs to this registry.
    packument["time"].as_object_mut().unwrap().remove("modified");
    json!({
        "tags": packument["dist-tags"], "versions": packument["versions"], "time": packument["time"], "readme": packument["readme"],
        "attestations": attestations,
    })
}

#[test]
fn packages_are_moved_with_tags_deprecations_and_times() {
    let (server, other, home) = (Server::start(), Server::start(), TempDir::new().unwrap());
    let (old, new) = (NpmRepository::create(&server, "old"), NpmRepository::create(&other, "new"));
    fill(&old, &server);
    let login = format!("{}:{}", packhouse_tests::server::OWNER, old.token.secret);
    let (url, login) = (old.url(&server), [("PACKHOUSE_SOURCE_LOGIN", login.as_str())]);
    let words = ["import", "new", "--from", "npm", &url];
    let first = moved_with(&other, &words, &login).success();
    assert_eq!(first.count("moved"), FILES, "{:#?}", first.lines);
    for name in ["left", "@acme/right"] {
        assert_eq!(metadata(&old, name), metadata(&new, name));
    }
    let right = metadata(&new, "@acme/right");
    assert!(right["attestations"][0]["attestations"][0]["bundle"].is_object(), "{right:#}");
    assert_eq!(right["readme"], "# @acme/right");
    let deprecated = version(&other, &new.id, "left", "0.9.1");
    assert_eq!((&deprecated["state"], &deprecated["reason"]), (&json!("deprecated"), &json!("use 1.0.0")));
    let at =
        |server: &Server, id: &str| version(server, id, "left", "0.9.1")["published_at"].as_u64().unwrap();
    // The times may differ a little: the old server records the publish a moment before the version
    // becomes visible.
    assert!(at(&server, &old.id).abs_diff(at(&other, &new.id)) < 500);
    moved_with(&other, &words, &login).adds_nothing();

    let out = home.path().join("out").to_string_lossy().into_owned();
    assert_eq!(moved(&other, &["export", "new", &out]).success().count("moved"), FILES);
    moved(&other, &["export", "new", &out]).adds_nothing();
    let listed = lines(&home.path().join("out/export.jsonl"));
    assert_eq!(listed.iter().filter(|line| line["state"] == "deprecated").count(), 1, "{listed:#?}");
    let third = NpmRepository::create(&server, "third");
    assert_eq!(
        moved(&server, &["import", "third", "--from", "export", &out]).success().count("moved"),
        FILES
    );
    moved(&server, &["import", "third", "--from", "export", &out]).adds_nothing();
    for name in ["left", "@acme/right"] {
        assert_eq!(metadata(&old, name), metadata(&third, name));
    }

    let js = match Js::new(Tool::Npm11, &third.url(&server), &third.token.secret) {
        Ok(js) => js,
        Err(reason) => return skip("npm11", &reason),
    };
    js.package(
        "app",
        &json!({"name": "app", "version": "1.0.0", "dependencies": {"left": "latest", "@acme/right": "1"}}),
    );
    js.install("app").success();
    assert_eq!(js.installed("app", "left").as_deref(), Some("1.0.0"));
    assert_eq!(js.installed("app", "@acme/right").as_deref(), Some("1.0.0"));
}

#[test]
fn a_registry_without_a_list_is_moved_by_the_given_names() {
    let (server, upstream) = (Server::start(), Upstream::start());
    NpmRepository::create(&server, "new");
    let url = upstream.url();
    let words = ["import", "new", "--from", "npm", &url];
    moved(&server, &words).output.refused("name them with --package");
    upstream.on("/gone", Answer::ok(json!({"name": "gone", "time": {"unpublished": {}}}).to_string()));
    let some = moved(&server, &[&words[..], &["--package", "gone", "--package", "none"]].concat());
    let reason =
        |name: &str| some.lines.iter().find(|line| line["package"] == name).unwrap()["reason"].to_string();
    assert!(reason("gone").contains("unpublished"), "{:#?}", some.lines);
    assert!(reason("none").contains("404"), "{:#?}", some.lines);
    some.output.refused("some items were not moved");
}
