//! Service accounts: accounts of programs, which act through API tokens. Nobody grants them more
//! than they hold, and they hold no password, no session and no token for repositories.

use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, Client, Request, Response, Server};
use serde_json::{Value, json};

const ACCOUNTS: &str = "/v1/service-accounts";

#[track_caller]
fn is(answer: &Response, status: u16, error: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (status, error), "{}", answer.text());
}

fn path(account: &str) -> String {
    format!("{ACCOUNTS}/{account}")
}

/// Creates a service account with these permissions; returns its id.
#[track_caller]
fn account(api: &Api, name: &str, permissions: &Value) -> String {
    api.post(ACCOUNTS, &json!({"name": name, "permissions": permissions})).expect(201).field("id")
}

/// Creates a member with these permissions, as the owner, and signs the member in.
fn member(server: &Server, email: &str, permissions: &Value) -> Api {
    let body = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    Api::sign_in(server).post("/v1/members", &body).expect(201);
    Api::sign_in_as(server, email, PASSWORD)
}

fn ids(listed: &Value) -> Vec<&str> {
    listed["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[test]
fn a_service_account_has_a_name_permissions_and_teams() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let repository = owner.create_maven("lib", &json!({}));
    let reads = json!({"repositories": [{"repository": repository, "actions": ["read"]}]});
    let team = json!({"name": "builders", "permissions": {"organization": ["manage-repositories"]}});
    let team = owner.post("/v1/teams", &team).expect(201).field("id");
    let body = json!({"name": "inventory", "permissions": reads, "teams": [team]});
    let made = owner.post(ACCOUNTS, &body).expect(201).json();
    let id = made["id"].as_str().unwrap();
    assert_eq!((&made["name"], &made["teams"]), (&json!("inventory"), &json!([team])));
    assert_eq!(made["permissions"]["repositories"], reads["repositories"]);
    assert_eq!(made["effective_permissions"]["organization"], json!(["manage-repositories"]));
    assert_eq!(owner.call("GET", &path(id)).expect(200).json(), made);
    assert_eq!(owner.call("GET", ACCOUNTS).expect(200).json(), json!({"items": [made], "next": null}));

    is(&owner.post(ACCOUNTS, &body), 409, "service_account_already_exists");
    for name in ["", "ci@example.com", "a\u{202e}b"] {
        is(&owner.post(ACCOUNTS, &json!({"name": name, "permissions": {}})), 400, "invalid_name");
    }
    let unknown = json!({"name": "other", "permissions": {}, "teams": ["12345"]});
    is(&owner.post(ACCOUNTS, &unknown), 400, "invalid_request");
    let other = account(&owner, "other", &json!({}));
    is(&owner.patch(&path(&other), &json!({"name": "inventory"})), 409, "service_account_already_exists");
    let changed = json!({"name": "stock", "teams": [], "permissions": {}});
    let changed = owner.patch(&path(id), &changed).expect(200).json();
    assert_eq!((&changed["name"], &changed["teams"]), (&json!("stock"), &json!([])));
    assert_eq!(changed["effective_permissions"], json!({"organization": [], "repositories": []}));
    owner.call("DELETE", &path(&other)).expect(204);
    is(&owner.call("GET", &path(&other)), 404, "not_found");
}

#[test]
fn a_person_is_not_a_service_account_and_a_service_account_is_not_a_person() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let me = owner.call("GET", "/v1/me").expect(200).field("id");
    let id = account(&owner, "ci", &json!({}));
    for (method, body) in [("GET", Value::Null), ("PATCH", json!({"name": "x"})), ("DELETE", Value::Null)] {
        let answer = match body {
            Value::Null => owner.call(method, &path(&me)),
            body => owner.send(method, &path(&me), &body),
        };
        is(&answer, 404, "not_found");
    }
    let members = owner.call("GET", "/v1/members").expect(200).json();
    assert_eq!(ids(&members), [me]);
    let sign_in = json!({"email": format!("service-account:{id}"), "password": ""}).to_string();
    let request = Request::new("POST", "/v1/sessions").header("Content-Type", "application/json");
    is(&Client::new(server.api()).send(request.body(sign_in)), 401, "invalid_credentials");
}

#[test]
fn a_program_acts_as_its_service_account() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let id = account(&owner, "deployer", &json!({"organization": ["manage-repositories"]}));
    let token = owner.create_api_token(&id, &["all"], &[]);
    let new = json!({"name": "lib", "format": "maven", "kind": "hosted"});
    token.send("POST", "/v1/repositories", &new).expect(201);
    is(&token.client.get("/v1/audit-events"), 403, "insufficient_permissions");
    let made = owner.call("GET", "/v1/audit-events?action=create_repository").expect(200).json();
    let made = &made["items"][0];
    assert_eq!(made["actor"], json!("deployer"));
    assert_eq!(made["credential"], json!(format!("api-token:{}", token.id)));
    let listed = owner.call("GET", &format!("/v1/api-tokens?owner={id}")).expect(200).json();
    let listed = &listed["items"][0];
    assert_eq!((&listed["owner"], &listed["owner_name"]), (&json!(id), &json!("deployer")));
    owner.patch(&path(&id), &json!({"permissions": {}})).expect(200);
    let other = json!({"name": "other", "format": "maven", "kind": "hosted"});
    is(&token.send("POST", "/v1/repositories", &other), 403, "insufficient_permissions");
    owner.call("DELETE", &path(&id)).expect(204);
    is(&token.client.get("/v1/me"), 401, "not_signed_in");
}

