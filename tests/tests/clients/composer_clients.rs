//! Tests with Composer: it packs, installs packages that curl published, and prints refusals. It
//! uses a hosted repository, a group, and a proxy of another Packhouse.

use crate::zip;

use packhouse_tests::client_home::ClientHome;
use packhouse_tests::clients::ProgramOutput;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Api, Request, Server, skip};
use serde_json::{Value, json};
use zip::package;

const COMPOSER: &str = "composer";

/// A home for Composer; `None`, with a printed reason, if it is not installed.
fn home() -> Option<ClientHome> {
    ClientHome::with(COMPOSER).map_err(|reason| skip(COMPOSER, &reason)).ok()
}

fn publish(repository: &FormatRepository, name: &str, version: &str, more: &str) {
    let request = Request::new("PUT", &repository.path(&format!("?version={version}")));
    repository.client.send(request.body(package(name, version, more))).expect(201);
}

/// Writes a project that uses only this repository, with this token.
fn project(home: &ClientHome, repository: &FormatRepository, secret: &str) {
    let config = json!({
        "repositories": [{"type": "composer", "url": repository.url}, {"packagist.org": false}],
        "config": {"secure-http": false}, "minimum-stability": "stable",
    });
    home.write("app/composer.json", config.to_string());
    let host = repository.url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    home.write(
        "auth.json",
        json!({"http-basic": {host: {"username": OWNER, "password": secret}}}).to_string(),
    );
}

fn composer(home: &ClientHome, folder: &str, arguments: &[&str]) -> ProgramOutput {
    let own = home.folder().to_str().unwrap().to_owned();
    let arguments = [arguments, &["--no-interaction", "--no-ansi"]].concat();
    let variables = [
        ("COMPOSER_HOME", own.as_str()),
        ("COMPOSER_ALLOW_SUPERUSER", "1"),
        ("COMPOSER_DISABLE_XDEBUG_WARN", "1"),
    ];
    home.run(folder, COMPOSER, &arguments, &variables)
}

/// The content of an installed package's only file.
fn installed(home: &ClientHome, name: &str) -> String {
    home.read(&format!("app/vendor/{name}/version.php"))
}

fn says(version: &str) -> String {
    format!("<?php return '{version}';\n")
}

