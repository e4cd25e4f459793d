//! Runs the protocol table with the memory host, and tests what a row of the table cannot express:
//! search, proxies, groups, upkeep, presentation.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::table;

use packhouse_cargo::Cargo;
use packhouse_sdk::VersionId;
use packhouse_testkit::{MemoryHost, Mount, run};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use table::a_crate::ACrate;

fn hosted(settings: Value) -> (MemoryHost, Mount<Cargo>) {
    let host = MemoryHost::new();
    let mount = host.mount::<Cargo>("releases", "hosted", settings);
    (host, mount)
}

fn publish(mount: &Mount<Cargo>, sent: &ACrate) {
    mount.put("/api/v1/crates/new").caller("Ada").body(sent.body()).send().expect(200);
}

/// A line of a crate in the index of an upstream.
fn line(name: &str, version: &str, file: &[u8], more: Value) -> String {
    let mut line = json!({
        "name": name, "vers": version, "deps": [], "features": {}, "yanked": false, "cksum": hex::encode(Sha256::digest(file)),
    });
    line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    line.to_string()
}

fn answer_config(host: &MemoryHost) {
    let config =
        json!({"dl": "https://files.test/{crate}-{version}.crate", "api": "https://far.test"}).to_string();
    host.answer_upstream("GET", "/config.json", 200, &[], config.as_bytes());
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
    publish(&mount, &ACrate::new("hello", "1.0.0"));
    let before = mount.effects();
    for sent in [ACrate::new("hello", "1.0.0"), ACrate::new("hello", "2.0.0").file(b"x".to_vec())] {
        assert!(mount.put("/api/v1/crates/new").body(sent.body()).send().status >= 400);
    }
    host.end_grace();
    assert_eq!(mount.effects(), before);
}

#[test]
fn a_public_registry_needs_no_token() {
    let (_, mount) = hosted(json!({"public": true}));
    assert_eq!(mount.get("/config.json").send().expect(200).json()["auth-required"], false);
}

#[test]
fn a_search_finds_the_newest_release_that_is_not_yanked() {
    let (_, mount) = hosted(json!({}));
    for version in ["1.9.0", "1.10.0", "2.0.0-rc.1", "1.11.0"] {
        publish(&mount, &ACrate::new("Hello_World", version));
    }
    mount.delete("/api/v1/crates/Hello_World/1.11.0/yank").send().expect(200);
    for words in ["hello", "hello_world", "word", "about"] {
        let found = mount.get(&format!("/api/v1/crates?q={words}")).send().expect(200).json();
        let expected =
            json!([{"name": "Hello_World", "max_version": "1.10.0", "description": "About Hello_World"}]);
        assert_eq!((&found["crates"], &found["meta"]["total"]), (&expected, &json!(1)), "{words}");
    }
    let owners = mount.get("/api/v1/crates/hello_world/owners").send().expect(200).json();
    assert_eq!(owners["users"], json!([{"id": 1, "login": "Ada", "name": null}]));
}

#[test]
fn a_deleted_version_stays_used_and_its_crate_is_removed_with_the_last() {
    let (_, mount) = hosted(json!({}));
    publish(&mount, &ACrate::new("hello", "1.0.0"));
    publish(&mount, &ACrate::new("hello", "1.1.0"));
    let id = |version: &str| VersionId::new("hello", version);
    mount.delete_version(&id("1.0.0")).unwrap();
    assert_eq!(mount.delete_version(&id("1.0.0")).unwrap_err().status, 404);
    assert!(!mount.get("/he/ll/hello").send().expect(200).text().contains("1.0.0"));
    let again = mount.put("/api/v1/crates/new").body(ACrate::new("hello", "1.0.0").body()).send().expect(409);
    assert!(again.text().contains("was deleted here"), "{again}");
    mount.delete_version(&id("1.1.0")).unwrap();
    mount.get("/he/ll/hello").send().expect(404);
    publish(&mount, &ACrate::new("Hello", "2.0.0"));

    let (_, mount) = hosted(json!({"republish_deleted": true}));
    publish(&mount, &ACrate::new("hello", "1.0.0"));
    mount.delete_version(&id("1.0.0")).unwrap();
    publish(&mount, &ACrate::new("hello", "1.0.0"));
}

