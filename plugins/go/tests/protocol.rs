//! Runs the protocol table on the in-memory host. Other tests check behaviour that a table row
//! cannot express: proxies, groups, upkeep and listed versions.

use super::table;

use packhouse_go::Go;
use packhouse_sdk::VersionId;
use packhouse_testkit::{MemoryHost, Mount, run};
use serde_json::{Value, json};

fn hosted(settings: Value) -> (MemoryHost, Mount<Go>) {
    let host = MemoryHost::new();
    let mount = host.mount::<Go>("releases", "hosted", settings);
    (host, mount)
}

fn publish(mount: &Mount<Go>, path: &str, version: &str) {
    mount.put(&format!("/{path}/@v/{version}.zip")).body(table::module(path, version)).send().expect(201);
}

/// Lets the upstream serve a version.
fn offer(host: &MemoryHost, path: &str, version: &str, time: &str) {
    let at = |extension: &str| format!("/{path}/@v/{version}.{extension}");
    let info = json!({"Version": version, "Time": time, "Origin": {"VCS": "git"}}).to_string();
    host.answer_upstream("GET", &at("info"), 200, &[], info.as_bytes());
    host.answer_upstream("GET", &at("mod"), 200, &[], format!("module {path}\n").as_bytes());
    host.answer_upstream("GET", &at("zip"), 200, &[], format!("zip of {version}").as_bytes());
}

#[test]
fn the_tables_hold() {
    let (_, mut mount) = hosted(json!({}));
    run(&mut mount, &table::cases());
    let (_, mut mount) = hosted(json!({"redeploy": "identical"}));
    run(&mut mount, &table::identical());
}

#[test]
fn a_refused_publish_changes_nothing() {
    let (host, mount) = hosted(json!({}));
    publish(&mount, "example.com/a", "v1.0.0");
    let before = mount.effects();
    for (path, zip) in [
        ("/example.com/a/@v/v1.0.0.zip", table::packed("example.com/a", "v1.0.0", &[("b.go", "")])),
        ("/example.com/a/@v/v1.1.0.zip", table::module("example.com/a", "v1.0.0")),
    ] {
        assert!(mount.put(path).body(zip).send().status >= 400, "{path}");
    }
    host.end_grace();
    assert_eq!(mount.effects(), before);
}

#[test]
fn a_deleted_version_number_cannot_be_reused() {
    let id = VersionId::new("example.com/a", "v1.0.0");
    let (_, mount) = hosted(json!({}));
    publish(&mount, "example.com/a", "v1.0.0");
    mount.delete_version(&id).unwrap();
    assert_eq!(mount.delete_version(&id).unwrap_err().status, 404);
    mount.get("/example.com/a/@v/list").send().expect(404);
    let again =
        mount.put("/example.com/a/@v/v1.0.0.zip").body(table::module("example.com/a", "v1.0.0")).send();
    assert!(again.expect(409).text().contains("was deleted here"));
    let (_, mount) = hosted(json!({"republish_deleted": true}));
    publish(&mount, "example.com/a", "v1.0.0");
    mount.delete_version(&id).unwrap();
    publish(&mount, "example.com/a", "v1.0.0");
}

#[test]
fn a_version_is_presented_and_judged() {
    let (_, mount) = hosted(json!({}));
    publish(&mount, "example.com/a", "v1.0.0-rc.1");
    let id = VersionId::new("example.com/a", "v1.0.0-rc.1");
    let presented = mount.present_version(&id).unwrap();
    assert_eq!(presented["readme"], json!({"media_type": "text/markdown", "text": "# A\n"}));
    let needed = json!([{"name": "example.com/needed", "requirement": "v1.0.0", "group": "indirect"}]);
    assert_eq!(presented["dependencies"], needed);
    let judged = mount.judge_versions(&[id.clone(), VersionId::new("example.com/a", "v9.0.0")]).unwrap();
    let needs = json!([{"name": "example.com/needed", "version": "v1.0.0"}]);
    assert_eq!(judged, json!([{"prerelease": true, "needs": needs}, null]));
    assert_eq!(mount.mark_version(&id, "retracted", "").unwrap_err().status, 405);
}

