//! Composer's format through the server, beyond the plugin's table of requests. Covers the order of
//! versions, the pages, moving branches, audits, and proxies of a test upstream.

use crate::zip;

use packhouse_tests::repository::FormatRepository;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Request, Server};
use serde_json::{Map, Value, json};
use zip::{package, sha1};

const COMPOSER: &str = "composer";

fn publish(repository: &FormatRepository, name: &str, version: &str, more: &str) {
    let request = Request::new("PUT", &repository.path(&format!("?version={version}")));
    repository.client.send(request.body(package(name, version, more))).expect(201);
}

/// Returns the versions of a package, expanded as Composer does.
fn versions(repository: &FormatRepository, name: &str) -> Vec<Map<String, Value>> {
    let document = repository.get(&format!("p2/{name}.json")).expect(200).json();
    let mut whole: Map<String, Value> = Map::new();
    let package = name.trim_end_matches("~dev");
    let written = document["packages"][package].as_array().unwrap().iter();
    let expanded = written.map(|version| {
        for (member, value) in version.as_object().unwrap() {
            if value == "__unset" {
                whole.remove(member);
            } else {
                whole.insert(member.clone(), value.clone());
            }
        }
        whole.clone()
    });
    expanded.collect()
}

fn numbers(repository: &FormatRepository, name: &str) -> Vec<String> {
    let all = versions(repository, name);
    all.iter().map(|one| one["version"].as_str().unwrap().to_owned()).collect()
}

/// Returns a version as the management API describes it.
fn known(api: &Api, repository: &FormatRepository, version: &str) -> Value {
    let path = format!("/v1/repositories/{}/packages/acme%2Fdemo/versions/{version}", repository.id);
    api.call("GET", &path).expect(200).json()
}

