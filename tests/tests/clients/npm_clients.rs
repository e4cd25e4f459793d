//! Tests with npm, pnpm, yarn and bun: they publish, print understandable refusals, and install
//! into empty projects.

use packhouse_tests::long;
use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::{Api, Server, skip};
use serde_json::json;

/// This client with a repository of its own; `None`, with a printed reason, if it is not installed.
fn set(server: &Server, tool: Tool) -> Option<(NpmRepository, Js)> {
    let repository = NpmRepository::create(server, tool.name());
    match Js::new(tool, &repository.url(server), &repository.token.secret) {
        Ok(js) => Some((repository, js)),
        Err(reason) => {
            skip(tool.name(), &reason);
            None
        }
    }
}

/// Runs `work` for each of these clients, at the same time.
fn with_each(tools: &[Tool], work: fn(&Server, NpmRepository, Js)) {
    let server = Server::start();
    std::thread::scope(|scope| {
        for tool in tools {
            let server = &server;
            scope.spawn(move || {
                if let Some((repository, js)) = set(server, *tool) {
                    work(server, repository, js);
                }
            });
        }
    });
}

const NPMS: [Tool; 2] = [Tool::Npm10, Tool::Npm11];

#[test]
fn every_client_publishes_once_and_installs() {
    with_each(&Tool::ALL, |_, repository, js| {
        js.package("left", &json!({"name": "left", "version": "1.0.0", "description": "one half"}));
        js.package("right", &json!({"name": "@acme/right", "version": "2.0.0", "license": "MIT"}));
        js.publish("left").success();
        js.publish("right").success();
        let again = js.publish("left");
        again.refused(match js.tool {
            // These clients first check whether the version exists.
            Tool::Npm11 | Tool::Pnpm => "You cannot publish over the previously published versions",
            // yarn 1 prints only the error code.
            Tool::Yarn1 => "conflict",
            Tool::Npm10 | Tool::Yarn4 | Tool::Bun => "is published already and cannot be replaced",
        });

        let dependencies = json!({"left": "^1.0.0", "@acme/right": "^2.0.0"});
        js.package(
            "project",
            &json!({"name": "project", "version": "0.0.0", "private": true, "dependencies": dependencies}),
        );
        js.install("project").success();
        let installed = |package: &str| js.installed("project", package);
        assert_eq!(
            (installed("left"), installed("@acme/right")),
            (Some("1.0.0".into()), Some("2.0.0".into())),
            "{:?}",
            js.tool
        );

        js.package("newer", &json!({"name": "left", "version": "1.1.0"}));
        js.publish("newer").success();
        js.forget("project");
        js.install_locked("project").success();
        assert_eq!(
            js.installed("project", "left").as_deref(),
            Some("1.0.0"),
            "{:?}: what the lock file says",
            js.tool
        );
        assert_eq!(repository.get("left/latest").expect(200).json()["version"], "1.1.0", "{:?}", js.tool);
    });
}

#[test]
fn a_lock_file_holds_the_registry_to_its_bytes() {
    if !long() {
        return;
    }
    with_each(&Tool::ALL, |_, repository, js| {
        js.package("lib", &json!({"name": "lib", "version": "1.0.0"}));
        js.publish("lib").success();
        js.package(
            "project",
            &json!({"name": "project", "version": "0.0.0", "dependencies": {"lib": "1.0.0"}}),
        );
        js.install("project").success();
        let integrity = repository.get("lib/1.0.0").json()["dist"]["integrity"].as_str().unwrap().to_owned();
        let (file, lock) = ["package-lock.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"]
            .into_iter()
            .map(|file| format!("project/{file}"))
            .find_map(|file| Some((file.clone(), std::fs::read_to_string(js.folder().join(file)).ok()?)))
            .expect("a lock file");
        // yarn 4 records its own checksum instead of `integrity`.
        let (of, other) = match lock.split_once("checksum: 10c0/") {
            Some((_, rest)) => (rest[..128].to_owned(), "0".repeat(128)),
            None => (integrity, format!("sha512-{}==", "A".repeat(86))),
        };
        assert!(lock.contains(&of), "{:?}:\n{lock}", js.tool);
        js.write(&file, &lock.replace(&of, &other));
        js.forget("project");
        js.install_locked("project").refused(match js.tool {
            Tool::Npm10 | Tool::Npm11 => "EINTEGRITY",
            Tool::Pnpm => "ERR_PNPM_TARBALL_INTEGRITY",
            Tool::Yarn1 => "Integrity check failed",
            Tool::Yarn4 => "doesn't match the expected checksum",
            Tool::Bun => "Integrity check failed",
        });
        assert_eq!(js.installed("project", "lib"), None, "{:?}", js.tool);
    });
}