#[test]
fn a_service_account_with_more_than_the_actor_holds_is_refused() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let repository = owner.create_maven("lib", &json!({}));
    let permission = |actions: &[&str]| json!([{"repository": repository, "actions": actions}]);
    let held = json!({"organization": ["manage-members"], "repositories": permission(&["read"])});
    let manager = member(&server, "manager@example.com", &held);
    let reads = json!({"repositories": permission(&["read"])});
    let publishes = json!({"repositories": permission(&["read", "publish"])});
    is(&manager.post(ACCOUNTS, &json!({"name": "a", "permissions": publishes})), 403, "role_mismatch");
    let team = json!({"name": "publishers", "permissions": publishes});
    let team = owner.post("/v1/teams", &team).expect(201).field("id");
    let joined = json!({"name": "a", "permissions": {}, "teams": [team]});
    is(&manager.post(ACCOUNTS, &joined), 403, "role_mismatch");
    let small = account(&manager, "small", &reads);
    is(&manager.patch(&path(&small), &json!({"permissions": publishes})), 403, "role_mismatch");
    is(&manager.patch(&path(&small), &json!({"teams": [team]})), 403, "role_mismatch");
    manager.create_api_token(&small, &["read"], &[]);

    // An account that holds more is out of reach, and its team counts.
    let large = account(&owner, "large", &json!({}));
    owner.patch(&path(&large), &json!({"teams": [team]})).expect(200);
    is(&manager.patch(&path(&large), &json!({"name": "mine"})), 403, "role_mismatch");
    is(&manager.call("DELETE", &path(&large)), 403, "role_mismatch");
    let body = json!({
        "name": "a", "owner": large, "scopes": ["read"], "expires_at": packhouse_tests::days_ahead(1),
    });
    is(&manager.post("/v1/api-tokens", &body), 403, "role_mismatch");
    let token = owner.create_api_token(&large, &["read"], &[]);
    is(&manager.call("DELETE", &format!("/v1/api-tokens/{}", token.id)), 403, "role_mismatch");

    let dev = member(&server, "dev@example.com", &json!({"repositories": permission(&["read", "publish"])}));
    is(&dev.post(ACCOUNTS, &json!({"name": "a", "permissions": {}})), 403, "insufficient_permissions");
    is(&dev.call("GET", ACCOUNTS), 403, "insufficient_permissions");
    is(&dev.post("/v1/api-tokens", &body), 403, "role_mismatch");
}

#[test]
fn a_service_account_manages_the_server_only_if_its_permissions_say_so() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let owns = json!({"organization": ["manage-owner-account", "manage-members"]});
    let id = account(&owner, "admin", &owns);
    let token = owner.create_api_token(&id, &["all"], &["manage_members"]);
    is(&token.client.get("/v1/plugins"), 403, "insufficient_permissions");
    token.client.get("/v1/audit-events").expect(200);
    // It cannot make a person who would manage the server.
    let person = json!({"email": "new@example.com", "password": PASSWORD, "permissions": owns});
    is(&token.send("POST", "/v1/members", &person), 403, "role_mismatch");
    let me = owner.call("GET", "/v1/me").expect(200).field("id");
    is(&token.send("POST", &format!("/v1/members/{me}/password-reset"), &json!({})), 403, "role_mismatch");
    let named = json!({"organization": ["manage-server", "manage-owner-account", "manage-members"]});
    owner.patch(&path(&id), &json!({"permissions": named})).expect(200);
    token.client.get("/v1/plugins").expect(200);
}

#[test]
fn invitations_of_a_service_account_end_with_a_change_of_its_permissions() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let id = account(&owner, "hr", &json!({"organization": ["manage-members", "manage-repositories"]}));
    let token = owner.create_api_token(&id, &["all"], &[]);
    let invitation = json!({"email": "new@example.com", "permissions": {}});
    let code = token.send("POST", "/v1/invitations", &invitation).expect(201).field("code");
    owner.patch(&path(&id), &json!({"permissions": {"organization": ["manage-members"]}})).expect(200);
    let accept = format!("/v1/invitations/{code}/accept");
    let request = Request::new("POST", &accept).header("Content-Type", "application/json");
    let password = json!({"password": "another password"}).to_string();
    is(&Client::new(server.api()).send(request.body(password)), 404, "not_found");
}

#[test]
fn a_service_account_has_no_repository_tokens_and_can_make_service_keys() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let repository = owner.create_maven("lib", &json!({}));
    let writes = json!([{"repository": repository, "actions": ["read", "publish", "delete"]}]);
    let id = account(&owner, "release-bot", &json!({"repositories": writes}));
    let token = owner.create_api_token(&id, &["tokens"], &["create_token"]);
    let mut new = json!({
        "name": "ci", "scope": ["read", "write"], "format": "generic", "repositories": [repository],
        "expires_at": packhouse_tests::days_ahead(1),
    });
    is(&token.send("POST", "/v1/tokens", &new), 403, "role_mismatch");
    new["backing"] = json!({"kind": "repo", "id": repository});
    let made = token.send("POST", "/v1/tokens", &new).expect(201).json();
    assert_eq!((&made["owner"], &made["created_by"]), (&Value::Null, &json!("release-bot")));
    let file = "/repositories/lib/org/example/a/1.0/a-1.0.jar";
    let secret = made["secret"].as_str().unwrap();
    server.anonymous().basic("__token__", secret).put(file, "hello").expect(201);
}