#[test]
fn a_proxy_serves_what_the_upstream_has() {
    let host = MemoryHost::new();
    let proxy = host.mount::<Go>("mirror", "proxy", json!({}));
    offer(&host, "example.com/!far", "v1.0.0", "2026-01-01T00:00:00Z");
    let list = b"v1.0.0\nv1.1.0\nv2.0.0\nnonsense\n";
    host.answer_upstream("GET", "/example.com/!far/@v/list", 200, &[], list);
    let latest = json!({"Version": "v1.1.0", "Time": "2026-01-02T00:00:00Z"}).to_string();
    host.answer_upstream("GET", "/example.com/!far/@latest", 200, &[], latest.as_bytes());
    host.answer_upstream("GET", "/example.com/!far/@v/main.info", 200, &[], latest.as_bytes());
    host.answer_upstream("GET", "/example.com/!far/@v/v9.0.0.info", 404, &[], b"");
    host.answer_upstream("GET", "/example.com/!far/@v/v1.2.0.info", 410, &[], b"");
    let get = |path: &str, status: u16| proxy.get(&format!("/example.com/!far/{path}")).send().expect(status);
    assert_eq!(get("@v/list", 200).text(), "v1.0.0\nv1.1.0\n");
    // The log reports only the invalid line as left out. The line v2.0.0 is valid, but this version
    // can exist only at the path example.com/Far/v2.
    let fields = [("package", "example.com/Far"), ("versions", "1")];
    assert_eq!(host.log()[0].fields, fields.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(get("@latest", 200).json()["Version"], "v1.1.0");
    assert_eq!(get("@v/main.info", 200).json()["Version"], "v1.1.0");
    assert_eq!(
        get("@v/v1.0.0.info", 200).json(),
        json!({"Version": "v1.0.0", "Time": "2026-01-01T00:00:00Z"})
    );
    assert_eq!(get("@v/v1.0.0.mod", 200).text(), "module example.com/!far\n");
    assert_eq!(get("@v/v1.0.0.zip", 200).text(), "zip of v1.0.0");
    get("@v/v1.2.0.zip", 404);
    get("@v/v9.0.0.zip", 404);
    assert!(proxy.effects().to_string().contains("shown example.com/Far v1.0.0"), "{}", proxy.effects());
    host.answer_upstream("GET", "/example.com/!far/@v/list", 500, &[], b"");
    get("@v/list", 502);
    for status in [401, 402, 403, 405, 409, 451] {
        host.answer_upstream("GET", "/example.com/!far/@v/list", status, &[], b"");
        get("@v/list", 404);
    }
    host.answer_upstream("GET", "/example.com/!far/@latest", 200, &[], b"<html>");
    get("@latest", 502);
}

#[test]
fn the_age_of_a_version_counts_from_its_first_sight_and_ignores_the_authors_time() {
    const DAY: u64 = 86_400_000;
    let (host, now) = (MemoryHost::new(), 1_795_237_300_000);
    host.set_now(now);
    let proxy = host.mount::<Go>("mirror", "proxy", json!({"min_release_age_s": 86_400}));
    let list = || proxy.get("/example.com/far/@v/list").send().expect(200).text();
    let latest = |status| proxy.get("/example.com/far/@latest").send().expect(status);
    let serves = |version: &str, status| {
        for extension in ["info", "mod", "zip"] {
            proxy.get(&format!("/example.com/far/@v/{version}.{extension}")).send().expect(status);
        }
    };
    let set_upstream = |versions: &[&str]| {
        for version in versions {
            offer(&host, "example.com/far", version, "2020-01-01T00:00:00Z");
        }
        host.answer_upstream(
            "GET",
            "/example.com/far/@v/list",
            200,
            &[],
            (versions.join("\n") + "\n").as_bytes(),
        );
        let newest = json!({"Version": versions.last(), "Time": "2020-01-01T00:00:00Z"}).to_string();
        host.answer_upstream("GET", "/example.com/far/@latest", 200, &[], newest.as_bytes());
    };
    set_upstream(&["v1.0.0"]);
    assert_eq!(list(), "");
    latest(404);
    serves("v1.0.0", 404);
    host.set_now(now + DAY - 1);
    set_upstream(&["v1.0.0", "v1.1.0"]);
    assert_eq!(list(), "");
    host.set_now(now + DAY);
    assert_eq!(list(), "v1.0.0\n");
    assert_eq!(latest(200).json()["Version"], "v1.0.0");
    serves("v1.0.0", 200);
    serves("v1.1.0", 404);
    let info = proxy.get("/example.com/far/@v/v1.0.0.info").send().expect(200).json();
    assert_eq!(info["Time"], "2020-01-01T00:00:00Z", "clients receive the author's time");
    assert_eq!(host.versions("mirror")[0].published, Some(now + DAY), "the first fetch decides the time");
    host.set_now(now + 2 * DAY);
    assert_eq!(list(), "v1.0.0\nv1.1.0\n");
    serves("v1.1.0", 200);
}

#[test]
fn a_withheld_version_is_neither_listed_nor_served() {
    let host = MemoryHost::new();
    let proxy = host.mount::<Go>("mirror", "proxy", json!({}));
    offer(&host, "example.com/far", "v1.0.0", "2026-11-01T00:00:00Z");
    offer(&host, "example.com/far", "v1.1.0", "2026-11-02T00:00:00Z");
    host.answer_upstream("GET", "/example.com/far/@v/list", 200, &[], b"v1.0.0\nv1.1.0\n");
    host.withhold_version("example.com/far", "v1.1.0");
    assert_eq!(proxy.get("/example.com/far/@v/list").send().expect(200).text(), "v1.0.0\n");
    proxy.get("/example.com/far/@v/v1.1.0.zip").send().expect(404);
    proxy.get("/example.com/far/@v/v1.0.0.zip").send().expect(200);
}

#[test]
fn the_checksum_database_is_passed_through() {
    let (host, own) = hosted(json!({}));
    let proxy = host.mount::<Go>("mirror", "proxy", json!({}));
    let group = host.mount::<Go>("all", "group", json!({})).members(&["releases", "mirror"]);
    publish(&own, "example.com/ours", "v1.0.0");
    host.answer_upstream("GET", "/sumdb/sum.golang.org/supported", 200, &[], b"");
    host.answer_upstream(
        "GET",
        "/sumdb/sum.golang.org/lookup/example.com/!far@v1.0.0",
        200,
        &[],
        b"a record",
    );
    host.answer_upstream("GET", "/sumdb/sum.golang.org/lookup/example.com/ours@v1.0.0", 200, &[], b"ours");
    for mount in [&proxy, &group] {
        mount.get("/sumdb/sum.golang.org/supported").send().expect(200);
        let found = mount.get("/sumdb/sum.golang.org/lookup/example.com/!far@v1.0.0").send().expect(200);
        assert_eq!(found.text(), "a record");
    }
    let requests = host.fetched().len();
    let ours = group.get("/sumdb/sum.golang.org/lookup/example.com/ours@v1.0.0").send().expect(404).text();
    assert!(ours.contains("example.com/ours is published in this repository"), "{ours}");
    assert_eq!(host.fetched().len(), requests, "no upstream may receive the name of a hosted module");
    host.answer_upstream("GET", "/sumdb/sum.golang.org/lookup/example.com/none@v1.0.0", 404, &[], b"");
    let none = group.get("/sumdb/sum.golang.org/lookup/example.com/none@v1.0.0").send().expect(404).text();
    assert!(!none.contains("serves no checksum database"), "{none}");
}

#[test]
fn a_group_merges_its_members_and_requests_no_hosted_module_from_an_upstream() {
    let (host, own) = hosted(json!({}));
    let second = host.mount::<Go>("second", "hosted", json!({}));
    let _proxy = host.mount::<Go>("mirror", "proxy", json!({}));
    let group = host.mount::<Go>("all", "group", json!({})).members(&["releases", "second", "mirror"]);
    publish(&own, "example.com/ours", "v1.0.0");
    publish(&second, "example.com/ours", "v1.1.0");
    offer(&host, "example.com/ours", "v9.0.0", "2026-01-01T00:00:00Z");
    offer(&host, "example.com/far", "v1.0.0", "2026-01-01T00:00:00Z");
    host.answer_upstream("GET", "/example.com/ours/@v/list", 200, &[], b"v1.9.0\n");
    host.answer_upstream("GET", "/example.com/far/@v/list", 200, &[], b"v1.0.0\n");
    assert_eq!(group.get("/example.com/ours/@v/list").send().expect(200).text(), "v1.0.0\nv1.1.0\n");
    assert_eq!(group.get("/example.com/ours/@latest").send().expect(200).json()["Version"], "v1.1.0");
    assert_eq!(group.get("/example.com/far/@v/list").send().expect(200).text(), "v1.0.0\n");
    group.get("/example.com/ours/@v/v1.1.0.zip").send().expect(200);
    group.get("/example.com/ours/@v/v1.9.0.info").send().expect(404);
}
