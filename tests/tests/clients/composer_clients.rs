//! Composer itself: it packs, installs what curl publishes, and is refused in words; from a hosted repository, through a group, and
//! through a proxy of another Packhouse.

use crate::zip;

use packhouse_tests::client_home::ClientHome;
use packhouse_tests::clients::Said;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Api, Request, Server, skip};
use serde_json::{Value, json};
use zip::package;

const COMPOSER: &str = "composer";

/// A home for Composer; none, and said so, where it is not here.
fn home() -> Option<ClientHome> {
    ClientHome::with(COMPOSER).map_err(|reason| skip(COMPOSER, &reason)).ok()
}

fn publish(repository: &FormatRepository, name: &str, version: &str, more: &str) {
    let request = Request::new("PUT", &repository.path(&format!("?version={version}")));
    repository.client.send(request.body(package(name, version, more))).expect(201);
}

/// Writes a project that looks into this repository alone, with this token.
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

fn composer(home: &ClientHome, folder: &str, arguments: &[&str]) -> Said {
    let own = home.folder().to_str().unwrap().to_owned();
    let arguments = [arguments, &["--no-interaction", "--no-ansi"]].concat();
    let variables = [
        ("COMPOSER_HOME", own.as_str()),
        ("COMPOSER_ALLOW_SUPERUSER", "1"),
        ("COMPOSER_DISABLE_XDEBUG_WARN", "1"),
    ];
    home.run(folder, COMPOSER, &arguments, &variables)
}

/// What an installed package's only file says.
fn installed(home: &ClientHome, name: &str) -> String {
    home.read(&format!("app/vendor/{name}/version.php"))
}

fn says(version: &str) -> String {
    format!("<?php return '{version}';\n")
}

#[test]
fn composer_installs_what_curl_publishes() {
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
        home.run("", "curl", &arguments, &[]).well();
        home.run("", "curl", &arguments, &[]).refused("is there already; publish a new version");
    }
    publish(&repository, "acme/lib", "1.5", "");
    publish(&repository, "acme/lib", "2.0", "");
    project(&home, &repository, &secret);
    composer(&home, "app", &["require", "acme/demo"]).well();
    assert_eq!((installed(&home, "acme/demo"), installed(&home, "acme/lib")), (says("1.10.0"), says("1.5")));
    let lock: Value = serde_json::from_str(&home.read("app/composer.lock")).unwrap();
    let locked = lock["packages"].as_array().unwrap().iter().find(|one| one["name"] == "acme/demo").unwrap();
    assert_eq!(locked["dist"]["url"], format!("{}/dists/acme/demo/1.10.0.zip", repository.url));
    assert_eq!(
        locked["dist"]["shasum"],
        zip::sha1(&package("acme/demo", "1.10.0", r#", "require": {"acme/lib": "^1.0"}"#))
    );
    composer(&home, "app", &["require", "acme/demo:2.0.0-RC1"]).well();
    assert_eq!(installed(&home, "acme/demo"), says("2.0.0-RC1"));
    let found = composer(&home, "app", &["search", "demo"]).well();
    assert!(found.text.contains("acme/demo"), "{}", found.text);
    let shown = composer(&home, "app", &["show", "--all", "acme/lib"]).well();
    assert!(shown.text.contains("2.0") && shown.text.contains("1.5"), "{}", shown.text);
    // Again, from the lock file, in an empty folder.
    let _ = std::fs::remove_dir_all(home.folder().join("app/vendor"));
    composer(&home, "app", &["clear-cache"]).well();
    composer(&home, "app", &["install"]).well();
    assert_eq!(installed(&home, "acme/demo"), says("2.0.0-RC1"));
    assert!(!server.log().contains(&secret), "a token in the log");
}

#[test]
fn who_is_refused_is_told_why() {
    let Some(home) = home() else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    publish(&repository, "acme/demo", "1.0", "");
    project(&home, &repository, "wrong");
    composer(&home, "app", &["require", "acme/demo"]).refused("401");
    let reader = Api::sign_in(&server).create_token(&[&repository.id], &["read"], None);
    project(&home, &repository, &reader.secret);
    composer(&home, "app", &["require", "acme/absent"]).refused("Could not find");
    composer(&home, "app", &["require", "acme/demo"]).well();
    let reading = server.anonymous().basic(OWNER, &reader.secret);
    let put = |zip: Vec<u8>| Request::new("PUT", &repository.path("?version=2.0")).body(zip);
    reading.send(put(package("acme/demo", "2.0", ""))).expect(403);
    repository.client.get(&repository.path("dists/acme/demo/2.0.zip")).expect(404);
    let bad = repository.client.send(put(b"no zip".to_vec())).expect(400);
    assert!(bad.text().contains("This is no zip of a Composer package"), "{}", bad.text());
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
    let said = composer(&home, "app", &["require", "acme/demo"]).well();
    assert!(said.text.contains("Package acme/demo is abandoned"), "{}", said.text);
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
    composer(&first, "app", &["require", "acme/own"]).well();
    assert_eq!((installed(&first, "acme/own"), installed(&first, "acme/lib")), (says("1.0"), says("1.0")));
    // What is kept serves on when the upstream is gone.
    let address = far.packages();
    drop(far);
    let _gone = Upstream::start_at(address);
    let second = home().unwrap();
    project(&second, &proxy, &proxy.token.secret);
    composer(&second, "app", &["require", "acme/lib"]).well();
    assert_eq!(installed(&second, "acme/lib"), says("1.0"));
    let refused =
        proxy.client.send(Request::new("PUT", &proxy.path("?version=1.0")).body(package("x/y", "1.0", "")));
    assert_eq!(refused.status, 405, "{}", refused.text());
}

#[test]
fn composer_and_curl_work_with_what_is_pasted() {
    let Some(home) = home() else { return };
    let server = Server::start();
    let repository = FormatRepository::hosted(&server, COMPOSER, "php", &json!({}));
    home.write("PACKAGE.zip", package("acme/demo", "1.0", ""));
    home.shell(
        "",
        &repository.connection_text(&server, "curl", "publish", None).replace("VERSION", "1.0"),
        &[],
    )
    .well();
    home.write(
        "app/composer.json",
        repository.connection_text(&server, COMPOSER, "read", Some("composer.json")),
    );
    let own = home.folder().to_str().unwrap().to_owned();
    let variables = [("COMPOSER_HOME", own.as_str()), ("COMPOSER_ALLOW_SUPERUSER", "1")];
    let told = repository.connection_text(&server, COMPOSER, "read", None);
    let lines = format!(
        "{told}\ncomposer config repositories.packagist.org false\ncomposer require --no-interaction acme/demo"
    );
    home.shell("app", &lines, &variables).well();
    assert_eq!(installed(&home, "acme/demo"), says("1.0"));
}
