//! An organization's sign-in settings: what a change that fails leaves, who signs in where they cannot be read, and what a stranger learns
//! of which organizations there are.

use packhouse_tests::database::sqlite;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, MavenRepository, Request, Server};
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
fn settings_that_cannot_be_read_let_owners_alone_use_a_password() {
    const FILE: &str = "org/example/a/1.0/a-1.0.jar";
    const OF_MEMBER: &str = "a long password";
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = MavenRepository::create(&server, "jars");
    repository.put(FILE, "bytes").expect(201);
    let permissions = json!({"repositories": [{"repository": repository.id, "actions": ["read"]}]});
    let member = json!({"email": MEMBER, "password": OF_MEMBER, "permissions": permissions});
    api.post("/v1/members", &member).expect(201);
    api.send("PUT", "/v1/sso", &settings("client")).expect(200);
    // The statuses of a sign-in and of a file that is fetched with the password itself.
    let by_password = |email: &str, password: &str| {
        let body = json!({"email": email, "password": password}).to_string();
        let request = Request::new("POST", "/v1/sessions").header("Content-Type", "application/json");
        let session = Client::new(server.api()).send(request.body(body));
        let file = server.anonymous().basic(email, password).get(&repository.path(FILE));
        (session.status, file.status)
    };
    assert_eq!(by_password(MEMBER, OF_MEMBER), (201, 200));

    sqlite(&server, "update sso_settings set settings = '{}'");
    assert_eq!(by_password(MEMBER, OF_MEMBER), (401, 401));
    assert_eq!(by_password(OWNER, PASSWORD), (201, 200));

    api.send("PUT", "/v1/sso", &settings("client")).expect(200);
    assert_eq!(by_password(MEMBER, OF_MEMBER), (201, 200));
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