#[test]
fn the_newest_version_is_first_and_each_is_whole() {
    let server = Server::start();
    let php = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    publish(
        &php,
        "acme/demo",
        "1.9",
        r#", "require": {"php": ">=7"}, "extra": {"x": 1.0, "y": 12345678901234567890}"#,
    );
    publish(&php, "acme/demo", "1.10", r#", "keywords": ["a", "ä"]"#);
    publish(&php, "acme/demo", "2.0-RC1", "");
    let all = versions(&php, "acme/demo");
    let texts: Vec<&str> = all.iter().map(|one| one["version"].as_str().unwrap()).collect();
    assert_eq!(texts, ["2.0-RC1", "1.10", "1.9"]);
    assert_eq!((all[1].get("keywords"), all[2].get("keywords")), (Some(&json!(["a", "ä"])), None));
    assert_eq!((all[1].get("require"), &all[2]["require"]), (None, &json!({"php": ">=7"})));
    assert_eq!(all[2]["dist"]["url"], format!("{}/dists/acme/demo/1.9.zip", php.url));
    let text = php.get("p2/acme/demo.json").text();
    assert!(
        text.contains(r#""extra":{"x":1.0,"y":12345678901234567890}"#),
        "numbers stay as they are: {text}"
    );
}

#[test]
fn published_versions_are_listed_and_a_deleted_version_number_is_not_reusable() {
    let server = Server::start();
    let php = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    let more = r#", "require": {"php": ">=7"}, "require-dev": {"a/b": "*"}, "keywords": ["x", "y"]"#;
    publish(&php, "acme/demo", "v1.0", more);
    let api = Api::sign_in(&server);
    let details = known(&api, &php, "v1.0");
    assert_eq!(
        (&details["summary"], &details["state"]),
        (&json!("About acme/demo"), &json!("")),
        "{details}"
    );
    assert_eq!(details["files"][0]["path"], "dists/acme/demo/v1.0.zip", "{details}");
    assert!(details.to_string().contains(r#""x y""#), "keywords among the properties: {details}");
    let dependencies = json!([
        {"name": "php", "requirement": ">=7", "group": ""}, {"name": "a/b", "requirement": "*", "group": "dev"}
    ]);
    assert_eq!(details["dependencies"], dependencies);
    let version = format!("/v1/repositories/{}/packages/acme%2Fdemo/versions/v1.0", php.id);
    let mark = |state: &str, reason: &str| {
        api.send("PUT", &format!("{version}/state"), &json!({"state": state, "reason": reason}))
    };
    mark("deprecated", "use other").expect(200);
    assert_eq!(versions(&php, "acme/demo")[0]["abandoned"], true);
    assert_eq!(known(&api, &php, "v1.0")["state"], "deprecated");
    mark("", "").expect(200);
    assert!(!versions(&php, "acme/demo")[0].contains_key("abandoned"));
    assert_eq!(mark("yanked", "").status, 405);
    api.call("DELETE", &version).expect(204);
    php.get("p2/acme/demo.json").expect(404);
    let again = php.put("?version=1.0.0", package("acme/demo", "1.0", "")).expect(409);
    assert!(
        again.text().contains("was deleted here, and its number cannot be used again"),
        "{}",
        again.text()
    );
}

/// Starts a server that may connect to upstreams on this machine.
fn near() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

fn proxy(server: &Server, upstream: &Upstream) -> FormatRepository {
    let root = json!({"packages": [], "metadata-url": "/p2/%package%.json"}).to_string();
    upstream.on("/packages.json", Answer::ok(root));
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0, "keep_withdrawn": true});
    FormatRepository::proxy(server, COMPOSER, "proxy", &upstream.url(), &settings)
}

/// Makes the upstream offer a package with these versions.
fn lay(upstream: &Upstream, name: &str, versions: &[&str]) {
    let listed: Vec<Value> = versions
        .iter()
        .map(|version| {
            let (zip, path) = (package(name, version, ""), format!("/files/{name}-{version}"));
            let url = format!("{}{path}", upstream.url());
            let dist = json!({"type": "zip", "url": url, "shasum": sha1(&zip), "reference": "r"});
            upstream.on(&path, Answer::ok(zip));
            json!({"name": name, "version": version, "time": "2026-01-02T03:04:05+00:00", "dist": dist})
        })
        .collect();
    upstream.on(&format!("/p2/{name}.json"), Answer::ok(json!({"packages": {name: listed}}).to_string()));
}

#[test]
fn addresses_are_rewritten_to_the_proxy() {
    let (server, upstream) = (near(), Upstream::start());
    let proxy = proxy(&server, &upstream);
    lay(&upstream, "acme/lib", &["1.9", "1.10"]);
    assert_eq!(numbers(&proxy, "acme/lib"), ["1.10", "1.9"]);
    let text = proxy.get("p2/acme/lib.json").text();
    assert!(text.contains(&format!("{}/dists/acme/lib/1.9.zip", proxy.url)), "{text}");
    assert!(!text.contains(&upstream.url()), "{text}");
    assert_eq!(proxy.get("dists/acme/lib/1.9.zip").expect(200).body, package("acme/lib", "1.9", ""));
    proxy.get("dists/acme/lib/3.0.zip").expect(404);
    proxy.get("p2/acme/lib~dev.json").expect(404);
    proxy.get("p2/acme/absent.json").expect(404);
    // The proxy never serves bytes whose digest differs from the metadata.
    upstream.on("/files/acme/lib-1.10", Answer::ok("other"));
    let answer = proxy.get("dists/acme/lib/1.10.zip");
    assert!(answer.status >= 500, "{}", answer.status);
}

#[test]
fn a_fetched_version_that_the_upstream_drops_is_withdrawn() {
    let (server, upstream) = (near(), Upstream::start());
    let proxy = proxy(&server, &upstream);
    let api = Api::sign_in(&server);
    lay(&upstream, "acme/demo", &["1.0", "1.1"]);
    proxy.get("dists/acme/demo/1.0.zip").expect(200);
    lay(&upstream, "acme/demo", &["1.1"]);
    assert_eq!(numbers(&proxy, "acme/demo")[0], "1.1");
    assert_eq!(known(&api, &proxy, "1.0")["state"], "withdrawn");
    lay(&upstream, "acme/demo", &["1.0", "1.1"]);
    assert_eq!(numbers(&proxy, "acme/demo"), ["1.1", "1.0"]);
    assert_eq!(known(&api, &proxy, "1.0")["state"], "");
}

#[test]
fn an_unreadable_upstream_document_is_an_upstream_failure() {
    let (server, upstream) = (near(), Upstream::start());
    let proxy = proxy(&server, &upstream);
    let deep = format!(r#"{{"packages": {{"acme/lib": {}{}}}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    for body in ["<html>", "", "{}", r#"{"packages": {"acme/lib": 7}}"#, &deep] {
        upstream.on("/p2/acme/lib.json", Answer::ok(body));
        proxy.get("p2/acme/lib.json").expect(502);
    }
    upstream.on("/packages.json", Answer::ok("[]"));
    proxy.get("p2/acme/lib.json").expect(502);
    // A small upstream may list all its packages in one document.
    let version = json!({"name": "acme/one", "version": "1.0", "dist": {"type": "zip", "url": "one.zip"}});
    let root = json!({"packages": {"acme/one": {"1.0": version}}}).to_string();
    upstream.on("/packages.json", Answer::ok(root));
    assert_eq!(numbers(&proxy, "acme/one"), ["1.0"]);
    proxy.get("p2/acme/two.json").expect(404);
}

#[test]
fn in_a_group_hosted_names_hide_those_of_upstreams() {
    let (server, upstream) = (near(), Upstream::start());
    let proxy = proxy(&server, &upstream);
    lay(&upstream, "acme/own", &["9.0"]);
    lay(&upstream, "acme/lib", &["1.0"]);
    let hosted = [("one", "1.0"), ("two", "2.0")].map(|(name, version)| {
        let repository = FormatRepository::hosted(&server, COMPOSER, name, &json!({}));
        publish(&repository, "acme/own", version, "");
        repository
    });
    let group = FormatRepository::group(&server, COMPOSER, "all", &[&hosted[0], &hosted[1], &proxy]);
    assert_eq!(numbers(&group, "acme/own"), ["2.0", "1.0"]);
    assert_eq!(numbers(&group, "acme/lib"), ["1.0"]);
    group.get("dists/acme/own/2.0.zip").expect(200);
    group.get("dists/acme/own/9.0.zip").expect(404);
    group.get("dists/acme/lib/1.0.zip").expect(200);
    let root = group.get("packages.json").expect(200).json();
    assert!(root.get("available-packages").is_none(), "the upstream may have more packages: {root}");
}

#[test]
fn a_branch_moves_and_a_numbered_version_does_not() {
    let server = Server::start();
    let php = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    let (first, second) = (package("acme/demo", "first", ""), package("acme/demo", "second", ""));
    for version in ["dev-main", "dev-feature/a", "1.x-dev"] {
        php.put(&format!("?version={version}"), first.clone()).expect(201);
        php.put(&format!("?version={version}"), second.clone()).expect(201);
        assert_eq!(php.get(&format!("dists/acme/demo/{version}.zip")).expect(200).body, second, "{version}");
    }
    let listed = versions(&php, "acme/demo~dev");
    assert_eq!(listed.len(), 3);
    for one in &listed {
        let url = one["dist"]["url"].as_str().unwrap();
        assert!(url.ends_with(&format!(".zip?reference={}", sha1(&second))), "{url}");
        let path = url.strip_prefix(&format!("{}/", php.url)).unwrap();
        assert_eq!(php.get(path).expect(200).body, second);
        php.get(&path.replace(&sha1(&second), &sha1(&first))).expect(404);
    }
    php.put("?version=1.0", first).expect(201);
    php.put("?version=1.0", second).expect(409);
    let api = Api::sign_in(&server);
    let version = format!("/v1/repositories/{}/packages/acme%2Fdemo/versions/dev-feature%2Fa", php.id);
    assert_eq!(
        api.call("GET", &version).expect(200).json()["files"][0]["path"],
        "dists/acme/demo/dev-feature/a.zip"
    );
    api.call("DELETE", &version).expect(204);
    php.get("dists/acme/demo/dev-feature/a.zip").expect(404);
}

#[test]
fn branches_dates_and_other_kinds_of_files_come_through_a_proxy() {
    let (server, upstream) = (near(), Upstream::start());
    let proxy = proxy(&server, &upstream);
    lay(&upstream, "acme/lib", &["2010-01-02", "1.x-dev", "dev-main"]);
    assert_eq!(numbers(&proxy, "acme/lib"), ["2010-01-02"]);
    proxy.get("dists/acme/lib/2010-01-02.zip").expect(200);
    let dist = |kind: &str, url: &str| json!({"type": kind, "url": url, "reference": "r"});
    let one = |version: &str, dist: Value| json!({"name": "acme/lib", "version": version, "dist": dist});
    upstream.on("/a.gz", Answer::ok("gzip"));
    upstream.on("/b.zip", Answer::ok(package("acme/lib", "b", "")));
    let all = json!([
        one("11.x-dev", dist("gzip", "/a.gz")),
        one("dev-feature/b", dist("zip", "/b.zip")),
        one("dev-here", json!({"type": "path", "url": "../here"})),
    ]);
    upstream.on("/p2/acme/lib~dev.json", Answer::ok(json!({"packages": {"acme/lib": all}}).to_string()));
    let listed = versions(&proxy, "acme/lib~dev");
    let texts: Vec<&str> = listed.iter().map(|one| one["version"].as_str().unwrap()).collect();
    assert_eq!(texts, ["11.x-dev", "dev-here", "dev-feature/b"]);
    assert_eq!(listed[1]["dist"], json!({"type": "path", "url": "../here"}));
    assert_eq!(proxy.get("dists/acme/lib/11.x-dev.gzip?reference=r").expect(200).body, b"gzip");
    proxy.get("dists/acme/lib/dev-feature/b.zip?reference=r").expect(200);
    proxy.get("dists/acme/lib/dev-feature/b.zip?reference=other").expect(404);
}

#[test]
fn a_package_that_the_upstream_refuses_is_not_found() {
    let (server, upstream) = (near(), Upstream::start());
    let proxy = proxy(&server, &upstream);
    for status in [401, 402, 403, 405, 409, 451] {
        lay(&upstream, "acme/lib", &["1.0"]);
        upstream.on("/files/acme/lib-1.0", Answer::new(status, "no"));
        upstream.on("/p2/acme/other.json", Answer::new(status, "no"));
        proxy.get("dists/acme/lib/1.0.zip").expect(404);
        proxy.get("p2/acme/other.json").expect(404);
    }
    for status in [500, 503] {
        upstream.on("/p2/acme/other.json", Answer::new(status, "no"));
        proxy.get("p2/acme/other.json").expect(502);
    }
}

#[test]
fn a_rate_limit_of_the_archive_host_does_not_pause_the_upstream() {
    let (server, upstream, archives) = (near(), Upstream::start(), Upstream::start());
    let proxy = proxy(&server, &upstream);
    let url = format!("{}/lib.zip", archives.url());
    let version = json!({"name": "acme/lib", "version": "1.0", "dist": {"type": "zip", "url": url}});
    let document = json!({"packages": {"acme/lib": [version]}}).to_string();
    upstream.on("/p2/acme/lib.json", Answer::ok(document));
    archives.on("/lib.zip", Answer::new(429, "later").header("Retry-After", "86400"));
    proxy.get("dists/acme/lib/1.0.zip").expect(429);
    lay(&upstream, "acme/demo", &["1.0"]);
    assert_eq!(numbers(&proxy, "acme/demo"), ["1.0"]);
    proxy.get("dists/acme/demo/1.0.zip").expect(200);
}

#[test]
fn in_a_group_an_unreadable_member_is_left_out() {
    let (server, odd, sound) = (near(), Upstream::start(), Upstream::start());
    let first = proxy(&server, &odd);
    let root = json!({"packages": [], "metadata-url": "/p2/%package%.json"}).to_string();
    sound.on("/packages.json", Answer::ok(root));
    lay(&sound, "acme/lib", &["1.0"]);
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let second = FormatRepository::proxy(&server, COMPOSER, "second", &sound.url(), &settings);
    let group = FormatRepository::group(&server, COMPOSER, "all", &[&first, &second]);
    for body in ["<html>", r#"{"packages": 7}"#, "\u{feff}"] {
        odd.on("/p2/acme/lib.json", Answer::ok(body));
        assert_eq!(numbers(&group, "acme/lib"), ["1.0"], "{body}");
        group.get("dists/acme/lib/1.0.zip").expect(200);
    }
    odd.on("/packages.json", Answer::new(500, "no"));
    assert_eq!(numbers(&group, "acme/lib"), ["1.0"]);
    // Only the failing member could have this package, so the group reports the failure.
    odd.on("/p2/acme/absent.json", Answer::new(500, "no"));
    group.get("p2/acme/absent.json").expect(502);
}
