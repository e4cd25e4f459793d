//! The portal in a real browser, with scripts disabled and enabled. The tests perform the first
//! visit up to a working client, and each action.

use crate::wheel;

use packhouse_tests::chromium::Chromium;
use packhouse_tests::portal::{at, both, confirm, no_complaints, secret, sign_in};
use packhouse_tests::python::Home;
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::{Api, Server, clients, skip};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

fn status(server: &Server, secret: &str) -> u16 {
    server.anonymous().basic(OWNER, secret).get("/repositories/py/simple/none/").status
}

/// Returns the number of rows with a revoke button on the current page; -1 while the page loads.
fn revocable(browser: &Chromium) -> i64 {
    let script = "return document.readyState !== 'complete' ? -1 : [...document.querySelectorAll('button, summary')] \
        .filter(button => button.textContent.trim().startsWith('Revoke')).length";
    browser.run(script, &json!([])).as_i64().unwrap_or(-1)
}

fn tokens(api: &Api) -> Vec<Value> {
    api.call("GET", "/v1/tokens").expect(200).json()["items"].as_array().unwrap().clone()
}

/// Sets up a new server until a client works. The test does exactly what the pages say.
#[test]
fn a_first_visit_ends_in_a_working_client() {
    both(|browser, scripts| {
        let server = Server::start();
        browser.open(&at(&server, "/"));
        browser.comes_to("Sign in - Packhouse");
        browser.fill("E-mail", OWNER);
        browser.fill("Password", PASSWORD);
        browser.press("Sign in");
        browser.comes_to("Home - Packhouse");
        browser.follow("Repositories");
        browser.comes_to("Repositories - Packhouse");
        browser.follow("Create the first repository");
        browser.comes_to("New repository - Packhouse");
        browser.fill("Name", "py");
        browser.choose("Format", "python");
        browser.choose("Kind", "hosted");
        browser.press("Create repository");
        browser.comes_to("py - Packhouse");
        let address = browser.text("#address");
        assert_eq!(address, format!("{}/repositories/py/", server.base_url()));
        let settings = pip_settings(browser);
        browser.follow("Create a token for this repository");
        browser.comes_to("Repository Tokens - Packhouse");
        browser.fill("Name", "my laptop");
        browser.tick("Write");
        browser.press("Create token");
        browser.comes_to("Confirm the new token - Packhouse");
        confirm(browser);
        browser.comes_to("Token created - Packhouse");
        let secret = secret(browser);
        if scripts {
            browser.press("Copy");
            eventually("the text was copied", || browser.text("[data-said]").eq("Copied").then_some(()));
        }
        assert_eq!(status(&server, &secret), 404, "the token can read");
        if clients::has("pip") {
            use_pip(&settings, &secret);
        }
        browser.follow("Connection Settings of py");
        browser.comes_to("py - Packhouse");
        if let Ok(home) = Home::with("twine") {
            publish_with(&home, &pasted(browser, "twine"), &secret);
            browser.open(&at(&server, "/repositories/py"));
            browser.follow("demo");
            browser.comes_to("demo - Packhouse");
            // The chart contains the one version that a client published today.
            assert!(
                browser.has("//*[name()='svg' and starts-with(@aria-label, 'Publishes by day: 1 in all')]")
            );
        }
        no_complaints(browser);
    });
}

/// Returns pip's two files as the page shows them: the settings and the credentials.
fn pip_settings(browser: &Chromium) -> [String; 2] {
    let texts = pasted(browser, "pip");
    [0, 1].map(|at| texts[at].clone())
}

