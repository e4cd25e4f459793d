//! Runs the protocol table with the in-memory host. The other tests check behaviour that a row of
//! the table cannot express: the order of the index, states, presentation.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::chart;
use super::table;

use chart::chart;
use packhouse_helm::Helm;
use packhouse_sdk::VersionId;
use packhouse_testkit::{MemoryHost, Mount, TestRequest, run};
use serde_json::{Value, json};

/// 2026-11-21 05:01:40 UTC.
const NOW: u64 = 1_795_237_300_000;

fn hosted(settings: Value) -> (MemoryHost, Mount<Helm>) {
    let host = MemoryHost::new();
    host.set_now(NOW);
    let mount = host.mount::<Helm>("charts", "hosted", settings);
    (host, mount)
}

fn publish(mount: &Mount<Helm>, name: &str, version: &str, more: &str) {
    mount.post("/api/charts").body(chart(name, version, more)).send().expect(201);
}

fn index(mount: &Mount<Helm>) -> Value {
    serde_saphyr::from_str(&mount.get("/index.yaml").send().expect(200).text()).unwrap()
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
fn the_newest_version_is_listed_first() {
    let (_, mount) = hosted(json!({}));
    for version in ["1.9.0", "2.0.0-rc.1", "1.10.0", "1.10.0-rc.1", "v0.1", "2.0.0"] {
        publish(&mount, "demo", version, "");
    }
    let index = index(&mount);
    let versions: Vec<&str> = index["entries"]["demo"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["version"].as_str().unwrap())
        .collect();
    assert_eq!(versions, ["2.0.0", "2.0.0-rc.1", "1.10.0", "1.10.0-rc.1", "1.9.0", "v0.1"]);
    assert_eq!(index["entries"]["demo"][0]["created"], "2026-11-21T05:01:40.000Z");
    assert_eq!(index["generated"], "2026-11-21T05:01:40.000Z");
    assert_eq!(index["serverInfo"]["contextPath"], "/repositories/charts");
}

#[test]
fn the_index_contains_the_metadata_of_a_chart_unchanged() {
    let (_, mount) = hosted(json!({}));
    let more = "home: \"https://example.org/?a=\\\"b\\\"\"\nannotations:\n  \"yes\": \"no\"\n  text: |\n    two\n    lines\nsecret: dropped\n";
    publish(&mount, "odd", "1.0.0", more);
    let index = index(&mount);
    let one = &index["entries"]["odd"][0];
    assert_eq!(one["home"], "https://example.org/?a=\"b\"");
    assert_eq!(one["annotations"], json!({"yes": "no", "text": "two\nlines\n"}));
    assert!(one.get("secret").is_none());
}

#[test]
fn a_version_is_deprecated_and_restored() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, "demo", "1.0.0", "");
    let id = VersionId::new("demo", "1.0.0");
    mount.mark_version(&id, "deprecated", "use other").unwrap();
    assert_eq!(index(&mount)["entries"]["demo"][0]["deprecated"], true);
    let listed = host.versions("charts");
    assert_eq!((listed[0].state.as_str(), listed[0].files.len()), ("deprecated", 1));
    mount.mark_version(&id, "", "").unwrap();
    assert!(index(&mount)["entries"]["demo"][0].get("deprecated").is_none());
    assert_eq!(host.versions("charts")[0].state, "");
    assert_eq!(mount.mark_version(&id, "yanked", "").unwrap_err().status, 405);
    assert_eq!(
        mount.mark_version(&VersionId::new("demo", "2.0.0"), "deprecated", "").unwrap_err().status,
        404
    );
    assert_eq!(mount.mark_version(&VersionId::new("../x", "2"), "", "").unwrap_err().status, 404);
}

#[test]
fn a_published_version_is_listed_and_a_deleted_version_keeps_its_file_name() {
    let (host, mount) = hosted(json!({}));
    publish(
        &mount,
        "demo",
        "1.0.0",
        "appVersion: \"7\"\nkeywords: [web, proxy]\ndependencies:\n- name: redis\n  version: ^17\n  condition: redis.enabled\n",
    );
    let listed = host.versions("charts");
    assert_eq!((listed[0].name.as_str(), listed[0].summary.as_str()), ("demo", "About demo"));
    assert_eq!(listed[0].files[0].path, "charts/demo-1.0.0.tgz");
    let property = |name: &str| {
        listed[0].properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    };
    assert_eq!((property("app_version"), property("keywords")), (Some("7"), Some("web proxy")));
    let id = VersionId::new("demo", "1.0.0");
    let presented = mount.present_version(&id).unwrap();
    assert_eq!(presented["readme"], json!({"media_type": "text/markdown", "text": "# Read me\n"}));
    assert_eq!(
        presented["dependencies"],
        json!([{"name": "redis", "requirement": "^17", "group": "redis.enabled"}])
    );
    mount.delete_version(&id).unwrap();
    assert_eq!(mount.delete_version(&id).unwrap_err().status, 404);
    host.end_grace();
    let left = mount.effects();
    assert!(left.blobs.is_empty() && left.shown.is_empty(), "{left}");
    assert_eq!(left.records.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["f/demo-1.0.0.tgz"]);
}

#[test]
fn two_charts_cannot_share_a_file_name() {
    let (_, mount) = hosted(json!({}));
    publish(&mount, "a", "1-1.0.0", "");
    let other = mount.post("/api/charts").body(chart("a-1", "1.0.0", "")).send().expect(409);
    assert!(other.text().contains("already belongs to version 1-1.0.0 of the chart a"), "{}", other.text());
}

#[test]
fn retention_knows_pre_releases() {
    let (_, mount) = hosted(json!({}));
    let ids = [VersionId::new("a", "1.0.0"), VersionId::new("a", "v1.0-rc.1"), VersionId::new("a", "x")];
    let facts = mount.judge_versions(&ids).unwrap();
    assert_eq!((&facts[0]["prerelease"], &facts[1]["prerelease"]), (&json!(false), &json!(true)));
    assert_eq!(facts[2]["prerelease"], Value::Null);
}

#[test]
fn intents_name_each_chart_that_a_file_may_belong_to() {
    let (_, mount) = hosted(json!({}));
    let plan = |method: &str, target: &str| mount.plan(&TestRequest::new(method, target)).unwrap();
    assert_eq!(
        plan("GET", "/charts/cert-manager-v1-2.tgz.prov").packages,
        ["cert-manager", "cert-manager-v1"]
    );
    assert!(plan("GET", "/index.yaml").many_packages);
    assert_eq!(plan("GET", "/api/charts/demo").packages, ["demo"]);
}

#[test]
fn the_operators_limit_applies_to_the_chart() {
    let file = chart("demo", "1.0.0", "");
    for (limit, status) in [(file.len(), 201), (file.len() - 1, 413)] {
        let (_, mount) = hosted(json!({"max_file_bytes": limit}));
        mount.post("/api/charts").body(&file).send().expect(status);
    }
}
