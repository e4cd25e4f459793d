//! Publishing to an npm repository. The manifest in the archive and the manifest in the request
//! must agree, except for changes that clients make themselves. Also readmes, legacy names, and
//! search.

mod clients;
mod readmes;
use crate::release;

use packhouse_tests::npm::{Js, NpmRepository, Tool};
use packhouse_tests::{Api, Response, Server, skip};
use release::Release;
use serde_json::json;

/// Publishes this version and returns the response.
#[track_caller]
fn publish(repository: &NpmRepository, release: &Release) -> Response {
    repository.put(release.path().trim_start_matches('/'), &release.document())
}

/// Runs `work` for each of these clients concurrently. Each client has its own repository.
fn with_each(tools: &[Tool], work: fn(&Server, NpmRepository, Js)) {
    let server = Server::start();
    std::thread::scope(|scope| {
        for tool in tools {
            let server = &server;
            scope.spawn(move || {
                let repository = NpmRepository::create(server, tool.name());
                match Js::new(*tool, &repository.url(server), &repository.token.secret) {
                    Ok(js) => work(server, repository, js),
                    Err(reason) => skip(tool.name(), &reason),
                }
            });
        }
    });
}

#[test]
fn the_served_manifest_matches_the_archive() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "js");
    let members = json!({"dependencies": {"a": "1"}, "scripts": {"test": "true"}, "bin": {"lib": "cli.js"}});
    for (number, stated) in [
        json!({"dependencies": {"a": "1", "evil": "1"}}),
        json!({"dependencies": null}),
        json!({"dependencies": {"a": "2"}}),
        json!({"optionalDependencies": {"evil": "1"}}),
        json!({"peerDependencies": {"evil": "1"}}),
        json!({"scripts": null}),
        json!({"scripts": {"test": "true", "postinstall": "evil"}, "hasInstallScript": true}),
        json!({"bin": {"lib": "cli.js", "git": "cli.js"}}),
        json!({"bin": null}),
        json!({"_hasShrinkwrap": true}),
    ]
    .into_iter()
    .enumerate()
    {
        let number = format!("1.0.{number}");
        let mut own = json!({"name": "lib", "version": number});
        own.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let release = Release::new("lib", &number).package_json(&own.to_string()).manifest_members(&stated);
        publish(&repository, &release).expect(201);
        let served = repository.get(&format!("lib/{number}")).expect(200).json();
        for member in ["dependencies", "scripts", "bin"] {
            assert_eq!(served[member], members[member], "{stated}: {served}");
        }
        for member in ["optionalDependencies", "peerDependencies", "hasInstallScript", "_hasShrinkwrap"] {
            assert!(served[member].is_null() || served[member] == json!({}), "{stated}: {served}");
        }
    }
    let another =
        Release::new("lib", "2.0.0").package_json(&json!({"name": "other", "version": "2.0.0"}).to_string());
    publish(&repository, &another).expect(400);
}

#[test]
fn a_legacy_name_is_accepted_with_a_setting() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "js");
    let names = ["JSONStream", "@acme/old~name", "@acme/.dotted"];
    for name in names {
        let refused = publish(&repository, &Release::new(name, "1.0.0")).expect(400);
        assert!(refused.field("message").contains("`legacy_names`"), "{}", refused.text());
    }
    // npm's own rule for new packages allows these names.
    publish(&repository, &Release::new("@acme/_under", "1.0.0")).expect(201);
    let settings = json!({"settings": {"legacy_names": true}});
    Api::sign_in(&server).patch(&format!("/v1/repositories/{}", repository.id), &settings).expect(200);
    for name in names {
        publish(
            &repository,
            &Release::new(name, "1.0.0").package_json(&json!({"name": name, "version": "1.0.0"}).to_string()),
        )
        .expect(201);
    }
    for tool in Tool::ALL {
        let js = match Js::new(tool, &repository.url(&server), &repository.token.secret) {
            Ok(js) => js,
            Err(reason) => {
                skip(tool.name(), &reason);
                continue;
            }
        };
        js.package(
            "project",
            &json!({"name": "project", "version": "0.0.0", "private": true, "dependencies": {"JSONStream": "^1.0.0"}}),
        );
        js.install("project").success();
        assert_eq!(js.installed("project", "JSONStream").as_deref(), Some("1.0.0"), "{tool:?}");
    }
}

#[test]
fn search_finds_keywords_and_returns_dates() {
    with_each(&[Tool::Npm10, Tool::Npm11], |_, repository, js| {
        js.package(
            "lib",
            &json!({"name": "@acme/lib", "version": "1.0.0", "keywords": ["parser", "Streams"]}),
        );
        js.publish("lib").success();
        js.package("other", &json!({"name": "other", "version": "1.0.0", "description": "something else"}));
        js.publish("other").success();
        let published = repository.get("@acme/lib").json()["time"]["1.0.0"].as_str().unwrap().to_owned();
        for text in ["streams", "parser%20lib", "keywords:parser"] {
            let found = repository.get(&format!("-/v1/search?text={text}")).expect(200).json();
            assert_eq!(
                (&found["total"], &found["objects"][0]["package"]["name"]),
                (&json!(1), &json!("@acme/lib")),
                "{text}"
            );
            assert_eq!(found["objects"][0]["package"]["date"], json!(published), "{text}");
            assert!(found["time"].as_str().unwrap() >= published.as_str(), "{text}: {found}");
        }
        // A search still finds a deprecated version.
        js.run("lib", &["deprecate", "@acme/lib", "old"]).success();
        let output = js.run("lib", &["search", "parser"]).success();
        let day = published.get(..10).unwrap();
        assert!(output.text.contains("@acme/lib") && output.text.contains(day), "{}", output.text);
        let nothing = repository.get("-/v1/search?text=absent").expect(200).json();
        assert!(nothing["time"].as_str().unwrap() >= published.as_str(), "{nothing}");
    });
}

#[test]
fn a_token_without_an_address_list_is_returned_without_one() {
    with_each(&[Tool::Npm10, Tool::Npm11], |_, repository, js| {
        let listed = repository.get("-/npm/v1/tokens").expect(200).json();
        assert_eq!(listed["objects"][0].get("cidr_whitelist"), None, "{listed}");
        let output = js.run("", &["token", "list"]).success();
        assert!(!output.text.contains("IP whitelist"), "{}", output.text);
    });
}
