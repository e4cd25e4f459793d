//! The protocol's table over the memory host, and what needs more than rows: the order of versions, marks, what is shown.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "in tests, a fault is to be loud")]

mod table;
mod zip;

use packhouse_composer::Composer;
use packhouse_sdk::VersionId;
use packhouse_testkit::{MemoryHost, Mount, TestRequest, run};
use serde_json::{Map, Value, json};
use zip::package;

fn hosted(settings: Value) -> (MemoryHost, Mount<Composer>) {
    let host = MemoryHost::new();
    host.set_now(1_795_237_300_000);
    let mount = host.mount::<Composer>("php", "hosted", settings);
    (host, mount)
}

fn publish(mount: &Mount<Composer>, name: &str, version: &str, more: &str) {
    mount.put(&format!("/?version={version}")).body(package(name, version, more)).send().expect(201);
}

/// The versions of a package, as Composer expands them.
fn versions(mount: &Mount<Composer>, name: &str) -> Vec<Map<String, Value>> {
    let document = mount.get(&format!("/p2/{name}.json")).send().expect(200).json();
    let mut whole: Map<String, Value> = Map::new();
    let written = document["packages"][name].as_array().unwrap().iter();
    written
        .map(|version| {
            for (member, value) in version.as_object().unwrap() {
                match value == "__unset" {
                    true => drop(whole.remove(member)),
                    false => drop(whole.insert(member.clone(), value.clone())),
                }
            }
            whole.clone()
        })
        .collect()
}

#[test]
fn the_table_holds() {
    run(&mut hosted(json!({})).1, &table::cases());
}

#[test]
fn the_tables_of_other_settings_hold() {
    run(&mut hosted(json!({"redeploy": "identical"})).1, &table::identical());
    run(&mut hosted(json!({"republish_deleted": true})).1, &table::republished());
}

#[test]
fn the_newest_version_is_first_and_each_is_whole() {
    let (_, mount) = hosted(json!({}));
    publish(&mount, "acme/demo", "1.9", r#", "require": {"php": ">=7"}"#);
    publish(&mount, "acme/demo", "1.10", r#", "keywords": ["a"]"#);
    publish(&mount, "acme/demo", "2.0-RC1", "");
    let all = versions(&mount, "acme/demo");
    let texts: Vec<&str> = all.iter().map(|one| one["version"].as_str().unwrap()).collect();
    assert_eq!(texts, ["2.0-RC1", "1.10", "1.9"]);
    assert_eq!((all[1].get("keywords"), all[2].get("keywords")), (Some(&json!(["a"])), None));
    assert_eq!((all[1].get("require"), &all[2]["require"]), (None, &json!({"php": ">=7"})));
    assert_eq!(all[2]["time"], "2026-11-21T05:01:40.000Z");
    assert_eq!(all[2]["dist"]["url"], "https://packhouse.test/repositories/php/dists/acme/demo/1.9.zip");
}

#[test]
fn a_version_is_deprecated_and_taken_back() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, "acme/demo", "1.0", "");
    let id = VersionId::new("acme/demo", "1.0.0");
    mount.mark_version(&id, "deprecated", "use other").unwrap();
    assert_eq!(versions(&mount, "acme/demo")[0]["abandoned"], true);
    assert_eq!(host.versions("php")[0].state, "deprecated");
    mount.mark_version(&id, "", "").unwrap();
    assert!(!versions(&mount, "acme/demo")[0].contains_key("abandoned"));
    assert_eq!(mount.mark_version(&id, "yanked", "").unwrap_err().status, 405);
    assert_eq!(mount.mark_version(&VersionId::new("acme/demo", "2.0"), "", "").unwrap_err().status, 404);
}

#[test]
fn what_is_published_is_shown_and_a_deleted_version_leaves_its_number_used() {
    let (host, mount) = hosted(json!({}));
    publish(
        &mount,
        "acme/demo",
        "v1.0",
        r#", "require": {"php": ">=7"}, "require-dev": {"a/b": "*"}, "keywords": ["x", "y"]"#,
    );
    let shown = host.versions("php");
    assert_eq!(
        (shown[0].name.as_str(), shown[0].version.as_str(), shown[0].summary.as_str()),
        ("acme/demo", "v1.0", "About acme/demo")
    );
    assert_eq!(shown[0].files[0].path, "dists/acme/demo/v1.0.zip");
    assert!(shown[0].properties.contains(&("keywords".to_owned(), "x y".to_owned())));
    let id = VersionId::new("acme/demo", "v1.0");
    let presented = mount.present_version(&id).unwrap();
    assert_eq!(presented["dependencies"][0], json!({"name": "php", "requirement": ">=7", "group": ""}));
    assert_eq!(presented["dependencies"][1], json!({"name": "a/b", "requirement": "*", "group": "dev"}));
    mount.delete_version(&id).unwrap();
    assert_eq!(mount.delete_version(&id).unwrap_err().status, 404);
    host.end_grace();
    let left = mount.effects();
    assert!(left.blobs.is_empty() && left.shown.is_empty(), "{left}");
    assert_eq!(left.records.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["d/acme/demo/1.0.0.0"]);
}

#[test]
fn retention_knows_pre_releases() {
    let (_, mount) = hosted(json!({}));
    let ids = ["1.0", "1.0-beta1", "dev-main", "x"].map(|version| VersionId::new("a/b", version));
    let facts = mount.judge_versions(&ids).unwrap();
    let of = |at: usize| facts[at]["prerelease"].clone();
    assert_eq!([of(0), of(1), of(2), of(3)], [json!(false), json!(true), json!(true), Value::Null]);
}

#[test]
fn intents_name_the_package() {
    let (_, mount) = hosted(json!({}));
    let plan = |method: &str, target: &str| mount.plan(&TestRequest::new(method, target)).unwrap();
    assert_eq!(plan("GET", "/p2/acme/demo~dev.json").packages, ["acme/demo"]);
    assert_eq!(plan("GET", "/dists/acme/demo/1.0.zip").packages, ["acme/demo"]);
    assert!(plan("GET", "/packages.json").many_packages);
    assert_eq!(plan("PUT", "/").digests, ["sha1"]);
}
