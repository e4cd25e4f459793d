//! A hostile plugin, as clients see it. The client gets a 500 that contains only the request's id.
//! The log has the details under that id. Storage is unchanged, and the next request to the plugin
//! succeeds.

use std::path::Path;

use packhouse_tests::database::fingerprint;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Client, Request, Server, checkout};
use serde_json::json;

const ATTACKS: &[(&str, &str)] = &[
    ("loop", "deadline"),
    ("loop-in-route", "deadline"),
    ("recurse", "trap"),
    ("grow", "memory"),
    ("leak-handles", "handles"),
    ("huge-list", "hostcall_bytes"),
    ("bad-headers", "bad_answer"),
    ("bad-status", "bad_answer"),
    ("many-headers", "bad_answer"),
    ("trap-mid-publish", "trap"),
    ("import-in-route", "trap"),
];

/// Starts a server with the hostile plugin, a shipped plugin, and a short deadline. Also returns a
/// client.
fn serve(plugins: &Path) -> (Server, Client) {
    for file in ["guests/hostile.wasm", "plugins/maven.wasm"] {
        let from = checkout().join("target/release").join(file);
        let to = plugins.join(from.file_name().unwrap());
        std::fs::copy(&from, to)
            .unwrap_or_else(|error| panic!("{}: {error}; run `just plugins guests`", from.display()));
    }
    let server = Server::with()
        .arg("--plugins")
        .arg(plugins.to_str().unwrap())
        .env("PACKHOUSE_PLUGINS_HOSTILE_CALL_TIMEOUT_MS", "300")
        .start();
    let api = Api::sign_in(&server);
    let body = json!({"name": "lair", "format": "hostile", "kind": "hosted"});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    let token = api.create_token(&[&id], &["read", "write"], None);
    let client = server.anonymous().basic(OWNER, &token.secret);
    (server, client)
}

#[test]
fn a_hostile_plugin_fails_only_its_own_request() {
    let plugins = tempfile::tempdir().unwrap();
    let (server, client) = serve(plugins.path());
    for (path, kind) in ATTACKS {
        client.send(Request::new("GET", "/repositories/lair/ok")).expect(200);
        let before = fingerprint(&server);
        let answer = client.put(&format!("/repositories/lair/{path}"), "a body");
        assert_eq!(answer.status, 500, "{path}: {}", answer.text());
        let id = answer.header("x-request-id").expect("a request id").to_owned();
        assert_eq!(answer.field("request_id"), id, "{path}");
        assert!(
            !answer.text().contains("wasm") && !answer.text().contains("hostile"),
            "{path}: {}",
            answer.text()
        );
        assert_eq!(fingerprint(&server), before, "{path} changed what is stored");
        let log = server.log();
        let line = log.lines().find(|line| line.contains(&id) && line.contains("plugin call failed"));
        let line = line.unwrap_or_else(|| panic!("{path}: no line for {id} in {log}"));
        assert!(line.contains("hostile") && line.contains(kind), "{path}: {line}");
        client.send(Request::new("GET", "/repositories/lair/ok")).expect(200);
    }
    // The API reports the number of failures for the format.
    let formats = Api::sign_in(&server).call("GET", "/v1/formats").expect(200).json();
    let hostile = formats["items"].as_array().unwrap().iter().find(|one| one["format"] == "hostile").unwrap();
    assert_eq!(hostile["failures"], json!(ATTACKS.len()), "{hostile}");
    assert!(hostile["calls"].as_u64() >= Some(2 * ATTACKS.len() as u64), "{hostile}");
}

#[test]
fn a_read_is_routed_and_answered_in_one_instance_of_its_own() {
    let plugins = tempfile::tempdir().unwrap();
    let (_server, client) = serve(plugins.path());
    // Each request has another query, so that the response cache has no response for it.
    for number in 0..3 {
        let path = format!("/repositories/lair/routed-here?{number}");
        assert_eq!(client.send(Request::new("GET", &path)).expect(200).text(), "1");
    }
    assert_eq!(client.put("/repositories/lair/routed-here-publish", "a body").expect(200).text(), "0");
}

#[test]
fn a_refused_caller_does_not_get_another_callers_cached_response() {
    let plugins = tempfile::tempdir().unwrap();
    let (server, _) = serve(plugins.path());
    let api = Api::sign_in(&server);
    let body = json!({"name": "open", "format": "hostile", "kind": "hosted", "settings": {"public": true}});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    let known = server.anonymous().basic(OWNER, &api.create_token(&[&id], &["read"], None).secret);
    for _ in 0..2 {
        known.get("/repositories/open/known-alone").expect(200);
        server.anonymous().get("/repositories/open/known-alone").expect(404);
        server.anonymous().get("/repositories/open/ok").expect(200);
    }
}