#[test]
fn composer_installs_packages_that_curl_publishes() {
    let Some(home) = home() else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    let secret = repository.token.secret.clone();
    for version in ["1.9.0", "1.10.0", "2.0.0-RC1"] {
        home.write(
            &format!("{version}.zip"),
            package("acme/demo", version, r#", "require": {"acme/lib": "^1.0"}"#),
        );
        let user = format!("{OWNER}:{secret}");
        let address = format!("{}/?version={version}", repository.url);
        let file = format!("{version}.zip");
        let arguments = ["--fail-with-body", "-sS", "--user", &user, "--upload-file", &file, &address];
        home.run("", "curl", &arguments, &[]).success();
        home.run("", "curl", &arguments, &[]).refused("already exists; publish a new version");
    }
    publish(&repository, "acme/lib", "1.5", "");
    publish(&repository, "acme/lib", "2.0", "");
    project(&home, &repository, &secret);
    composer(&home, "app", &["require", "acme/demo"]).success();
    assert_eq!((installed(&home, "acme/demo"), installed(&home, "acme/lib")), (says("1.10.0"), says("1.5")));
    let lock: Value = serde_json::from_str(&home.read("app/composer.lock")).unwrap();
    let locked = lock["packages"].as_array().unwrap().iter().find(|one| one["name"] == "acme/demo").unwrap();
    assert_eq!(locked["dist"]["url"], format!("{}/dists/acme/demo/1.10.0.zip", repository.url));
    assert_eq!(
        locked["dist"]["shasum"],
        zip::sha1(&package("acme/demo", "1.10.0", r#", "require": {"acme/lib": "^1.0"}"#))
    );
    composer(&home, "app", &["require", "acme/demo:2.0.0-RC1"]).success();
    assert_eq!(installed(&home, "acme/demo"), says("2.0.0-RC1"));
    let found = composer(&home, "app", &["search", "demo"]).success();
    assert!(found.text.contains("acme/demo"), "{}", found.text);
    let listing = composer(&home, "app", &["show", "--all", "acme/lib"]).success();
    assert!(listing.text.contains("2.0") && listing.text.contains("1.5"), "{}", listing.text);
    // Composer installs again from the lock file, into an empty folder.
    let _ = std::fs::remove_dir_all(home.folder().join("app/vendor"));
    composer(&home, "app", &["clear-cache"]).success();
    composer(&home, "app", &["install"]).success();
    assert_eq!(installed(&home, "acme/demo"), says("2.0.0-RC1"));
    assert!(!server.log().contains(&secret), "a token in the log");
}

#[test]
fn a_refused_composer_user_reads_the_reason() {
    let Some(home) = home() else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    publish(&repository, "acme/demo", "1.0", "");
    project(&home, &repository, "wrong");
    composer(&home, "app", &["require", "acme/demo"]).refused("401");
    let reader = Api::sign_in(&server).create_token(&[&repository.id], &["read"], None);
    project(&home, &repository, &reader.secret);
    composer(&home, "app", &["require", "acme/absent"]).refused("Could not find");
    composer(&home, "app", &["require", "acme/demo"]).success();
    let reading = server.anonymous().basic(OWNER, &reader.secret);
    let put = |zip: Vec<u8>| Request::new("PUT", &repository.path("?version=2.0")).body(zip);
    reading.send(put(package("acme/demo", "2.0", ""))).expect(403);
    repository.client.get(&repository.path("dists/acme/demo/2.0.zip")).expect(404);
    let bad = repository.client.send(put(b"no zip".to_vec())).expect(400);
    assert!(bad.text().contains("This is not a valid Composer package"), "{}", bad.text());
}

#[test]
fn a_deleted_version_is_gone_and_a_deprecated_one_is_abandoned() {
    let Some(home) = home() else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    for version in ["1.0", "1.1"] {
        publish(&repository, "acme/demo", version, "");
    }
    let api = Api::sign_in(&server);
    let version = format!("/v1/repositories/{}/packages/acme%2Fdemo/versions", repository.id);
    let mark = json!({"state": "deprecated", "reason": "use other"});
    api.send("PUT", &format!("{version}/1.0/state"), &mark).expect(200);
    repository.client.send(Request::new("DELETE", &repository.path("packages/acme/demo/1.1"))).expect(204);
    project(&home, &repository, &repository.token.secret);
    let output = composer(&home, "app", &["require", "acme/demo"]).success();
    assert!(output.text.contains("Package acme/demo is abandoned"), "{}", output.text);
    assert_eq!(installed(&home, "acme/demo"), says("1.0"));
    composer(&home, "app", &["require", "acme/demo:1.1"]).refused("could not be resolved");
    api.call("DELETE", &format!("{version}/1.0")).expect(204);
    repository.client.get(&repository.path("p2/acme/demo.json")).expect(404);
}

#[test]
fn composer_installs_through_a_proxy_and_a_group() {
    let Some(first) = home() else { return };
    let far = Server::start();
    let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let origin = FormatRepository::hosted(&far, COMPOSER, "origin", &json!({}));
    publish(&origin, "acme/lib", "1.0", "");
    publish(&origin, "acme/own", "9.0", "");
    let hosted = FormatRepository::hosted(&near, COMPOSER, "hosted", &json!({}));
    publish(&hosted, "acme/own", "1.0", r#", "require": {"acme/lib": "*"}"#);
    let proxy = FormatRepository::proxy_of(&near, COMPOSER, "proxy", &origin, &json!({}));
    let group = FormatRepository::group(&near, COMPOSER, "all", &[&hosted, &proxy]);
    project(&first, &group, &group.token.secret);
    composer(&first, "app", &["require", "acme/own"]).success();
    assert_eq!((installed(&first, "acme/own"), installed(&first, "acme/lib")), (says("1.0"), says("1.0")));
    // Cached packages stay available when the upstream is gone.
    let address = far.packages();
    drop(far);
    let _gone = Upstream::start_at(address);
    let second = home().unwrap();
    project(&second, &proxy, &proxy.token.secret);
    composer(&second, "app", &["require", "acme/lib"]).success();
    assert_eq!(installed(&second, "acme/lib"), says("1.0"));
    let refused =
        proxy.client.send(Request::new("PUT", &proxy.path("?version=1.0")).body(package("x/y", "1.0", "")));
    assert_eq!(refused.status, 405, "{}", refused.text());
}

#[test]
fn composer_and_curl_work_with_the_pasted_settings() {
    let Some(home) = home() else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    home.write("PACKAGE.zip", package("acme/demo", "1.0", ""));
    home.shell(
        "",
        &repository.connection_text(&server, "curl", "publish", None).replace("VERSION", "1.0"),
        &[],
    )
    .success();
    home.write(
        "app/composer.json",
        repository.connection_text(&server, COMPOSER, "read", Some("composer.json")),
    );
    let own = home.folder().to_str().unwrap().to_owned();
    let variables = [("COMPOSER_HOME", own.as_str()), ("COMPOSER_ALLOW_SUPERUSER", "1")];
    let commands = repository.connection_text(&server, COMPOSER, "read", None);
    let lines = format!(
        "{commands}\ncomposer config repositories.packagist.org false\ncomposer require --no-interaction acme/demo"
    );
    home.shell("app", &lines, &variables).success();
    assert_eq!(installed(&home, "acme/demo"), says("1.0"));
}
