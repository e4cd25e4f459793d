//! Members over the API: invitation, creation, change and deletion. Changed permissions apply to a
//! member's credentials from the next request on.

use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server};
use serde_json::{Value, json};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const OTHER: &str = "org/example/a/2.0/a-2.0.jar";
const EMAIL: &str = "dev@example.com";
const PASSWORD: &str = "a long enough password";

fn actions(repository: &str, actions: &[&str]) -> Value {
    json!({"organization": [], "repositories": [{"repository": repository, "actions": actions}]})
}

fn send(client: &Client, method: &str, path: &str, body: &Value) -> Response {
    let request = Request::new(method, path).header("Content-Type", "application/json");
    client.send(request.body(body.to_string()))
}

/// Creates a member with these permissions, as the owner, and signs the member in. Returns the
/// member's id and an API client.
fn member(server: &Server, permissions: &Value) -> (String, Client) {
    let body = json!({"email": EMAIL, "password": PASSWORD, "permissions": permissions});
    let id = Api::sign_in(server).post("/v1/members", &body).expect(201).field("id");
    (id, sign_in(server, PASSWORD).expect("signed in"))
}

fn sign_in(server: &Server, password: &str) -> Option<Client> {
    let client = Client::new(server.api());
    let answer = send(&client, "POST", "/v1/sessions", &json!({"email": EMAIL, "password": password}));
    let session = format!("Bearer {}", answer.field("session"));
    (answer.status == 201).then(|| client.with("Authorization", &session))
}

/// Returns a client of the repository host with a new token of this member.
fn token(server: &Server, session: &Client, repository: &str, scope: &[&str]) -> Client {
    let confirmation = json!({"action": "create_token", "password": PASSWORD});
    let confirmation = send(session, "POST", "/v1/confirmations", &confirmation).expect(201);
    let body = json!({"name": "ci", "scope": scope, "format": "generic", "repositories": [repository],
        "expires_at": null, "confirmation_token": confirmation.field("confirmation_token")});
    let made = send(session, "POST", "/v1/tokens", &body).expect(201);
    server.anonymous().basic(EMAIL, &made.field("secret"))
}

#[test]
fn an_invited_member_signs_in_and_works_with_its_own_password() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "team");
    repository.put(FILE, "hello").expect(201);
    let invitation = json!({"email": EMAIL, "permissions": actions(&repository.id, &["read"])});
    let code = Api::sign_in(&server).post("/v1/invitations", &invitation).expect(201).field("code");
    let client = Client::new(server.api());
    let path = format!("/v1/invitations/{code}/accept");
    let made = send(&client, "POST", &path, &json!({"name": "Dev", "password": PASSWORD})).expect(201);
    assert_eq!(made.field("email"), EMAIL);
    send(&client, "POST", &path, &json!({"password": PASSWORD})).expect(404);
    let me = sign_in(&server, PASSWORD).expect("signed in").get("/v1/me").expect(200).json();
    assert_eq!(me["repositories"][0]["actions"], json!(["read"]));
    let packages = server.anonymous().basic(EMAIL, PASSWORD);
    assert_eq!(packages.get(&repository.path(FILE)).expect(200).text(), "hello");
    let refused = packages.put(&repository.path(OTHER), "hello").expect(403);
    assert_eq!(refused.field("reason_code"), "scope_mismatch_repo");
}

#[test]
fn a_members_tokens_lose_revoked_permissions_at_the_next_request() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "clamped");
    repository.put(FILE, "hello").expect(201);
    let (id, session) = member(&server, &actions(&repository.id, &["read", "publish", "delete"]));
    let packages = token(&server, &session, &repository.id, &["read", "write"]);
    packages.put(&repository.path(OTHER), "hello").expect(201);
    let owner = Api::sign_in(&server);
    let set = |permissions: Value| {
        let body = json!({"permissions": permissions});
        owner.send("PUT", &format!("/v1/members/{id}/permissions"), &body).expect(200);
    };
    for left in [["read", "publish"], ["read", "delete"]] {
        set(actions(&repository.id, &left));
        packages.get(&repository.path(FILE)).expect(200);
        for method in ["PUT", "DELETE"] {
            let request = Request::new(method, &repository.path("org/example/a/3.0/a-3.0.jar")).body("x");
            let refused = packages.send(request).expect(403);
            assert_eq!(refused.field("reason_code"), "revoked-authority-clamp", "{left:?} {method}");
            assert!(refused.field("error").ends_with("7301"));
        }
    }
    set(actions(&repository.id, &["publish", "delete"]));
    assert!(packages.get(&repository.path(FILE)).expect(403).field("error").ends_with("2242"));
    set(actions("*", &["read", "publish", "delete"]));
    packages.put(&repository.path("org/example/a/3.0/a-3.0.jar"), "x").expect(201);
    owner.call("DELETE", &format!("/v1/members/{id}")).expect(204);
    packages.get(&repository.path(FILE)).expect(401);
    session.get("/v1/me").expect(401);
    assert!(sign_in(&server, PASSWORD).is_none());
}

#[test]
fn a_new_password_replaces_the_old_one_everywhere() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "reset");
    repository.put(FILE, "hello").expect(201);
    let (id, session) = member(&server, &actions(&repository.id, &["read"]));
    let packages =
        |password: &str| server.anonymous().basic(EMAIL, password).get(&repository.path(FILE)).status;
    let by_token = token(&server, &session, &repository.id, &["read"]);
    assert_eq!(packages(PASSWORD), 200);
    let code = Api::sign_in(&server)
        .call("POST", &format!("/v1/members/{id}/password-reset"))
        .expect(201)
        .field("reset_code");
    let path = format!("/v1/password-resets/{code}");
    let new = "another long password";
    let client = Client::new(server.api());
    send(&client, "POST", &path, &json!({"password": new})).expect(204);
    send(&client, "POST", &path, &json!({"password": new})).expect(404);
    session.get("/v1/me").expect(401);
    assert!(sign_in(&server, PASSWORD).is_none());
    assert!(sign_in(&server, new).is_some());
    assert_eq!((packages(PASSWORD), packages(new)), (401, 200));
    // Tokens do not depend on the password.
    by_token.get(&repository.path(FILE)).expect(200);
}
