//! An organization's sign-in settings: what a change that fails leaves, and what a stranger learns of which organizations there are.

use packhouse_tests::database::sqlite;
use packhouse_tests::{Api, Client, Server};
use serde_json::{Value, json};

const MEMBER: &str = "dev@example.com";

fn settings(client: &str) -> Value {
    json!({"issuer": "https://login.example.com", "client_id": client})
}

#[test]
fn settings_stay_as_they_are_where_their_change_is_answered_with_an_error() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let member = json!({"email": MEMBER, "password": "a long password", "permissions": {"repositories": []}});
    api.post("/v1/members", &member).expect(201);
    // Owners are looked for among the members, to tell them of the change.
    let damage = |created_at: &str| {
        sqlite(&server, &format!("update members set created_at = {created_at} where email = '{MEMBER}'"));
    };
    damage("'unreadable'");
    api.send("PUT", "/v1/sso", &settings("first")).expect(500);
    api.call("GET", "/v1/sso").expect(404);

    damage("1");
    api.send("PUT", "/v1/sso", &settings("first")).expect(200);
    damage("'unreadable'");
    api.send("PUT", "/v1/sso", &settings("second")).expect(500);
    api.call("DELETE", "/v1/sso").expect(500);
    assert_eq!(api.call("GET", "/v1/sso").expect(200).field("client_id"), "first");

    damage("1");
    api.call("DELETE", "/v1/sso").expect(204);
}

#[test]
fn an_organization_without_a_provider_is_not_told_from_one_that_is_not_there() {
    let server = Server::start();
    let name = Api::sign_in(&server).call("GET", "/v1/organization").expect(200).field("name");
    let start = |organization: &str| {
        let path = format!("/v1/sso/start?organization={organization}");
        let answer = Client::new(server.api()).get(&path);
        let mut body = answer.json();
        assert!(body["request_id"].take().is_string(), "{body}");
        let headers: Vec<String> = answer.headers.into_iter().map(|(name, _)| name).collect();
        (answer.status, body, headers)
    };
    let of_none = start("no-such-organization");
    assert_eq!((of_none.0, &of_none.1["error"]), (404, &json!("not_found")));
    assert_eq!(start(&name), of_none);
}
