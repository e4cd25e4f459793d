//! Tests of proxies, whose upstream is in memory, and of groups of hosted repositories and proxies.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::zip;

use packhouse_composer::Composer;
use packhouse_sdk::{Error, Freshness};
use packhouse_testkit::{MemoryHost, Mount};
use serde_json::{Value, json};
use zip::{package, sha1};

fn proxy_named(host: &MemoryHost, name: &str, upstream: &str) -> Mount<Composer> {
    host.set_now(1_795_237_300_000);
    host.mount::<Composer>(name, "proxy", json!({"upstream": upstream, "keep_withdrawn": true}))
}

fn proxy(host: &MemoryHost) -> Mount<Composer> {
    root(host, &json!({"packages": [], "metadata-url": "/p2/%package%.json"}));
    proxy_named(host, "proxy", "https://upstream.test")
}

fn root(host: &MemoryHost, document: &Value) {
    host.answer_upstream("GET", "packages.json", 200, &[], document.to_string().as_bytes());
}

/// A version as the upstream lists it. The upstream also serves its file.
fn version(host: &MemoryHost, name: &str, version: &str, reference: &str) -> Value {
    let zip = package(name, version, reference);
    let path = format!("files/{name}/{version}");
    host.answer_upstream("GET", &path, 200, &[], &zip);
    let dist = json!({
        "type": "zip", "url": format!("https://upstream.test/{path}"), "shasum": sha1(&zip), "reference": reference,
    });
    json!({"name": name, "version": version, "time": "2026-01-02T03:04:05+00:00", "dist": dist})
}

/// Serves metadata of a package at the upstream.
fn serve_metadata(host: &MemoryHost, name: &str, versions: &[Value]) {
    let document = json!({"packages": {name.trim_end_matches("~dev"): versions}}).to_string();
    host.answer_upstream("GET", &format!("p2/{name}.json"), 200, &[], document.as_bytes());
}

