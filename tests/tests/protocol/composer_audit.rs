//! `composer audit`. The server returns imported advisories together with those of an upstream. The
//! tests send requests and run Composer itself.

use crate::zip;

use packhouse_tests::cli::packhouse;
use packhouse_tests::client_home::ClientHome;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Request, Server, skip};
use serde_json::{Value, json};
use tempfile::TempDir;
use zip::package;

const COMPOSER: &str = "composer";

fn near() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

fn publish(repository: &FormatRepository, name: &str, version: &str) {
    repository.put(&format!("?version={version}"), package(name, version, "")).expect(201);
}

/// Imports an advisory about versions of a package below 1.5.
fn import(server: &Server, id: &str, name: &str) {
    let record = json!({
        "schema_version": "1.6.0", "id": id, "modified": "2026-02-01T00:00:00Z", "published": "2026-01-01T00:00:00Z",
        "summary": "It leaks everything", "aliases": [], "database_specific": {"severity": "MODERATE"},
        "affected": [{
            "package": {"ecosystem": "Packagist", "name": name},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.5"}]}],
        }],
        "references": [{"type": "ADVISORY", "url": format!("https://advisories.example/{id}")}],
    });
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join(format!("{id}.json")), record.to_string()).unwrap();
    packhouse(server.data(), &["advisories", "import", folder.path().to_str().unwrap()], "").success();
}

/// Requests the advisories about these packages as Composer does.
fn request_advisories(repository: &FormatRepository, names: &[&str]) -> packhouse_tests::Response {
    let fields =
        names.iter().enumerate().map(|(at, name)| format!("packages%5B{at}%5D={}", name.replace('/', "%2F")));
    let body = fields.collect::<Vec<_>>().join("&");
    let request = Request::new("POST", &repository.path("security-advisories"))
        .header("Content-Type", "application/x-www-form-urlencoded");
    repository.client.send(request.body(body))
}

fn ids(repository: &FormatRepository, name: &str) -> Vec<String> {
    let found: Value = request_advisories(repository, &[name]).expect(200).json();
    let advisories = found["advisories"][name].as_array().into_iter().flatten();
    advisories.map(|one| one["advisoryId"].as_str().unwrap().to_owned()).collect()
}

fn followed(repository: &FormatRepository, name: &str, expected: &[&str]) {
    eventually("the server follows", || (ids(repository, name) == expected).then_some(()));
}

#[test]
fn imported_advisories_are_returned_for_hosted_packages() {
    let server = Server::start();
    let php = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    publish(&php, "acme/leaky", "1.0");
    assert_eq!(request_advisories(&php, &["acme/leaky"]).expect(200).text(), r#"{"advisories":{}}"#);
    import(&server, "GHSA-leak-leak-leak", "acme/leaky");
    followed(&php, "acme/leaky", &["GHSA-leak-leak-leak"]);
    let one =
        request_advisories(&php, &["acme/leaky", "acme/sound"]).expect(200).json()["advisories"]["acme/leaky"][0].clone();
    assert_eq!((&one["affectedVersions"], &one["severity"]), (&json!("<1.5"), &json!("medium")), "{one}");
    assert_eq!(
        (&one["title"], &one["reportedAt"]),
        (&json!("It leaks everything"), &json!("2026-01-01T00:00:00.000Z"))
    );
    request_advisories(&php, &[]).expect(400);
    let group = FormatRepository::group(&server, COMPOSER, "all", &[&php]);
    followed(&group, "acme/leaky", &["GHSA-leak-leak-leak"]);
}

#[test]
fn an_audit_merges_upstream_and_imported_advisories() {
    let (server, upstream) = (near(), Upstream::start());
    let advisory = |id: &str, of: &str| {
        json!({
            "advisoryId": id, "packageName": "acme/lib", "affectedVersions": "<2", "title": "Bad",
            "reportedAt": "2026-01-01 00:00:00", "sources": [{"name": "GitHub", "remoteId": of}],
        })
    };
    let root =
        json!({"packages": [], "security-advisories": {"metadata": true, "api-url": "/api/advisories"}});
    upstream.on("/packages.json", Answer::ok(root.to_string()));
    let all = json!({"acme/lib": [advisory("PKSA-1", "GHSA-same-same-same"), advisory("PKSA-2", "GHSA-2")]});
    upstream.on("/api/advisories", Answer::ok(json!({"advisories": all}).to_string()));
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let proxy = FormatRepository::proxy(&server, COMPOSER, "proxy", &upstream.url(), &settings);
    assert_eq!(ids(&proxy, "acme/lib"), ["PKSA-1", "PKSA-2"]);
    import(&server, "GHSA-same-same-same", "acme/lib");
    import(&server, "GHSA-ours-ours-ours", "acme/lib");
    followed(&proxy, "acme/lib", &["PKSA-1", "PKSA-2", "GHSA-ours-ours-ours"]);
    // The group sends no name of a hosted package to an upstream.
    let hosted = FormatRepository::hosted(&server, COMPOSER, "own", &json!({}));
    publish(&hosted, "acme/own", "1.0");
    let group = FormatRepository::group(&server, COMPOSER, "all", &[&hosted, &proxy]);
    request_advisories(&group, &["acme/own", "acme/lib"]).expect(200);
    let request = upstream.requests().into_iter().rfind(|request| request.method == "POST").unwrap();
    assert_eq!(String::from_utf8_lossy(&request.body), "packages%5B0%5D=acme%2Flib");
    // If the upstream fails, the audit must fail too, because a partial result would look safe.
    for answer in
        [Answer::new(403, "no"), Answer::new(404, "no"), Answer::new(500, "no"), Answer::ok("<html>")]
    {
        upstream.on("/api/advisories", answer);
        request_advisories(&group, &["acme/lib"]).expect(502);
    }
}

#[test]
fn composer_audit_finds_advisories() {
    let home = match ClientHome::with(COMPOSER) {
        Ok(home) => home,
        Err(reason) => return skip(COMPOSER, &reason),
    };
    let server = Server::start();
    let php = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    publish(&php, "acme/leaky", "1.0");
    publish(&php, "acme/leaky", "1.5");
    import(&server, "GHSA-leak-leak-leak", "acme/leaky");
    followed(&php, "acme/leaky", &["GHSA-leak-leak-leak"]);
    let config = json!({
        "repositories": [{"type": "composer", "url": php.url}, {"packagist.org": false}],
        "config": {"secure-http": false, "audit": {"block-insecure": false}},
    });
    home.write("app/composer.json", config.to_string());
    let host = php.url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    let credential = json!({"http-basic": {host: {"username": OWNER, "password": php.token.secret}}});
    home.write("auth.json", credential.to_string());
    let own = home.folder().to_str().unwrap().to_owned();
    let variables = [("COMPOSER_HOME", own.as_str()), ("COMPOSER_ALLOW_SUPERUSER", "1")];
    let run = |arguments: &[&str]| {
        home.run("app", COMPOSER, &[arguments, &["--no-interaction", "--no-ansi"]].concat(), &variables)
    };
    for (version, found) in [("1.0", true), ("1.5", false)] {
        run(&["require", "--no-audit", &format!("acme/leaky:{version}")]).success();
        let output = run(&["audit"]);
        let leaks = output.text.contains("It leaks everything");
        assert_eq!((output.success, leaks), (!found, found), "{version}: {}", output.text);
    }
}