#[test]
fn npm_manages_its_published_packages() {
    if !long() {
        return;
    }
    with_each(&NPMS, |_, repository, js| {
        for version in ["1.0.0", "1.1.0", "2.0.0"] {
            js.package(
                "lib",
                &json!({"name": "@acme/lib", "version": version, "description": "a librarian's lib"}),
            );
            js.publish("lib").success();
        }
        let says = |arguments: &[&str], words: &str| {
            let output = js.run("lib", arguments).success();
            assert!(output.text.contains(words), "{arguments:?} does not say {words:?}:\n{}", output.text);
        };
        says(&["ping"], "PONG");
        says(&["whoami"], "owner@");
        says(&["dist-tag", "add", "@acme/lib@1.1.0", "stable"], "+stable: @acme/lib@1.1.0");
        says(&["dist-tag", "ls", "@acme/lib"], "stable: 1.1.0");
        says(&["view", "@acme/lib@stable", "version"], "1.1.0");
        says(&["dist-tag", "rm", "@acme/lib", "stable"], "-stable: @acme/lib@1.1.0");
        says(&["deprecate", "@acme/lib@<2", "use 2"], "");
        says(&["view", "@acme/lib@1.0.0", "deprecated"], "use 2");
        says(&["deprecate", "@acme/lib@1.0.0", ""], "");
        assert_eq!(repository.get("@acme/lib/1.0.0").json()["deprecated"], json!(null));
        assert_eq!(repository.get("@acme/lib/1.1.0").json()["deprecated"], "use 2");
        says(&["owner", "ls", "@acme/lib"], "owner@");
        says(&["search", "librarian"], "@acme/lib");
        says(&["view", "@acme/lib", "versions"], "2.0.0");

        says(&["unpublish", "@acme/lib@2.0.0", "--force"], "- @acme/lib@2.0.0");
        repository.get("@acme/lib/-/lib-2.0.0.tgz").expect(404);
        assert_eq!(repository.get("@acme/lib/latest").expect(200).json()["version"], "1.1.0");
        js.run("lib", &["publish"]).refused("its number cannot be used again");
        says(&["unpublish", "@acme/lib", "--force"], "- @acme/lib");
        js.run("lib", &["view", "@acme/lib"]).refused("404");
    });
}

#[test]
fn clients_print_a_deprecation_when_they_install() {
    with_each(&[Tool::Npm11, Tool::Pnpm, Tool::Yarn1], |_, repository, js| {
        js.package("lib", &json!({"name": "old", "version": "1.0.0"}));
        js.publish("lib").success();
        repository
            .put("old", &json!({"versions": {"1.0.0": {"deprecated": "use something newer"}}}))
            .expect(201);
        js.package(
            "project",
            &json!({"name": "project", "version": "0.0.0", "dependencies": {"old": "1.0.0"}}),
        );
        let output = js.install("project").success();
        // pnpm names only the version, yarn prints only the reason.
        let words = if js.tool == Tool::Yarn1 { "use something newer" } else { "deprecated" };
        assert!(output.text.contains(words), "{:?}:\n{}", js.tool, output.text);
    });
}

/// Checks each client's own words when the server refuses its credential. Clients that read before
/// they write fail at the read: with an invalid token, the server answers that the package is not
/// found.
#[test]
fn clients_print_an_understandable_refusal_of_a_credential() {
    with_each(&Tool::ALL, |server, repository, js| {
        js.package("lib", &json!({"name": "lib", "version": "1.0.0"}));
        js.package(
            "project",
            &json!({"name": "project", "version": "0.0.0", "dependencies": {"lib": "1.0.0"}}),
        );
        js.publish("lib").success();
        js.package("lib", &json!({"name": "lib", "version": "1.1.0"}));
        let (api, tool) = (Api::sign_in(server), js.tool);

        let reader = api.create_token(&[&repository.id], &["read"], None);
        js.credential(&reader.secret);
        let output = js.publish("lib");
        assert!(
            !output.success && output.text.contains("[write]"),
            "{tool:?} with a token that reads:\n{}",
            output.text
        );
        js.install("project").success();

        let revoked = api.create_token(&[&repository.id], &["read", "write"], None);
        api.call("DELETE", &format!("/v1/tokens/{}", revoked.id)).expect(204);
        for token in [revoked.secret.as_str(), "pkh_mistyped"] {
            js.credential(token);
            let output = js.publish("lib");
            let words = ["401", "nable to authenticate", "Invalid authentication", "unauthorized"];
            let tells = words.iter().any(|words| output.text.contains(words));
            assert!(!output.success && tells, "{tool:?} with an invalid token:\n{}", output.text);
            js.forget("project");
            let output = js.install("project");
            assert!(
                !output.success && (output.text.contains("404") || output.text.contains("not found")),
                "{tool:?}:\n{}",
                output.text
            );
        }
        assert_eq!(
            repository.get("lib/latest").json()["version"],
            "1.0.0",
            "{tool:?}: nothing was published"
        );
    });
}

#[test]
fn yarn_login_says_where_a_token_is_made() {
    with_each(&[Tool::Yarn4], |_, _, js| {
        js.package("lib", &json!({"name": "lib", "version": "1.0.0"}));
        // yarn reads these variables instead of terminal input.
        let typed = [
            ("YARN_IS_TEST_ENV", "1"),
            ("YARN_INJECT_NPM_USER", "ann"),
            ("YARN_INJECT_NPM_PASSWORD", "a password"),
        ];
        js.run_with("lib", &typed, &["npm", "login"])
            .refused("create a token in the portal and write it to .yarnrc.yml (npmAuthToken)");
    });
}

#[test]
fn npm_prints_refusals_of_unsupported_commands() {
    with_each(&NPMS, |_, _, js| {
        js.package("lib", &json!({"name": "lib", "version": "1.0.0"}));
        js.run_typing("lib", &["token", "create"], &[("password:", "a password")])
            .refused("npm_cli_token_create_disabled");
        let answers = [("Username:", "ann"), ("Password:", "a password"), ("Email:", "ann@example.com")];
        js.run_typing("lib", &["login", "--auth-type=legacy"], &answers).refused("legacy_npm_login_disabled");
    });
}