/// Returns each text that the page shows for this client.
fn pasted(browser: &Chromium, client: &str) -> Vec<String> {
    let script = "return [...document.querySelectorAll('.card')] \
        .filter(card => card.querySelector('h3')?.textContent.trim() === arguments[0]) \
        .map(card => card.querySelector('pre code').textContent)";
    let texts = browser.run(script, &json!([client]));
    texts.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Publishes a wheel with the page's configuration file and command for twine.
fn publish_with(home: &Home, texts: &[String], secret: &str) {
    std::fs::create_dir(home.folder().join("dist")).unwrap();
    wheel(&home.folder().join("dist"));
    home.write(".pypirc", texts[0].replace("<REPOSITORY_TOKEN>", secret));
    clients::run(home.shell().args(["-euo", "pipefail", "-c", &texts[1]])).success();
}

/// Writes pip's files and requests a missing package. The server must accept the credentials.
fn use_pip([settings, netrc]: &[String; 2], secret: &str) {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("pip.conf");
    std::fs::write(&file, settings).unwrap();
    let secrets = home.path().join(".netrc");
    std::fs::write(&secrets, netrc.replace("<REPOSITORY_TOKEN>", secret)).unwrap();
    std::fs::set_permissions(&secrets, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut pip = Command::new("pip");
    pip.args(["download", "--no-deps", "-d"])
        .arg(home.path())
        .arg("not-there-at-all")
        .env("PIP_CONFIG_FILE", &file);
    pip.env("PIP_RETRIES", "0").env("PIP_DISABLE_PIP_VERSION_CHECK", "1").env("HOME", home.path());
    let output = pip.output().unwrap();
    let output =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.contains("No matching distribution"), "{settings}\n{output}");
    assert!(!output.contains("401"), "{output}");
}

#[test]
fn a_token_is_created_rotated_and_revoked() {
    both(|browser, scripts| {
        let server = Server::start();
        let api = Api::sign_in(&server);
        api.post("/v1/repositories", &json!({"name": "py", "format": "python", "kind": "hosted"}))
            .expect(201);
        sign_in(browser, &server, OWNER);
        browser.follow("Repository Tokens");
        browser.comes_to("Repository Tokens - Packhouse");
        // A refusal appears beside the field that caused it, and the form keeps its values.
        browser.fill("Name", "build");
        browser.tick("Read");
        browser.press("Create token");
        assert!(browser.text("[role=alert]").contains("repositories"), "{}", browser.text("[role=alert]"));
        assert_eq!(tokens(&api).len(), 0);
        browser.tick("py");
        browser.fill_date("Expires", "2099-01-31");
        browser.press("Create token");
        browser.comes_to("Confirm the new token - Packhouse");
        browser.fill("Password", "wrong");
        browser.press("Confirm");
        eventually("the page names the error", || browser.has("//*[@role='alert']").then_some(()));
        browser.fill("Password", PASSWORD);
        browser.press_twice("Confirm");
        browser.comes_to("Token created - Packhouse");
        let first = secret(browser);
        assert_eq!(tokens(&api).len(), 1, "a double click creates one token");
        assert_eq!(tokens(&api)[0]["expires_at"], json!(4_073_587_199_999_i64), "the end of that day");
        assert_eq!(status(&server, &first), 404);

        browser.open(&at(&server, "/tokens"));
        assert!(!browser.has(&format!("//*[contains(., '{first}')]")), "the secret is shown once");
        browser.press("Rotate build");
        browser.comes_to("Rotate a token - Packhouse");
        browser.fill("Overlap (hours)", "2");
        confirm(browser);
        browser.comes_to("Rotated - Packhouse");
        let second = secret(browser);
        assert_ne!(first, second);
        assert_eq!(
            (status(&server, &first), status(&server, &second)),
            (404, 404),
            "both tokens work during the overlap"
        );
        browser.open(&at(&server, "/tokens"));
        assert!(browser.has("//*[contains(@class, 'tag') and .='rotating']"));
        for left in [1, 0] {
            browser.press("Revoke");
            browser.press("Yes, revoke");
            eventually("the key is revoked", || (revocable(browser) == left).then_some(()));
        }
        assert!(browser.has("//*[contains(@class, 'tag') and .='revoked']"));
        assert_eq!((status(&server, &first), status(&server, &second)), (401, 401));
        if scripts {
            let time = browser.run("return document.querySelector('time').title", &json!([]));
            assert!(time.as_str().unwrap().contains('Z'), "the exact time is there on hover: {time}");
        }
        no_complaints(browser);
    });
}

#[test]
fn a_service_key_and_an_access_key_are_created_and_changed() {
    both(|browser, _| {
        let server = Server::start();
        let api = Api::sign_in(&server);
        api.post("/v1/repositories", &json!({"name": "py", "format": "python", "kind": "hosted"}))
            .expect(201);
        sign_in(browser, &server, OWNER);
        browser.follow("Service keys");
        browser.comes_to("Service keys - Packhouse");
        browser.fill("Name", "runner");
        browser.tick("Read");
        browser.tick("py");
        browser.press("Create service key");
        browser.comes_to("Confirm the new service key - Packhouse");
        confirm(browser);
        browser.comes_to("Service key created - Packhouse");
        assert_eq!(status(&server, &secret(browser)), 404);

        browser.follow("Subscribers");
        browser.comes_to("Subscribers - Packhouse");
        browser.fill("Name", "A customer");
        browser.tick("py");
        browser.press("Create subscriber");
        browser.comes_to("A customer - Packhouse");
        browser.fill("Name of the key", "theirs");
        browser.press("Create access key");
        browser.comes_to("Confirm the new access key - Packhouse");
        confirm(browser);
        browser.comes_to("Access key created - Packhouse");
        let key = secret(browser);
        assert_eq!(status(&server, &key), 404);
        browser.follow("Back");
        browser.comes_to("A customer - Packhouse");
        browser.press("Change expiry theirs");
        browser.comes_to("Change when an access key expires - Packhouse");
        browser.tick("Never");
        confirm(browser);
        browser.comes_to("A customer - Packhouse");
        assert!(browser.has("//*[.='never expires']"));
        browser.press("Rotate theirs");
        browser.comes_to("Rotate an access key - Packhouse");
        confirm(browser);
        browser.comes_to("Rotated - Packhouse");
        let successor = secret(browser);
        browser.follow("Back");
        browser.comes_to("A customer - Packhouse");
        for left in [1, 0] {
            browser.press("Revoke");
            browser.comes_to("Revoke an access key - Packhouse");
            confirm(browser);
            browser.comes_to("A customer - Packhouse");
            eventually("the key is revoked", || (revocable(browser) == left).then_some(()));
        }
        assert_eq!((status(&server, &key), status(&server, &successor)), (401, 401));
        browser.press("Delete");
        browser.press("Yes, delete");
        browser.comes_to("Subscribers - Packhouse");
        no_complaints(browser);
    });
}

/// Publishes the demo wheel.
fn publish(home: &Home, server: &Server, secret: &str) {
    wheel(home.folder());
    let address = format!("{}/repositories/py/", server.base_url());
    let options = ["upload", "--non-interactive", "--disable-progress-bar", "--repository-url", &address];
    let who = ["-u", "__token__", "-p", secret, "demo-1.0-py3-none-any.whl"];
    home.run("", "twine", &[&options[..], &who].concat(), &[]).success();
}

/// Writes a wheel whose README contains active content.
fn wheel(folder: &Path) {
    let metadata = "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\nSummary: A <b>demo</b> \u{202e}gnp.exe\n\
        Requires-Dist: requests (>=2)\nDescription-Content-Type: text/markdown\n\n# Demo\n\n<script>document.title='taken'</script>\n\n\
        <img src=x onerror=\"document.title='taken'\">\n\n[a link](https://example.com/)\n\n![picture](https://evil.example/p.png)\n";
    let mut files = wheel::wheel_files("demo", "1.0", "");
    files[1].1 = metadata.as_bytes().to_vec();
    std::fs::write(folder.join("demo-1.0-py3-none-any.whl"), wheel::zip(&wheel::borrowed(&files))).unwrap();
}

#[test]
fn a_package_is_found_read_yanked_and_deleted() {
    both(|browser, _| {
        let home = match Home::with("twine") {
            Ok(home) => home,
            Err(reason) => return skip("twine", &reason),
        };
        let server = Server::start();
        let api = Api::sign_in(&server);
        let id = api
            .post("/v1/repositories", &json!({"name": "py", "format": "python", "kind": "hosted"}))
            .expect(201)
            .field("id");
        publish(&home, &server, &api.create_token(&[&id], &["read", "write"], None).secret);
        sign_in(browser, &server, OWNER);
        browser.follow("Search");
        browser.fill("Search", "demo");
        browser.press("Find");
        browser.follow("demo");
        browser.comes_to("demo - Packhouse");
        browser.follow("1.0");
        browser.comes_to("demo 1.0 - Packhouse");
        for text in ["demo-1.0-py3-none-any.whl", "sha256:", "pip install", "requests", "Demo"] {
            assert!(browser.has(&format!("//*[contains(., '{text}')]")), "{text}");
        }
        assert!(browser.has(
            "//a[@href='https://example.com/' and contains(@rel, 'nofollow') and contains(@rel, 'noopener')]"
        ));
        assert!(!browser.has("//main//img") && !browser.has("//section//script"));
        browser.fill("Reason", "a fault");
        browser.press("Yank");
        eventually("the version is yanked", || {
            browser.has("//*[contains(@class, 'tag') and .='yanked']").then_some(())
        });
        let state = api.call("GET", &format!("/v1/repositories/{id}/packages/demo/versions")).json();
        assert_eq!(
            (&state["items"][0]["state"], &state["items"][0]["reason"]),
            (&json!("yanked"), &json!("a fault"))
        );
        browser.press("Restore");
        eventually("the version is restored", || {
            (!browser.has("//*[contains(@class, 'tag') and .='yanked']")).then_some(())
        });
        // The first click deletes nothing.
        browser.press("Delete");
        let versions = || api.call("GET", &format!("/v1/repositories/{id}/packages/demo/versions"));
        versions().expect(200);
        browser.press("Yes, delete");
        browser.comes_to("py - Packhouse");
        versions().expect(404);
        no_complaints(browser);
    });
}

#[test]
fn settings_are_saved_a_cache_is_purged_and_a_format_is_disabled() {
    both(|browser, _| {
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let api = Api::sign_in(&server);
        sign_in(browser, &server, OWNER);
        browser.open(&at(&server, "/repositories/new"));
        browser.fill("Name", "mirror");
        browser.choose("Format", "python");
        browser.choose("Kind", "proxy");
        browser.fill("Upstream", "http://127.0.0.1:9/simple/");
        browser.press("Create repository");
        browser.comes_to("mirror - Packhouse");
        browser.follow("Cache");
        browser.press("Purge");
        eventually("the cache is purged", || {
            browser.has("//*[@role='status' and .='Purged.']").then_some(())
        });
        browser.follow("Settings");
        browser.fill("Refresh package lists after", "77");
        browser.choose("Unit of Refresh package lists after", "seconds");
        browser.tick("Offline");
        browser.press("Save");
        eventually("the change is saved", || browser.has("//*[@role='status' and .='Saved.']").then_some(()));
        let settings = api.call("GET", "/v1/repositories").json()["items"][0]["settings"].clone();
        assert_eq!((&settings["metadata_ttl_s"], &settings["offline"]), (&json!(77), &json!(true)));
        assert_eq!(settings["stale_on_error"], json!(true), "unchanged settings stay");
        browser.press("Delete");
        browser.press("Yes, delete");
        browser.comes_to("Repositories - Packhouse");
        assert_eq!(api.call("GET", "/v1/repositories").json()["items"], json!([]));

        browser.follow("Formats");
        browser.press("Switch off maven");
        eventually("the format is disabled", || browser.has("//button[.='Switch on maven']").then_some(()));
        let enabled = |on: bool| {
            let formats = api.call("GET", "/v1/formats").json();
            let maven = formats["items"]
                .as_array()
                .unwrap()
                .iter()
                .find(|one| one["format"] == "maven")
                .unwrap()
                .clone();
            assert_eq!(maven["enabled"], json!(on));
        };
        enabled(false);
        browser.press("Switch on maven");
        eventually("the format is enabled", || browser.has("//button[.='Switch off maven']").then_some(()));
        enabled(true);
        no_complaints(browser);
    });
}

#[test]
fn a_member_is_invited_accepts_and_changes_its_password() {
    both(|browser, _| {
        let server = Server::start();
        let api = Api::sign_in(&server);
        sign_in(browser, &server, OWNER);
        browser.follow("Members");
        browser.fill("E-mail", "new@example.com");
        browser.press("Invite");
        browser.comes_to("Invitation created - Packhouse");
        let address = browser.text("[data-secret]");
        browser.press("Sign out");
        browser.comes_to("Sign in - Packhouse");
        browser.open(&address);
        browser.comes_to("You are invited - Packhouse");
        browser.fill("Name", "Newcomer");
        browser.fill("Password", PASSWORD);
        browser.press("Accept invitation");
        browser.comes_to("Invitation accepted - Packhouse");
        sign_in(browser, &server, "new@example.com");
        assert!(!browser.has("//nav//a[.='Audit']"), "there is no link to forbidden pages");
        browser.follow("new@example.com");
        browser.comes_to("Account - Packhouse");
        browser.fill("Current password", PASSWORD);
        browser.fill("New password", "quite another password");
        browser.press("Change password");
        eventually("the change is saved", || browser.has("//*[@role='status']").then_some(()));
        Api::sign_in_as(&server, "new@example.com", "quite another password");
        let members = api.call("GET", "/v1/members").json();
        assert_eq!(members["items"].as_array().unwrap().len(), 2);
        no_complaints(browser);
    });
}