fn numbers(mount: &Mount<Composer>, name: &str) -> Vec<String> {
    let document = mount.get(&format!("/p2/{name}.json")).send().expect(200).json();
    let all = document["packages"][name.trim_end_matches("~dev")].as_array().unwrap();
    all.iter().map(|one| one["version"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn addresses_are_replaced_by_those_of_the_proxy() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    serve_metadata(
        &host,
        "acme/lib",
        &[version(&host, "acme/lib", "1.9", ""), version(&host, "acme/lib", "1.10", "")],
    );
    assert_eq!(numbers(&mount, "acme/lib"), ["1.10", "1.9"]);
    let text = mount.get("/p2/acme/lib.json").send().expect(200).text();
    assert!(text.contains("/dists/acme/lib/1.9.zip") && !text.contains("upstream.test"), "{text}");
    let file = mount.get("/dists/acme/lib/1.9.zip").send().expect(200);
    assert_eq!(
        (file.body, host.versions("proxy")[0].published),
        (package("acme/lib", "1.9", ""), Some(1_767_323_045_000))
    );
    host.answer_upstream("GET", "p2/acme/absent.json", 404, &[], b"");
    host.answer_upstream("GET", "p2/acme/lib~dev.json", 404, &[], b"");
    for path in [
        "/dists/acme/lib/3.0.zip",
        "/p2/acme/lib~dev.json",
        "/p2/acme/absent.json",
        "/dists/acme/lib/1.9.tar",
    ] {
        mount.get(path).send().expect(404);
    }
    host.answer_upstream("GET", "files/acme/lib/1.10", 200, &[], b"other");
    mount.get("/dists/acme/lib/1.10.zip").send().expect(502);
}

#[test]
fn branches_dates_and_other_types_of_files_are_listed() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    let texts = ["11.x-dev", "1.x-dev", "dev-main", "dev-feature/a"];
    serve_metadata(&host, "acme/lib~dev", &texts.map(|text| version(&host, "acme/lib", text, "r1")));
    assert_eq!(numbers(&mount, "acme/lib~dev"), texts);
    let text = mount.get("/p2/acme/lib~dev.json").send().expect(200).text();
    assert!(text.contains("/dists/acme/lib/dev-feature/a.zip?reference=r1\""), "{text}");
    for text in texts {
        mount.get(&format!("/dists/acme/lib/{text}.zip?reference=r1")).send().expect(200);
        mount.get(&format!("/dists/acme/lib/{text}.zip")).send().expect(200);
    }
    let mut odd = version(&host, "acme/lib", "2024-01-31", "");
    odd["dist"]["type"] = json!("gzip");
    let mut path = version(&host, "acme/lib", "1.0", "");
    path["dist"] = json!({"type": "path", "url": "../lib"});
    serve_metadata(&host, "acme/lib", &[odd, path, version(&host, "acme/lib", "latest", "")]);
    assert_eq!(numbers(&mount, "acme/lib"), ["2024-01-31", "1.0"]);
    let text = mount.get("/p2/acme/lib.json").send().expect(200).text();
    assert!(text.contains(r#"{"type":"path","url":"../lib"}"#), "{text}");
    mount.get("/dists/acme/lib/2024-01-31.gzip").send().expect(200);
    assert!(host.log().iter().any(|line| line.message.contains("versions left out")), "{:?}", host.log());
}

#[test]
fn a_branch_that_moves_upstream_gets_its_new_file() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    let main = |reference| version(&host, "acme/lib", "dev-main", reference);
    serve_metadata(&host, "acme/lib~dev", &[main(r#", "x": 1"#)]);
    let old = package("acme/lib", "dev-main", r#", "x": 1"#);
    assert_eq!(mount.get("/dists/acme/lib/dev-main.zip").send().expect(200).body, old);
    serve_metadata(&host, "acme/lib~dev", &[main(r#", "x": 2"#)]);
    let new = package("acme/lib", "dev-main", r#", "x": 2"#);
    assert_eq!(mount.get("/dists/acme/lib/dev-main.zip").send().expect(200).body, new);
    let get =
        |reference: &str| mount.get(&format!("/dists/acme/lib/dev-main.zip?reference={reference}")).send();
    get("%2C%20%22x%22:%202").expect(200);
    get("%2C%20%22x%22:%201").expect(404);
    // The file of a branch can change if neither a checksum nor the address identifies the state of
    // the branch.
    let mut bare = main("r3");
    bare["dist"]["shasum"] = json!("");
    serve_metadata(&host, "acme/lib~dev", &[bare]);
    mount.get("/dists/acme/lib/dev-main.zip").send().expect(200);
    assert_ne!(host.fetches().last().unwrap().fresh, Some(Freshness::Immutable));
}

#[test]
fn a_fetched_version_that_the_upstream_drops_is_withdrawn() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    let both = || [version(&host, "acme/demo", "1.0", ""), version(&host, "acme/demo", "1.1", "")];
    serve_metadata(&host, "acme/demo", &both());
    mount.get("/dists/acme/demo/1.0.zip").send().expect(200);
    serve_metadata(&host, "acme/demo", &both()[1..]);
    assert_eq!(numbers(&mount, "acme/demo"), ["1.1", "1.0"]);
    assert_eq!(host.versions("proxy")[0].state, "withdrawn");
    serve_metadata(&host, "acme/demo", &both());
    assert_eq!(numbers(&mount, "acme/demo"), ["1.1", "1.0"]);
    assert_eq!(host.versions("proxy")[0].state, "");
}

#[test]
fn a_file_that_an_upstream_refuses_is_not_found_and_is_requested_once() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    serve_metadata(&host, "acme/lib", &[version(&host, "acme/lib", "1.0", "")]);
    mount.get("/dists/acme/lib/1.0.zip").send().expect(200);
    for status in [401, 402, 403, 404, 405, 409, 410, 451] {
        let headers = [("x-ratelimit-remaining", "0")];
        host.answer_upstream("GET", "files/acme/lib/1.0", status, &headers, b"");
        let before = host.fetched().len();
        mount.get("/dists/acme/lib/1.0.zip").send().expect(404);
        let requested = host.fetched().split_off(before);
        let files = requested.iter().filter(|one| one.contains("files/")).count();
        assert_eq!(files, 1, "{status}: {requested:?}");
        host.answer_upstream("GET", "p2/acme/other.json", status, &[], b"");
        mount.get("/p2/acme/other.json").send().expect(404);
    }
    for status in [500, 503] {
        host.answer_upstream("GET", "files/acme/lib/1.0", status, &[], b"");
        host.answer_upstream("GET", "p2/acme/other.json", status, &[], b"");
        mount.get("/dists/acme/lib/1.0.zip").send().expect(502);
        let failed = mount.get("/p2/acme/other.json").send().expect(502).text();
        assert!(failed.contains("p2/acme/other.json") && !failed.contains("upstream.test"), "{failed}");
    }
    // If the upstream refuses its root document, the proxy offers no packages, but marks no version
    // as withdrawn.
    host.answer_upstream("GET", "packages.json", 403, &[], b"");
    mount.get("/p2/acme/lib.json").send().expect(404);
    assert_eq!(host.versions("proxy")[0].state, "");
}

#[test]
fn an_unreadable_document_of_an_upstream_is_a_502() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    let deep = format!(r#"{{"packages": {{"acme/lib": {}{}}}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let large = format!(r#"{{"packages": {{"acme/lib": [], "x": "{}"}}}}"#, "x".repeat(9 << 20));
    for body in ["<html>", "", "{}", r#"{"packages": {"acme/lib": 7}}"#, &deep, &large] {
        host.answer_upstream("GET", "p2/acme/lib.json", 200, &[], body.as_bytes());
        mount.get("/p2/acme/lib.json").send().expect(502);
    }
    host.answer_upstream("GET", "p2/acme/lib.json", 200, &[], br#"{"packages": []}"#);
    mount.get("/p2/acme/lib.json").send().expect(404);
    root(&host, &json!({"packages": []}));
    mount.get("/p2/acme/lib.json").send().expect(404);
    root(&host, &json!([]));
    mount.get("/p2/acme/lib.json").send().expect(502);
    // A small upstream lists all packages in one document.
    let one = json!({"name": "acme/one", "version": "1.0", "dist": {"type": "zip", "url": "one.zip"}});
    root(&host, &json!({"packages": {"acme/one": {"1.0": one}}}));
    assert_eq!(numbers(&mount, "acme/one"), ["1.0"]);
    mount.get("/p2/acme/two.json").send().expect(404);
}

#[test]
fn a_group_takes_hosted_names_only_from_hosted_members() {
    let host = MemoryHost::new();
    proxy(&host);
    serve_metadata(&host, "acme/own", &[version(&host, "acme/own", "9.0", "")]);
    serve_metadata(&host, "acme/lib", &[version(&host, "acme/lib", "1.0", "")]);
    for (name, version) in [("one", "1.0"), ("two", "2.0")] {
        let mount = host.mount::<Composer>(name, "hosted", json!({}));
        mount.put(&format!("/?version={version}")).body(package("acme/own", version, "")).send().expect(201);
    }
    let group = host.mount::<Composer>("all", "group", json!({})).members(&["one", "two", "proxy"]);
    assert_eq!(numbers(&group, "acme/own"), ["2.0", "1.0"]);
    assert_eq!(numbers(&group, "acme/lib"), ["1.0"]);
    group.get("/dists/acme/own/2.0.zip").send().expect(200);
    group.get("/dists/acme/own/9.0.zip").send().expect(404);
    group.get("/dists/acme/lib/1.0.zip").send().expect(200);
    let root = group.get("/packages.json").send().expect(200).json();
    assert!(root.get("available-packages").is_none(), "the group must not list only some packages: {root}");
}

#[test]
fn in_a_group_a_member_that_fails_or_cannot_be_read_is_left_out() {
    let host = MemoryHost::new();
    // The metadata are below the upstream URL of the first member. Only the first member therefore
    // requests them by a relative path.
    root(&host, &json!({"metadata-url": "https://first.test/p2/%package%.json"}));
    for name in ["first", "second"] {
        proxy_named(&host, name, &format!("https://{name}.test"));
    }
    let group = host.mount::<Composer>("all", "group", json!({})).members(&["first", "second"]);
    let document = json!({"packages": {"acme/lib": [version(&host, "acme/lib", "1.0", "")]}}).to_string();
    let (of_first, of_second) = ("p2/acme/lib.json", "https://first.test/p2/acme/lib.json");
    host.answer_upstream("GET", of_second, 200, &[], document.as_bytes());
    let zip = package("acme/lib", "1.0", "");
    host.answer_upstream("GET", "https://upstream.test/files/acme/lib/1.0", 200, &[], &zip);
    for body in ["<html>", r#"{"packages": 7}"#, r#"{"packages": {"acme/lib": 7}}"#] {
        host.answer_upstream("GET", of_first, 200, &[], body.as_bytes());
        assert_eq!(numbers(&group, "acme/lib"), ["1.0"], "{body}");
        group.get("/dists/acme/lib/1.0.zip").send().expect(200);
    }
    host.fail_upstream("GET", of_first, Error::Unavailable("down".to_owned()));
    assert_eq!(numbers(&group, "acme/lib"), ["1.0"]);
    assert!(host.left_out().iter().any(|(member, _)| *member == "first"), "{:?}", host.left_out());
    // The second member does not have this package, so the group fails like the first member.
    let (of_first, of_second) = ("p2/acme/other.json", "https://first.test/p2/acme/other.json");
    host.fail_upstream("GET", of_first, Error::Unavailable("down".to_owned()));
    host.answer_upstream("GET", of_second, 404, &[], b"");
    group.get("/p2/acme/other.json").send().expect(502);
}

#[test]
fn an_audit_queries_the_upstream_only_about_names_that_may_be_requested_there() {
    let host = MemoryHost::new();
    let mount = proxy(&host);
    let known = json!([{"id": "GHSA-1", "affected": {"versions": ["1.0"]}}, {"id": "GHSA-2", "affected": {"versions": ["1.0"]}}]);
    host.advise("acme/lib", known);
    let ids = |mount: &Mount<Composer>| -> Vec<String> {
        let request =
            mount.post("/security-advisories").body("packages%5B0%5D=acme%2Flib&packages%5B1%5D=acme%2Fown");
        let reply = request.send().expect(200).json();
        let all = reply["advisories"]["acme/lib"].as_array().unwrap();
        all.iter().map(|one| one["advisoryId"].as_str().unwrap().to_owned()).collect()
    };
    // If the upstream has no API for advisories, the reply contains only the imported ones.
    assert_eq!(ids(&mount), ["GHSA-1", "GHSA-2"]);
    let api = "https://api.test/security-advisories/";
    root(&host, &json!({"packages": [], "security-advisories": {"metadata": true, "api-url": api}}));
    let reply = json!({"advisories": {
        "acme/lib": [{"advisoryId": "PKSA-1", "affectedVersions": "<2", "sources": [{"name": "GitHub", "remoteId": "GHSA-1"}]}],
        "acme/unasked": [{"advisoryId": "PKSA-2"}],
    }});
    host.answer_upstream("POST", api, 200, &[], reply.to_string().as_bytes());
    assert_eq!(ids(&mount), ["PKSA-1", "GHSA-2"]);
    let hosted = host.mount::<Composer>("own", "hosted", json!({}));
    hosted.put("/?version=1.0").body(package("acme/own", "1.0", "")).send().expect(201);
    let group = host.mount::<Composer>("all", "group", json!({})).members(&["own", "proxy"]);
    assert_eq!(ids(&group), ["PKSA-1", "GHSA-2"]);
    let body = String::from_utf8(host.fetches().last().unwrap().body.clone()).unwrap();
    assert_eq!(body, "packages%5B0%5D=acme%2Flib", "a hosted name was sent to the upstream");
    host.answer_upstream("POST", api, 200, &[], br#"{"advisories": []}"#);
    assert_eq!(ids(&mount), ["GHSA-1", "GHSA-2"]);
    // If the upstream sends no usable reply, the audit must fail.
    for (status, body) in [(403, ""), (404, ""), (500, ""), (200, "<html>")] {
        host.answer_upstream("POST", api, status, &[], body.as_bytes());
        mount.post("/security-advisories").body("packages[]=acme/lib").send().expect(502);
    }
    let offline = host.mount::<Composer>(
        "offline",
        "proxy",
        json!({"upstream": "https://upstream.test", "offline": true}),
    );
    assert_eq!(ids(&offline), ["GHSA-1", "GHSA-2"]);
}