#[test]
fn a_version_is_marked_and_presented() {
    let (_, mount) = hosted(json!({}));
    let deps = json!([
        {"name": "a", "version_req": "^1", "kind": "normal", "optional": true}, {"name": "b", "version_req": "*", "kind": "dev"},
    ]);
    publish(&mount, &ACrate::new("hello", "1.0.0-rc.1").with(json!({"deps": deps})));
    let id = VersionId::new("hello", "1.0.0-rc.1");
    mount.mark_version(&id, "yanked", "it is broken").unwrap();
    assert!(mount.effects().to_string().contains("it is broken"));
    assert!(mount.get("/he/ll/hello").send().expect(200).text().contains("\"yanked\":true"));
    assert_eq!(mount.mark_version(&id, "deprecated", "").unwrap_err().status, 405);
    mount.mark_version(&id, "", "").unwrap();
    let presentation = mount.present_version(&id).unwrap();
    assert_eq!(presentation["readme"], json!({"media_type": "text/markdown", "text": "# hello"}));
    let expected = json!([
        {"name": "a", "requirement": "^1", "group": "optional"}, {"name": "b", "requirement": "*", "group": "development"},
    ]);
    assert_eq!(presentation["dependencies"], expected);
    let judged = mount.judge_versions(&[id, VersionId::new("hello", "9.0.0")]).unwrap();
    assert_eq!(judged, json!([{"prerelease": true}, null]));
}

#[test]
fn a_proxy_serves_the_lines_and_files_of_its_upstream() {
    let host = MemoryHost::new();
    let proxy = host.mount::<Cargo>("mirror", "proxy", json!({}));
    answer_config(&host);
    let (good, bad) = (
        line("Far_Away", "1.0.0", b"one", json!({"new": [1]})),
        line("Far_Away", "1.1.0", b"two", json!({})),
    );
    let page = format!("{good}\nno line\n{bad}\n{}\n", line("other", "1.0.0", b"x", json!({})));
    host.answer_upstream("GET", "/fa/r_/far_away", 200, &[], page.as_bytes());
    assert_eq!(proxy.get("/fa/r_/far_away").send().expect(200).text(), format!("{good}\n{bad}\n"));
    let fields = [("package", "far-away"), ("versions", "1")];
    assert_eq!(host.log()[0].fields, fields.map(|(name, value)| (name.to_owned(), value.to_owned())));
    host.answer_upstream("GET", "https://files.test/Far_Away-1.0.0.crate", 200, &[], b"one");
    host.answer_upstream("GET", "https://files.test/Far_Away-1.1.0.crate", 200, &[], b"another");
    assert_eq!(proxy.get("/api/v1/crates/Far_Away/1.0.0/download").send().expect(200).text(), "one");
    proxy.get("/api/v1/crates/Far_Away/1.1.0/download").send().expect(502);
    proxy.get("/api/v1/crates/Far_Away/9.0.0/download").send().expect(404);
    assert!(proxy.effects().to_string().contains("shown far-away 1.0.0"), "{}", proxy.effects());

    // The proxy marks a version that vanishes from the upstream. It continues to offer the version
    // only if a setting allows it.
    host.answer_upstream("GET", "/fa/r_/far_away", 200, &[], bad.as_bytes());
    assert_eq!(proxy.get("/fa/r_/far_away").send().expect(200).text(), format!("{bad}\n"));
    assert!(proxy.effects().to_string().contains("withdrawn"), "{}", proxy.effects());
    proxy.get("/api/v1/crates/Far_Away/1.0.0/download").send().expect(404);
    host.answer_upstream("GET", "/fa/r_/far_away", 200, &[], b"<html>");
    proxy.get("/fa/r_/far_away").send().expect(502);
    for status in [404, 410, 401, 402, 403, 405, 409, 451] {
        host.answer_upstream("GET", "/fa/r_/far_away", status, &[], b"");
        proxy.get("/fa/r_/far_away").send().expect(404);
    }
    // An upstream that refuses its config.json has no files.
    host.answer_upstream("GET", "/fa/r_/far_away", 200, &[], bad.as_bytes());
    host.answer_upstream("GET", "/config.json", 403, &[], b"");
    proxy.get("/api/v1/crates/Far_Away/1.1.0/download").send().expect(404);
}

