//! Two organizations on one server, which tells them apart by the request's host. For one
//! organization, the names, members, tokens and blobs of the other do not exist.

use packhouse_tests::cli::{json as packhouse_json, packhouse};
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, Request, Server};
use serde_json::{Value, json};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const OTHER: &str = "other@example.com";

/// A server with the organizations `default` at one.example and `second` at two.example. OWNER is a
/// member of both, with the same password.
fn two() -> Server {
    let server = Server::with().arg("--base-url").arg("http://one.example").start();
    let data = server.data();
    packhouse_json(data, &["org", "create", "second", "--base-url", "https://two.example/"]);
    let create = ["member", "create", "--org", "second", "--owner", "--password-stdin"];
    for (email, password) in [(OWNER, PASSWORD), (OTHER, "another password")] {
        packhouse(data, &[&create[..], &[email]].concat(), password).success();
    }
    server
}

fn sign_in(server: &Server, organization: &str) -> Client {
    let body = json!({"email": OWNER, "password": PASSWORD, "organization": organization});
    let answer = post(&Client::new(server.api()), "/v1/sessions", &body);
    assert_eq!(answer.0, 201, "{}", answer.1);
    let session = answer.1["session"].as_str().unwrap();
    Client::new(server.api()).with("Authorization", &format!("Bearer {session}"))
}

fn post(client: &Client, path: &str, body: &Value) -> (u16, Value) {
    let request =
        Request::new("POST", path).header("Content-Type", "application/json").body(body.to_string());
    let answer = client.send(request);
    (answer.status, answer.json())
}

fn error(answer: (u16, Value)) -> (u16, String) {
    (answer.0, answer.1["error"].as_str().unwrap_or_default().to_owned())
}

/// Creates a repository `libs` and a token that may read and write it. Returns both ids and the
/// secret.
fn libs(client: &Client) -> (String, String, String) {
    let (status, made) =
        post(client, "/v1/repositories", &json!({"name": "libs", "format": "maven", "kind": "hosted"}));
    assert_eq!(status, 201, "{made}");
    let id = made["id"].as_str().unwrap().to_owned();
    let (status, token) = post(client, "/v1/tokens", &token(client, &id));
    assert_eq!(status, 201, "{token}");
    (id, token["secret"].as_str().unwrap().to_owned(), token["id"].as_str().unwrap().to_owned())
}

fn token(client: &Client, repository: &str) -> Value {
    let confirmed =
        post(client, "/v1/confirmations", &json!({"action": "create_token", "password": PASSWORD})).1;
    json!({"name": "ci", "scope": ["read", "write"], "format": "generic", "repositories": [repository],
        "expires_at": null, "confirmation_token": confirmed["confirmation_token"]})
}

#[test]
fn the_host_picks_the_organization_and_an_unknown_one_is_401() {
    let server = two();
    let (first, second) = (sign_in(&server, "default"), sign_in(&server, "second"));
    let (secret_one, secret_two) = (libs(&first).1, libs(&second).1);
    let path = format!("/repositories/libs/{FILE}");
    let at = |host: &str, secret: &str| server.anonymous().with("Host", host).basic(OWNER, secret);
    at("one.example", &secret_one).put(&path, "of the first").expect(201);
    at("two.example", &secret_two).get(&path).expect(404);
    at("two.example:443", &secret_two).put(&path, "of the second").expect(201);
    assert_eq!(at("ONE.example", &secret_one).get(&path).expect(200).text(), "of the first");
    assert_eq!(at("two.example", &secret_two).get(&path).expect(200).text(), "of the second");
    for (host, secret) in [("one.example", &secret_two), ("two.example", &secret_one)] {
        at(host, secret).get(&path).expect(401);
    }
    for host in ["three.example", "127.0.0.1", "one.example.evil.example"] {
        assert_eq!(at(host, &secret_one).get(&path).expect(401).field("error"), "unauthorized");
    }
    // A member's password is valid only in the organizations that have this member.
    at("two.example", PASSWORD).get(&path).expect(200);
    server.anonymous().with("Host", "one.example").basic(OTHER, "another password").get(&path).expect(401);
}

