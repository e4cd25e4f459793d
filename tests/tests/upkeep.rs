//! What people change of a repository through the API: deleting packages and versions, and saying of a version that it should not
//! be used. The same calls for every format, as far as its plugin offers them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test code: to fail is how it speaks"
)]

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, MavenRepository, Request, Server, checkout};
use serde_json::json;

const ONE: &str = "org/example/a/1.0/a-1.0.jar";
const TWO: &str = "org/example/a/2.0/a-2.0.jar";

#[test]
fn versions_and_packages_are_deleted() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "files");
    for file in [ONE, TWO] {
        repository.put(file, "x").expect(201);
    }
    let api = Api::sign_in(&server);
    let package = format!("/v1/repositories/{}/packages/org.example%3Aa", repository.id);
    api.call("DELETE", &format!("{package}/versions/9.9")).expect(404);
    api.call("DELETE", &format!("{package}/versions/1.0")).expect(204);
    repository.get(ONE).expect(404);
    repository.get(TWO).expect(200);
    api.call("DELETE", &format!("{package}/versions/1.0")).expect(404);
    api.call("DELETE", &package).expect(204);
    repository.get(TWO).expect(404);
    api.call("DELETE", &package).expect(404);
    let events = api.call("GET", "/v1/audit-events?limit=10").expect(200).text();
    assert!(events.contains("delete_version") && events.contains("org.example:a 2.0"), "{events}");
}

#[test]
fn rights_are_judged_and_states_are_known_ones() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "files");
    repository.put(ONE, "x").expect(201);
    let api = Api::sign_in(&server);
    let permissions = json!({"organization": [], "repositories": [{"repository": repository.id, "actions": ["read"]}]});
    let member = json!({"email": "reader@example.com", "password": PASSWORD, "permissions": permissions});
    api.post("/v1/members", &member).expect(201);
    let client = Client::new(server.api());
    let body = json!({"email": "reader@example.com", "password": PASSWORD}).to_string();
    let request = Request::new("POST", "/v1/sessions").header("Content-Type", "application/json").body(body);
    let session = client.send(request).expect(201).field("session");
    let reader = client.with("Authorization", &format!("Bearer {session}"));
    let version = format!("/v1/repositories/{}/packages/org.example%3Aa/versions/1.0", repository.id);
    assert_eq!(reader.send(Request::new("DELETE", &version)).expect(403).field("error"), "role_mismatch");
    let state = format!("{version}/state");
    assert_eq!(api.send("PUT", &state, &json!({"state": "gone"})).expect(400).field("error"), "invalid_request");
    repository.get(ONE).expect(200);
}

#[test]
fn a_format_that_does_not_offer_it_says_so() {
    let plugins = tempfile::tempdir().unwrap();
    std::fs::copy(checkout().join("target/release/guests/raw.wasm"), plugins.path().join("raw.wasm")).unwrap();
    let server = Server::with().arg("--plugins").arg(plugins.path().to_str().unwrap()).start();
    let api = Api::sign_in(&server);
    let body = json!({"name": "files", "format": "raw", "kind": "hosted"});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    server.anonymous().basic(OWNER, PASSWORD).put("/repositories/files/a", "x").expect(201);
    let version = format!("/v1/repositories/{id}/packages/a/versions/latest");
    assert_eq!(api.call("DELETE", &version).expect(405).field("error"), "not_supported");
    let state = json!({"state": "yanked", "reason": "broken"});
    let answer = api.send("PUT", &format!("{version}/state"), &state).expect(405);
    assert_eq!(answer.field("error"), "not_supported");
}
