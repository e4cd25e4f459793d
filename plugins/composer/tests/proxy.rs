//! Proxies over an upstream in memory, and groups over hosted repositories and proxies.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "in tests, a fault is to be loud")]

mod zip;

use packhouse_composer::Composer;
use packhouse_testkit::{MemoryHost, Mount};
use serde_json::{Value, json};
use zip::{package, sha1};

fn proxy(host: &MemoryHost) -> Mount<Composer> {
    host.set_now(1_795_237_300_000);
    let root = json!({"packages": [], "metadata-url": "/p2/%package%.json"}).to_string();
    host.answer_upstream("GET", "packages.json", 200, &[], root.as_bytes());
    host.mount::<Composer>(
        "proxy",
        "proxy",
        json!({"upstream": "https://upstream.test", "keep_withdrawn": true}),
    )
}

/// The upstream's metadata of a package in these versions, whose files are on a host of their own.
fn lay(host: &MemoryHost, name: &str, versions: &[&str]) {
    let listed: Vec<Value> = versions
        .iter()
        .map(|version| {
            let (zip, url) = (package(name, version, ""), format!("https://files.test/{name}-{version}"));
            host.answer_upstream("GET", &url, 200, &[], &zip);
            json!({"name": name, "version": version, "time": "2026-01-02T03:04:05+00:00",
                   "dist": {"type": "zip", "url": url, "shasum": sha1(&zip), "reference": "r"}})
        })
        .collect();
    let document = json!({"packages": {name: listed}}).to_string();
    host.answer_upstream("GET", &format!("p2/{name}.json"), 200, &[], document.as_bytes());
}

fn versions(mount: &Mount<Composer>, name: &str) -> Vec<String> {
    let document = mount.get(&format!("/p2/{name}.json")).send().expect(200).json();
    let all = document["packages"][name].as_array().unwrap().clone();
    all.iter().map(|one| one["version"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn addresses_become_the_proxys_own() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    lay(&host, "acme/lib", &["1.9", "1.10"]);
    assert_eq!(versions(&mount, "acme/lib"), ["1.10", "1.9"]);
    let text = mount.get("/p2/acme/lib.json").send().text();
    assert!(
        text.contains("/repositories/proxy/dists/acme/lib/1.9.zip") && !text.contains("files.test"),
        "{text}"
    );
    assert_eq!(mount.get("/dists/acme/lib/1.9.zip").send().expect(200).body, package("acme/lib", "1.9", ""));
    mount.get("/dists/acme/lib/3.0.zip").send().expect(404);
    for absent in ["lib~dev", "absent"] {
        let address = format!("p2/acme/{absent}.json");
        host.answer_upstream("GET", &address, 404, &[], b"");
    }
    mount.get("/p2/acme/lib~dev.json").send().expect(404);
    mount.get("/p2/acme/absent.json").send().expect(404);
    let shown = host.versions("proxy");
    assert_eq!((shown.len(), shown[0].published), (1, Some(1_767_323_045_000)));
}

#[test]
fn other_bytes_than_the_metadata_say_are_never_handed_on() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    lay(&host, "acme/lib", &["1.0"]);
    host.answer_upstream("GET", "https://files.test/acme/lib-1.0", 200, &[], b"other");
    let answer = mount.get("/dists/acme/lib/1.0.zip").send();
    assert!(answer.status >= 500, "{}", answer.status);
}

#[test]
fn a_fetched_version_that_the_upstream_drops_is_withdrawn() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    lay(&host, "acme/lib", &["1.0", "1.1"]);
    mount.get("/dists/acme/lib/1.0.zip").send().expect(200);
    lay(&host, "acme/lib", &["1.1"]);
    assert_eq!(versions(&mount, "acme/lib")[0], "1.1");
    assert_eq!(host.versions("proxy")[0].state, "withdrawn");
    lay(&host, "acme/lib", &["1.0", "1.1"]);
    assert_eq!(versions(&mount, "acme/lib"), ["1.1", "1.0"]);
    assert_eq!(host.versions("proxy")[0].state, "");
}

#[test]
fn a_small_upstream_has_all_in_one_document() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    let version = json!({"name": "acme/one", "version": "1.0", "dist": {"type": "zip", "url": "one.zip"}});
    let root = json!({"packages": {"acme/one": {"1.0": version}}}).to_string();
    host.answer_upstream("GET", "packages.json", 200, &[], root.as_bytes());
    assert_eq!(versions(&mount, "acme/one"), ["1.0"]);
    mount.get("/p2/acme/two.json").send().expect(404);
}

#[test]
fn what_is_no_metadata_is_the_upstreams_fault() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    for body in ["<html>", "", "{}", r#"{"packages": {"acme/lib": 7}}"#] {
        host.answer_upstream("GET", "p2/acme/lib.json", 200, &[], body.as_bytes());
        mount.get("/p2/acme/lib.json").send().expect(502);
    }
    host.answer_upstream("GET", "packages.json", 200, &[], b"[]");
    mount.get("/p2/acme/lib.json").send().expect(502);
}

#[test]
fn in_a_group_our_names_are_ours() {
    let host = MemoryHost::new();
    proxy(&host);
    lay(&host, "acme/own", &["9.0"]);
    lay(&host, "acme/lib", &["1.0"]);
    for (name, version) in [("one", "1.0"), ("two", "2.0")] {
        let mount = host.mount::<Composer>(name, "hosted", json!({}));
        mount.put(&format!("/?version={version}")).body(package("acme/own", version, "")).send().expect(201);
    }
    let group = host.mount::<Composer>("all", "group", json!({})).members(&["one", "two", "proxy"]);
    assert_eq!(versions(&group, "acme/own"), ["2.0", "1.0"]);
    assert_eq!(versions(&group, "acme/lib"), ["1.0"]);
    group.get("/dists/acme/own/2.0.zip").send().expect(200);
    group.get("/dists/acme/own/9.0.zip").send().expect(404);
    group.get("/dists/acme/lib/1.0.zip").send().expect(200);
    let root = group.get("/packages.json").send().expect(200).json();
    assert!(root.get("available-packages").is_none(), "an upstream has others: {root}");
}
