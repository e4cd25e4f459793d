//! Runs the protocol table with the memory host, and tests what a row of the table cannot express:
//! the order of versions, states, presentation, audits.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::table;
use super::zip;

use packhouse_composer::Composer;
use packhouse_sdk::VersionId;
use packhouse_testkit::{MemoryHost, Mount, TestRequest, run};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use zip::{package, sha1};

/// 2026-11-21 05:01:40 UTC.
const NOW: u64 = 1_795_237_300_000;

fn hosted(settings: Value) -> (MemoryHost, Mount<Composer>) {
    let host = MemoryHost::new();
    host.set_now(NOW);
    let mount = host.mount::<Composer>("php", "hosted", settings);
    (host, mount)
}

fn publish(mount: &Mount<Composer>, name: &str, version: &str, more: &str) {
    mount.put(&format!("/?version={version}")).body(package(name, version, more)).send().expect(201);
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
fn the_newest_version_is_listed_first_and_each_has_its_members() {
    let (_, mount) = hosted(json!({}));
    publish(&mount, "acme/demo", "1.9", r#", "require": {"php": ">=7"}, "extra": {"x": 1.0}"#);
    publish(&mount, "acme/demo", "1.10", r#", "keywords": ["a", "ä"]"#);
    publish(&mount, "acme/demo", "2.0-RC1", "");
    let text = mount.get("/p2/acme/demo.json").send().expect(200).text();
    let document: Value = serde_json::from_str(&text).unwrap();
    let all = document["packages"]["acme/demo"].as_array().unwrap();
    let texts: Vec<&str> = all.iter().map(|one| one["version"].as_str().unwrap()).collect();
    assert_eq!(texts, ["2.0-RC1", "1.10", "1.9"]);
    assert_eq!(all[1]["keywords"], json!(["a", "ä"]));
    assert_eq!((&all[2]["keywords"], &all[2]["require"]), (&json!("__unset"), &json!({"php": ">=7"})));
    assert_eq!(all[2]["time"], "2026-11-21T05:01:40.000Z");
    assert!(text.contains(r#""extra":{"x":1.0}"#), "{text}");
}

#[test]
fn a_branch_moves_and_the_url_of_its_file_names_its_state() {
    let (host, mount) = hosted(json!({}));
    let (first, second) = (package("acme/demo", "dev-main", ""), package("acme/demo", "dev-x", ""));
    let put = |zip: &[u8]| mount.put("/?version=dev-main").body(zip).send();
    put(&first).expect(201);
    mount.mark_version(&VersionId::new("acme/demo", "dev-main"), "deprecated", "").unwrap();
    host.set_now(NOW + 1000);
    put(&second).expect(201);
    put(&second).expect(201);
    let listed = host.versions("php");
    assert_eq!((listed.len(), listed[0].files.len()), (1, 1));
    assert_eq!((listed[0].published, listed[0].state.as_str()), (Some(NOW + 1000), "deprecated"));
    let text = mount.get("/p2/acme/demo~dev.json").send().expect(200).text();
    let link = format!("/dists/acme/demo/dev-main.zip?reference={}", sha1(&second));
    assert!(text.contains(&link) && !text.contains(&sha1(&first)), "{text}");
    let moved = mount.get(&link).send().expect(200);
    assert_eq!(
        (moved.header("cache-control"), &moved.body),
        (Some("private, max-age=31536000, immutable"), &second)
    );
    mount.get(&format!("/dists/acme/demo/dev-main.zip?reference={}", sha1(&first))).send().expect(404);
    let newest = mount.get("/dists/acme/demo/dev-main.zip").send().expect(200);
    assert_eq!((newest.header("cache-control"), &newest.body), (Some("no-cache"), &second));
    // A deleted branch can be published again.
    mount.delete("/packages/acme/demo/dev-main").send().expect(204);
    put(&first).expect(201);
}

#[test]
fn a_version_is_deprecated_and_restored() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, "acme/demo", "v1.0", r#", "keywords": ["x", "y"]"#);
    let id = VersionId::new("acme/demo", "v1.0");
    let abandoned =
        || mount.get("/p2/acme/demo.json").send().expect(200).text().contains(r#""abandoned":true"#);
    mount.mark_version(&id, "deprecated", "use other").unwrap();
    assert!(abandoned());
    let listed = host.versions("php").remove(0);
    assert_eq!((listed.state.as_str(), listed.summary.as_str()), ("deprecated", "About acme/demo"));
    assert_eq!(listed.files[0].path, "dists/acme/demo/v1.0.zip");
    for property in [("keywords", "x y"), ("license", "MIT"), ("reason", "use other"), ("type", "library")] {
        let (name, value) = property;
        assert!(listed.properties.contains(&(name.to_owned(), value.to_owned())), "{property:?}");
    }
    mount.mark_version(&id, "", "").unwrap();
    assert!(!abandoned() && host.versions("php")[0].state.is_empty());
    assert_eq!(mount.mark_version(&id, "yanked", "").unwrap_err().status, 405);
    assert_eq!(mount.mark_version(&id, "deprecated", "two\nlines").unwrap_err().status, 400);
    let absent = VersionId::new("acme/demo", "2.0");
    assert_eq!(mount.mark_version(&absent, "deprecated", "").unwrap_err().status, 404);
    mount.delete_version(&id).unwrap();
    assert_eq!(mount.delete_version(&id).unwrap_err().status, 404);
}

#[test]
fn a_version_is_presented_with_its_dependencies() {
    let (_, mount) = hosted(json!({}));
    publish(&mount, "acme/demo", "1.0", r#", "require": {"php": ">=7"}, "require-dev": {"a/b": "*"}"#);
    let presented = mount.present_version(&VersionId::new("acme/demo", "1.0")).unwrap();
    let expected = json!({"dependencies": [
        {"name": "php", "requirement": ">=7", "group": ""}, {"name": "a/b", "requirement": "*", "group": "dev"},
    ]});
    assert_eq!(presented, expected);
    assert_eq!(mount.present_version(&VersionId::new("acme/demo", "2.0")).unwrap_err().status, 404);
}

#[test]
fn versions_have_an_order_and_intents_name_their_packages() {
    let (_, mount) = hosted(json!({}));
    let versions = ["1.0", "1.0-beta1", "dev-main", "x", "v1.0.0.0", "1.x-dev"];
    assert_eq!(mount.compare_versions(&versions), [Some(1), Some(0), None, None, Some(1), Some(2)]);
    let ids = versions.map(|version| VersionId::new("acme/demo", version));
    let judged = mount.judge_versions(&ids).unwrap();
    let prerelease: Vec<Option<bool>> =
        judged.as_array().unwrap().iter().map(|facts| facts["prerelease"].as_bool()).collect();
    assert_eq!(prerelease, [Some(false), Some(true), Some(true), None, Some(false), Some(true)]);
    for path in ["/p2/acme/demo.json", "/p2/acme/demo~dev.json", "/dists/acme/demo/dev-a/b.zip"] {
        assert_eq!(mount.plan(&TestRequest::new("GET", path)).unwrap().packages, ["acme/demo"], "{path}");
    }
    assert!(mount.plan(&TestRequest::new("GET", "/packages.json")).unwrap().many_packages);
    assert_eq!(mount.plan(&TestRequest::new("PUT", "/")).unwrap().digests, ["sha1"]);
}

#[test]
fn a_record_has_the_members_that_older_releases_read() {
    let (_, mount) = hosted(json!({}));
    publish(&mount, "acme/demo", "1.0", "");
    let records: BTreeMap<String, Vec<u8>> = mount.effects().records.into_iter().collect();
    let record: Value = serde_json::from_slice(&records["v/acme/demo/1.0.0.0"]).unwrap();
    let members: Vec<&String> = record.as_object().unwrap().keys().collect();
    assert_eq!(members, ["members", "name", "sha1", "sha256", "size", "time", "version"]);
    assert_eq!(records["d/acme/demo/1.0.0.0"], b"true");
}

#[test]
fn an_audit_returns_the_imported_advisories() {
    let (host, mount) = hosted(json!({}));
    host.advise(
        "acme/demo",
        json!([{
            "id": "GHSA-1", "aliases": ["CVE-2026-1"], "summary": "Bad", "severity": "high", "published": NOW,
            "url": "https://a.test/1",
            "affected": {"ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.2"}]}]},
        }]),
    );
    let root = mount.get("/packages.json").send().expect(200).json();
    assert!(root["security-advisories"]["api-url"].as_str().unwrap().ends_with("/security-advisories"));
    let request = mount
        .post("/security-advisories")
        .header("content-type", "application/x-www-form-urlencoded")
        .body("packages%5B0%5D=acme%2Fdemo&packages%5B1%5D=acme%2Fother");
    let reply = request.send().expect(200).json();
    let one = &reply["advisories"]["acme/demo"][0];
    assert_eq!((&one["advisoryId"], &one["affectedVersions"]), (&json!("GHSA-1"), &json!("<1.2")));
    assert_eq!(one["reportedAt"], "2026-11-21T05:01:40.000Z");
    assert!(reply["advisories"].get("acme/other").is_none());
    let by_query = mount.get("/security-advisories?packages[]=acme/demo").send().expect(200).json();
    assert_eq!(by_query, reply);
    mount.post("/security-advisories").body("").send().expect(400);
}