#[test]
fn a_release_waits_for_its_age() {
    let host = MemoryHost::new();
    host.set_now(1_795_237_300_000);
    let proxy = host.mount::<Cargo>("mirror", "proxy", json!({"min_release_age_s": 86400}));
    answer_config(&host);
    let old = line("far", "1.0.0", b"one", json!({"pubtime": "2026-11-01T00:00:00Z"}));
    let young = line("far", "1.1.0", b"two", json!({"pubtime": "2026-11-21T05:00:00Z"}));
    host.answer_upstream("GET", "/3/f/far", 200, &[], format!("{old}\n{young}").as_bytes());
    assert_eq!(proxy.get("/3/f/far").send().expect(200).text(), format!("{old}\n"));
    proxy.get("/api/v1/crates/far/1.1.0/download").send().expect(404);
    // If the index states no time, the age of a version begins when the proxy first sees the
    // version.
    let untimed = line("far", "1.2.0", b"three", json!({}));
    host.answer_upstream("GET", "/3/f/far", 200, &[], format!("{old}\n{untimed}").as_bytes());
    assert_eq!(proxy.get("/3/f/far").send().expect(200).text(), format!("{old}\n"));
    host.set_now(1_795_237_300_000 + 86_400_000);
    assert_eq!(proxy.get("/3/f/far").send().expect(200).text(), format!("{old}\n{untimed}\n"));
}

#[test]
fn a_version_that_the_host_withholds_is_neither_listed_nor_served() {
    let host = MemoryHost::new();
    let proxy = host.mount::<Cargo>("mirror", "proxy", json!({}));
    answer_config(&host);
    let (good, bad) = (line("far", "1.0.0", b"one", json!({})), line("far", "1.1.0", b"two", json!({})));
    host.answer_upstream("GET", "/3/f/far", 200, &[], format!("{good}\n{bad}").as_bytes());
    host.withhold_version("far", "1.1.0");
    assert_eq!(proxy.get("/3/f/far").send().expect(200).text(), format!("{good}\n"));
    proxy.get("/api/v1/crates/far/1.1.0/download").send().expect(404);
}

#[test]
fn a_group_merges_its_members_and_requests_no_own_names_upstream() {
    let (host, own) = hosted(json!({}));
    let _proxy = host.mount::<Cargo>("mirror", "proxy", json!({}));
    let group = host.mount::<Cargo>("all", "group", json!({})).members(&["releases", "mirror"]);
    publish(&own, &ACrate::new("our_own", "1.0.0"));
    answer_config(&host);
    let evil = line("our-own", "9.0.0", b"evil", json!({}));
    for page in ["/ou/r_/our_own", "/ou/r-/our-own"] {
        host.answer_upstream("GET", page, 200, &[], evil.as_bytes());
    }
    let other = line("other", "1.0.0", b"x", json!({}));
    host.answer_upstream("GET", "/ot/he/other", 200, &[], other.as_bytes());
    assert!(!group.get("/ou/r_/our_own").send().expect(200).text().contains("9.0.0"));
    group.get("/ou/r-/our-own").send().expect(404);
    group.get("/api/v1/crates/our-own/9.0.0/download").send().expect(404);
    assert_eq!(group.get("/ot/he/other").send().expect(200).text(), format!("{other}\n"));
    let found = json!({
        "crates": [{"name": "our-own", "max_version": "9.0.0", "description": null}, {"name": "owner", "max_version": "1.0.0"}],
        "meta": {"total": 2},
    });
    host.answer_upstream(
        "GET",
        "https://far.test/api/v1/crates?q=o&per_page=10",
        200,
        &[],
        found.to_string().as_bytes(),
    );
    let found = group.get("/api/v1/crates?q=o").send().expect(200).json();
    let names: Vec<&str> =
        found["crates"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["our_own", "owner"]);
    assert_eq!(found["crates"][0]["max_version"], "1.0.0");
    let fetches = host.fetched().len();
    group.get("/api/v1/crates?q=our-own").send().expect(200);
    assert_eq!(host.fetched().len(), fetches, "a hosted name was sent to the upstream");
}
