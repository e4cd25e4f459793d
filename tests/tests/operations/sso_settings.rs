//! An organization's sign-in settings: changes that fail, and sign-in while the settings are
//! unreadable. Without a credential nobody can probe which organizations exist.

use packhouse_tests::database::sqlite;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, MavenRepository, Request, Server};
use serde_json::{Value, json};

const MEMBER: &str = "dev@example.com";

fn settings(client: &str) -> Value {
    json!({"issuer": "https://login.example.com", "client_id": client})
}

#[test]
fn a_failed_change_leaves_the_settings_unchanged() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let member = json!({"email": MEMBER, "password": "a long password", "permissions": {"repositories": []}});
    api.post("/v1/members", &member).expect(201);
    // The server reads all members to mail the owners, so an unreadable member makes the change
    // fail.
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
fn only_owners_sign_in_with_a_password_if_the_settings_are_unreadable() {
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
    // Returns the status of a sign-in, and the status of a download with the password as the
    // credential.
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
fn an_organization_without_a_provider_looks_like_a_missing_one() {
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