#[test]
fn content_of_one_organization_does_not_exist_in_the_other() {
    let server = two();
    let (first, second) = (sign_in(&server, "default"), sign_in(&server, "second"));
    let (id, _, token_id) = libs(&first);
    let (own, ..) = libs(&second);
    for path in [format!("/v1/repositories/{id}"), format!("/v1/repositories/{id}/packages")] {
        second.get(&path).expect(404);
        first.get(&path).expect(200);
    }
    assert_eq!(
        error(post(&second, "/v1/tokens", &token(&second, &id))),
        (403, "repo_access_denied".to_owned())
    );
    let confirmed =
        post(&second, "/v1/confirmations", &json!({"action": "rotate_token", "password": PASSWORD})).1;
    let rotation = format!("/v1/tokens/{token_id}/rotation");
    assert_eq!(post(&second, &rotation, &confirmed_by(&confirmed)).0, 404);
    second.send(Request::new("DELETE", &format!("/v1/tokens/{token_id}"))).expect(404);
    second.send(Request::new("DELETE", &format!("/v1/repositories/{id}"))).expect(404);
    // A confirmation in one organization is not valid in the other, even for the same person.
    let body = json!({"confirmation_token": confirmed["confirmation_token"]});
    assert_eq!(error(post(&first, &rotation, &body)), (401, "step_up_required".to_owned()));

    let list = |client: &Client, path: &str| client.get(path).expect(200).text();
    assert!(!list(&second, "/v1/repositories").contains(&id));
    assert!(!list(&second, "/v1/tokens").contains(&token_id));
    assert!(list(&second, "/v1/repositories").contains("https://two.example/repositories/libs/"));
    assert!(!list(&first, "/v1/members").contains(OTHER));
    assert!(list(&second, "/v1/members").contains(OTHER));
    assert!(!list(&second, "/v1/audit-events").contains(&token_id));
    assert_eq!(second.get(&format!("/v1/tokens?member={OTHER}")).status, 200);
    let unknown = first.get(&format!("/v1/tokens?member={OTHER}")).expect(404);
    assert_eq!(unknown.field("error"), "user_not_found");

    // A format that is disabled in one organization still works in the other one.
    let off = Request::new("PATCH", "/v1/formats/maven").header("Content-Type", "application/json");
    second.send(off.body("{\"enabled\": false}")).expect(200);
    let at = |host: &str| server.anonymous().with("Host", host).basic(OWNER, PASSWORD);
    at("two.example").get("/repositories/libs/x").expect(503);
    at("one.example").get("/repositories/libs/x").expect(404);
    second.get(&format!("/v1/repositories/{own}")).expect(200);
}

fn confirmed_by(confirmed: &Value) -> Value {
    json!({"confirmation_token": confirmed["confirmation_token"]})
}

#[test]
fn a_session_belongs_to_one_organization() {
    let server = two();
    let client = Client::new(server.api());
    let body = json!({"email": OWNER, "password": PASSWORD});
    assert_eq!(error(post(&client, "/v1/sessions", &body)), (400, "organization_required".to_owned()));
    let wrong = json!({"email": OWNER, "password": "wrong"});
    assert_eq!(error(post(&client, "/v1/sessions", &wrong)), (401, "invalid_credentials".to_owned()));
    let elsewhere = json!({"email": OTHER, "password": "another password", "organization": "default"});
    assert_eq!(error(post(&client, "/v1/sessions", &elsewhere)), (401, "invalid_credentials".to_owned()));
    Api::sign_in_as(&server, OTHER, "another password");
    let me = sign_in(&server, "second").get("/v1/me").expect(200).json();
    assert_eq!(
        (&me["organization"]["name"], &me["organization"]["base_url"]),
        (&json!("second"), &json!("https://two.example"))
    );
}

#[test]
fn names_and_hosts_are_unique() {
    let server = two();
    let data = server.data();
    let create = |name: &str, url: &str| packhouse(data, &["org", "create", name, "--base-url", url], "");
    create("second", "https://three.example").refused("in use");
    create("third", "http://TWO.example").refused("in use");
    create("third", "ftp://three.example").refused("http");
    packhouse(data, &["org", "move", "second", "--base-url", "http://one.example"], "").refused("another");
    packhouse(data, &["repo", "list"], "").refused("--org");
    packhouse(data, &["repo", "list", "--org", "absent"], "").refused("no organization");
    let moved = packhouse_json(data, &["org", "move", "second", "--base-url", "https://four.example:8443"]);
    assert_eq!(moved["base_url"], "https://four.example:8443");
    let listed = packhouse_json(data, &["org", "list"]);
    let mut names: Vec<_> =
        listed.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["default", "second"]);
}
