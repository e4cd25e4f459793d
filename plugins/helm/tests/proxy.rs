//! Tests of proxies with an upstream in memory, and of groups of hosted repositories and proxies.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::chart;

use chart::{chart, provenance, sha256};
use packhouse_helm::Helm;
use packhouse_testkit::{MemoryHost, Mount};
use serde_json::{Value, json};

fn proxy(host: &MemoryHost, settings: Value) -> Mount<Helm> {
    host.set_now(1_795_237_300_000);
    let mut all = json!({"upstream": "https://upstream.test"});
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    host.mount::<Helm>("proxy", "proxy", all)
}

/// Sets the upstream's index. It lists these versions of `demo`, with digests and with files on
/// another host, and version 9.0.0 of `own`.
fn serve_index(host: &MemoryHost, versions: &[&str]) {
    let mut index = String::from("apiVersion: v1\ngenerated: x\nentries:\n  demo:\n");
    for version in versions {
        let file = chart("demo", version, "");
        let address = format!("https://files.test/x/demo-{version}.tgz");
        index += &format!(
            "  - apiVersion: v2\n    name: demo\n    version: {version}\n    created: \"2026-01-02T03:04:05Z\"\n    digest: {}\n    urls:\n    - {address}\n",
            sha256(&file)
        );
        host.answer_upstream("GET", &address, 200, &[], &file);
        let signature = provenance(&format!("demo-{version}.tgz"), &file);
        host.answer_upstream("GET", &format!("{address}.prov"), 200, &[], signature.as_bytes());
    }
    index += "  own:\n  - name: own\n    version: 9.0.0\n    urls: [own-9.0.0.tgz]\n";
    host.answer_upstream("GET", "index.yaml", 200, &[("content-type", "text/plain")], index.as_bytes());
}

fn versions(mount: &Mount<Helm>, name: &str) -> Vec<String> {
    let text = mount.get("/index.yaml").send().expect(200).text();
    let index: Value = serde_saphyr::from_str(&text).unwrap();
    let versions = index["entries"][name].as_array().cloned().unwrap_or_default();
    versions.iter().map(|one| one["version"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn addresses_are_replaced_by_those_of_the_proxy() {
    let host = MemoryHost::new();
    let mount = proxy(&host, json!({}));
    serve_index(&host, &["1.9.0", "1.10.0"]);
    assert_eq!(versions(&mount, "demo"), ["1.10.0", "1.9.0"]);
    let text = mount.get("/index.yaml").send().text();
    assert!(text.contains("- \"charts/demo-1.9.0.tgz\"\n") && !text.contains("files.test"), "{text}");
    mount.get("/charts/demo-1.9.0.tgz").send().expect(200);
    assert_eq!(mount.get("/demo-1.10.0.tgz").send().expect(200).body, chart("demo", "1.10.0", ""));
    mount.get("/charts/demo-1.9.0.tgz.prov").send().expect(200);
    mount.get("/charts/demo-3.0.0.tgz").send().expect(404);
    mount.get("/api/charts/demo/1.9.0").send().expect(200);
    let listed = host.versions("proxy");
    assert_eq!((listed.len(), listed[0].published), (2, Some(1_767_323_045_000)));
}

#[test]
fn bytes_with_another_digest_than_in_the_index_are_not_served() {
    let host = MemoryHost::new();
    let mount = proxy(&host, json!({}));
    serve_index(&host, &["1.0.0"]);
    host.answer_upstream("GET", "https://files.test/x/demo-1.0.0.tgz", 200, &[], b"other");
    let answer = mount.get("/charts/demo-1.0.0.tgz").send();
    assert!(answer.status >= 500, "{}", answer.status);
}

#[test]
fn a_fetched_version_that_the_upstream_drops_is_withdrawn() {
    let host = MemoryHost::new();
    let mount = proxy(&host, json!({"keep_withdrawn": true}));
    serve_index(&host, &["1.0.0", "1.1.0"]);
    mount.get("/charts/demo-1.0.0.tgz").send().expect(200);
    serve_index(&host, &["1.1.0"]);
    assert_eq!(versions(&mount, "demo")[0], "1.1.0");
    assert_eq!(host.versions("proxy")[0].state, "withdrawn");
    serve_index(&host, &["1.0.0", "1.1.0"]);
    assert_eq!(versions(&mount, "demo"), ["1.1.0", "1.0.0"]);
    assert_eq!(host.versions("proxy")[0].state, "");
}

#[test]
fn versions_that_are_left_out_are_logged_in_one_line() {
    let host = MemoryHost::new();
    let mount = proxy(&host, json!({}));
    let odd = |name: &str| format!("  {name}:\n  - name: {name}\n    version: latest\n    urls: [x.tgz]\n");
    let good = "  c:\n  - name: c\n    version: 1.0.0\n    urls: [c-1.0.0.tgz]\n";
    for (charts, package, count) in
        [(vec![odd("a")], "a", "1"), (vec![odd("a"), odd("b")], "", "2"), (vec![], "", "")]
    {
        let index = format!("apiVersion: v1\nentries:\n{}{good}", charts.concat());
        host.answer_upstream("GET", "index.yaml", 200, &[], index.as_bytes());
        let before = host.log().len();
        assert_eq!(versions(&mount, "c"), ["1.0.0"]);
        let logged: Vec<_> = host.log().into_iter().skip(before).map(|line| line.fields).collect();
        let fields = [("package", package), ("versions", count)];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        assert_eq!(logged, if charts.is_empty() { vec![] } else { vec![fields] });
    }
}

#[test]
fn an_unreadable_index_of_an_upstream_is_a_502() {
    let host = MemoryHost::new();
    let mount = proxy(&host, json!({}));
    for body in ["<html>", "", "apiVersion: v3\nentries: {}"] {
        host.answer_upstream("GET", "index.yaml", 200, &[], body.as_bytes());
        mount.get("/index.yaml").send().expect(502);
    }
    // If the upstream has no index or refuses to send it, the proxy answers 404, as for any other
    // file.
    for status in [404, 403] {
        host.answer_upstream("GET", "index.yaml", status, &[], b"");
        for path in ["/index.yaml", "/api/charts", "/charts/demo-1.0.0.tgz"] {
            mount.get(path).send().expect(404);
        }
    }
}

#[test]
fn a_group_takes_hosted_names_only_from_hosted_members() {
    let host = MemoryHost::new();
    proxy(&host, json!({}));
    serve_index(&host, &["1.0.0"]);
    let own = host.mount::<Helm>("own", "hosted", json!({}));
    own.post("/api/charts").body(chart("own", "1.0.0", "")).send().expect(201);
    let second = host.mount::<Helm>("second", "hosted", json!({}));
    second.post("/api/charts").body(chart("own", "1.0.0", "home: second\n")).send().expect(201);
    second.post("/api/charts").body(chart("own", "2.0.0", "")).send().expect(201);
    let group = host.mount::<Helm>("all", "group", json!({})).members(&["own", "second", "proxy"]);
    assert_eq!(versions(&group, "own"), ["2.0.0", "1.0.0"], "the 9.0.0 of the upstream must not be listed");
    assert_eq!(versions(&group, "demo"), ["1.0.0"]);
    assert_eq!(group.get("/charts/own-1.0.0.tgz").send().expect(200).body, chart("own", "1.0.0", ""));
    group.get("/charts/own-2.0.0.tgz").send().expect(200);
    group.get("/charts/own-9.0.0.tgz").send().expect(404);
    group.get("/charts/demo-1.0.0.tgz").send().expect(200);
}
