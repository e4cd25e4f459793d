//! API tokens, with which programs call the management API for a member. A token does what its
//! owner may do at the moment and its scopes allow, and only on the API host.

use packhouse_tests::clock::JumpingClock;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, ApiToken, MavenRepository, Response, Server, days_ahead};
use serde_json::{Value, json};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const EMAIL: &str = "dev@example.com";

#[track_caller]
fn is(answer: &Response, status: u16, error: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (status, error), "{}", answer.text());
}

/// Creates a member with these permissions, as the owner, and signs the member in. Returns the
/// member's id and session.
fn member(server: &Server, email: &str, permissions: &Value) -> (String, Api) {
    let body = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    let id = Api::sign_in(server).post("/v1/members", &body).expect(201).field("id");
    (id, Api::sign_in_as(server, email, PASSWORD))
}

fn path(token: &ApiToken) -> String {
    format!("/v1/api-tokens/{}", token.id)
}

fn rotation(token: &ApiToken) -> String {
    format!("/v1/api-tokens/{}/rotation", token.id)
}

#[test]
fn a_token_acts_for_its_owner_within_its_scopes() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let body = json!({
        "name": "inventory", "owner": "me", "scopes": ["read", "webhooks"], "expires_at": days_ahead(365),
    });
    let made = api.post("/v1/api-tokens", &body).expect(201).json();
    let secret = made["secret"].as_str().unwrap();
    assert!(secret.starts_with("pka_"), "{made}");
    assert_eq!((&made["scopes"], &made["sensitive"]), (&json!(["read", "webhooks"]), &json!([])));
    assert_eq!((&made["state"], &made["owner_name"]), (&json!("active"), &json!(OWNER)));
    let token = ApiToken::new(server.api(), made["id"].as_str().unwrap(), secret);
    let me = token.client.get("/v1/me").expect(200).json();
    assert_eq!((&me["email"], &me["id"]), (&json!(OWNER), &made["owner"]));
    token.client.get("/v1/repositories").expect(200);
    token.client.get("/v1/webhooks").expect(200);
    let refused = token.send("POST", "/v1/repositories", &json!({}));
    is(&refused, 403, "scope_mismatch_api");
    assert!(refused.field("message").contains("repositories, all"), "{}", refused.text());
    is(&token.send("POST", "/v1/webhooks", &json!({})), 400, "invalid_request");
    let all = api.create_api_token("me", &["all"], &[]);
    let new = json!({"name": "lib", "format": "maven", "kind": "hosted"});
    all.send("POST", "/v1/repositories", &new).expect(201);
    let listed = api.call("GET", "/v1/api-tokens").expect(200);
    assert_eq!(listed.json()["items"].as_array().unwrap().len(), 2, "{}", listed.text());
    assert!(!listed.text().contains("pka_"), "{}", listed.text());
}

#[test]
fn a_token_is_unknown_to_the_repository_host() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "lib");
    repository.put(FILE, "hello").expect(201);
    let token = Api::sign_in(&server).create_api_token("me", &["all"], &[]);
    let path = repository.path(FILE);
    let bearer = format!("Bearer {}", token.secret);
    server.anonymous().with("Authorization", &bearer).get(&path).expect(401);
    for _ in 0..10 {
        for user in [OWNER, "__token__"] {
            server.anonymous().basic(user, &token.secret).get(&path).expect(401);
        }
    }
    // These attempts do not count as wrong passwords.
    server.anonymous().basic(OWNER, PASSWORD).get(&path).expect(200);
    server.anonymous().get(&format!("/repositories/lib/{}", token.secret));
    assert!(!server.log().contains(&token.secret));
}

#[test]
fn a_request_for_a_token_is_judged_field_by_field_and_needs_a_confirmation() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let with = |change: Value| {
        let mut body = json!({"name": "ci", "owner": "me", "scopes": ["read"], "expires_at": days_ahead(30)});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        api.post("/v1/api-tokens", &body)
    };
    is(&with(json!({"name": ""})), 400, "invalid_name");
    is(&with(json!({"owner": 7})), 400, "invalid_request");
    for scopes in [json!([]), json!(["admin"]), json!("read"), Value::Null] {
        is(&with(json!({"scopes": scopes})), 400, "invalid_scope");
    }
    for action in ["sudo", "create_api_token", "change_sign_in"] {
        is(&with(json!({"sensitive": [action]})), 400, "invalid_scope");
    }
    is(&with(json!({"expires_at": null})), 400, "api_token_must_expire");
    is(&with(json!({"expires_at": days_ahead(366)})), 400, "api_token_must_expire");
    let sensitive = json!({"expires_at": days_ahead(91), "sensitive": ["create_token"]});
    is(&with(sensitive), 400, "api_token_must_expire");
    is(&with(json!({"expires_at": 1000})), 400, "expires_at_in_past");
    is(&with(json!({"confirmation_token": "wrong"})), 403, "step_up_required");
    is(&with(json!({"owner": "12345"})), 404, "not_found");
    is(&with(json!({"unknown": 1})), 400, "invalid_request");
    with(json!({"expires_at": days_ahead(90), "sensitive": ["create_token"]})).expect(201);
}

#[test]
fn an_ended_token_is_refused_with_its_reason() {
    let clock = JumpingClock::new();
    let server = Server::with().clock(&clock).start();
    let api = Api::sign_in(&server);
    let refused = |token: &ApiToken, reason: &str| {
        let answer = token.client.get("/v1/me");
        is(&answer, 401, "not_signed_in");
        assert!(answer.field("message").contains(reason), "{}", answer.text());
    };
    let revoked = api.create_api_token("me", &["read"], &[]);
    revoked.client.get("/v1/me").expect(200);
    api.call("DELETE", &path(&revoked)).expect(204);
    api.call("DELETE", &path(&revoked)).expect(204);
    refused(&revoked, "revoked");
    let rotated = api.create_api_token("me", &["read"], &[]);
    let body = json!({"overlap_hours": 0, "confirmation_token": api.confirm("rotate_token")});
    api.post(&rotation(&rotated), &body).expect(201);
    refused(&rotated, "rotation");
    let expiring = api.create_api_token("me", &["read"], &[]);
    let damaged = expiring.secret.replacen("pka_", "pka_x", 1);
    refused(&ApiToken::new(server.api(), "", &damaged), "Sign in");
    clock.set(31 * 24 * 60 * 60);
    refused(&expiring, "expired");
}

#[test]
fn a_token_does_what_its_owner_may_do_at_the_moment() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let (id, dev) = member(&server, EMAIL, &json!({"organization": ["manage-repositories"]}));
    let token = dev.create_api_token("me", &["all"], &[]);
    let create = |name: &str| {
        let body = json!({"name": name, "format": "maven", "kind": "hosted"});
        token.send("POST", "/v1/repositories", &body)
    };
    create("one").expect(201);
    let rename = json!({"name": "other"});
    is(&token.send("PATCH", "/v1/organization", &rename), 403, "insufficient_permissions");
    let member = format!("/v1/members/{id}");
    owner.send("PUT", &format!("{member}/permissions"), &json!({"permissions": {}})).expect(200);
    is(&create("two"), 403, "insufficient_permissions");
    owner.patch(&member, &json!({"active": false})).expect(200);
    let refused = token.client.get("/v1/me");
    is(&refused, 401, "not_signed_in");
    assert!(refused.field("message").contains("suspended"), "{}", refused.text());
    owner.patch(&member, &json!({"active": true})).expect(200);
    token.client.get("/v1/me").expect(200);
    owner.call("DELETE", &member).expect(204);
    is(&token.client.get("/v1/me"), 401, "not_signed_in");
}

#[test]
fn a_token_does_only_the_sensitive_actions_that_it_names() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = api.create_maven("lib", &json!({}));
    let plain = api.create_api_token("me", &["all"], &[]);
    let trusted = api.create_api_token("me", &["all"], &["create_token", "manage_webhooks"]);
    let mut new = json!({
        "name": "ci", "scope": ["read"], "format": "generic", "repositories": [repository], "expires_at": null,
    });
    is(&plain.send("POST", "/v1/tokens", &new), 400, "missing_confirmation_token");
    for _ in 0..2 {
        trusted.send("POST", "/v1/tokens", &new).expect(201);
    }
    // A confirmation belongs to a session.
    new["confirmation_token"] = json!(api.confirm("create_token"));
    is(&plain.send("POST", "/v1/tokens", &new), 400, "missing_confirmation_token");
    let hook =
        json!({"url": "https://hooks.example.com/", "events": ["package.published"], "repositories": "*"});
    is(&plain.send("POST", "/v1/webhooks", &hook), 403, "step_up_required");
    let judged = trusted.send("POST", "/v1/webhooks", &hook);
    assert!(!judged.text().contains("step_up_required"), "{}", judged.text());
    let member = json!({"email": EMAIL, "password": PASSWORD, "permissions": {}});
    is(&trusted.send("POST", "/v1/members", &member), 403, "step_up_required");
    let sso = json!({"issuer": "https://login.example.com", "client_id": "packhouse"});
    is(&trusted.send("PUT", "/v1/sso", &sso), 403, "step_up_required");
}

#[test]
fn a_token_cannot_do_what_belongs_to_a_session() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let token = api.create_api_token("me", &["all"], &["rotate_token"]);
    let new = json!({"name": "ci", "owner": "me", "scopes": ["read"], "expires_at": days_ahead(1)});
    is(&token.send("POST", "/v1/api-tokens", &new), 403, "scope_mismatch_api");
    let confirm = json!({"action": "create_api_token", "password": PASSWORD});
    is(&token.send("POST", "/v1/confirmations", &confirm), 403, "scope_mismatch_api");
    is(&token.send("PATCH", "/v1/me", &json!({"name": "Other"})), 403, "scope_mismatch_api");
    for own in ["/v1/sessions", "/v1/api-tokens"] {
        is(&token.client.get(own), 403, "scope_mismatch_api");
    }
    is(&token.send("DELETE", &path(&token), &json!({})), 403, "scope_mismatch_api");
    token.client.get("/v1/me").expect(200);
    // The cookie of a browser never holds an API token.
    let cookie = format!("packhouse_session={}", token.secret);
    let client = packhouse_tests::Client::new(server.api()).with("Cookie", &cookie);
    is(&client.get("/v1/me"), 401, "not_signed_in");
}

#[test]
fn a_token_rotates_itself_and_keeps_its_expiry() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let token = api.create_api_token("me", &["read"], &["rotate_token"]);
    let other = api.create_api_token("me", &["read"], &[]);
    is(&other.send("POST", &rotation(&other), &json!({})), 400, "missing_confirmation_token");
    is(&token.send("POST", &rotation(&other), &json!({})), 403, "scope_mismatch_api");
    let later = json!({"expires_at": days_ahead(40)});
    is(&token.send("POST", &rotation(&token), &later), 403, "scope_mismatch_api");
    is(&token.send("POST", &rotation(&token), &json!({"expires_at": null})), 400, "api_token_must_expire");
    let listed = api.call("GET", "/v1/api-tokens").expect(200).json();
    let own = listed["items"].as_array().unwrap().iter().find(|one| one["id"] == json!(token.id)).unwrap();
    let made = token.send("POST", &rotation(&token), &json!({"overlap_hours": 1})).expect(201).json();
    for kept in ["name", "owner", "scopes", "sensitive", "expires_at"] {
        assert_eq!(made[kept], own[kept], "{kept}: {made}");
    }
    assert_eq!(made["replaced"]["id"], json!(token.id));
    token.client.get("/v1/me").expect(200);
    // The rotated token cannot outlive the end that the rotation has set.
    let late = token.send("POST", &rotation(&token), &json!({"overlap_hours": 0})).expect(201).json();
    assert_eq!(late["expires_at"], made["replaced"]["ends_at"], "{late}");
    let successor =
        ApiToken::new(server.api(), made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
    successor.client.get("/v1/me").expect(200);
    successor.send("POST", &rotation(&successor), &json!({"overlap_hours": 0})).expect(201);
    is(&successor.client.get("/v1/me"), 401, "not_signed_in");
}

#[test]
fn a_member_rotates_a_token_with_a_confirmation() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let token = api.create_api_token("me", &["read"], &["create_token"]);
    let rotate = |change: Value| {
        let mut body = json!({"confirmation_token": api.confirm("rotate_token")});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        api.post(&rotation(&token), &body)
    };
    is(&api.post(&rotation(&token), &json!({})), 400, "missing_confirmation_token");
    let wrong = json!({"confirmation_token": api.confirm("create_token")});
    is(&api.post(&rotation(&token), &wrong), 401, "step_up_required");
    is(&rotate(json!({"overlap_hours": 169})), 400, "invalid_overlap_hours");
    is(&rotate(json!({"expires_at": days_ahead(91)})), 400, "api_token_must_expire");
    let made = rotate(json!({"expires_at": days_ahead(2), "overlap_hours": 24})).expect(201).json();
    assert_eq!(made["sensitive"], json!(["create_token"]));
    is(&rotate(json!({"overlap_hours": 25})), 400, "overlap_exceeds_scheduled_end");
    rotate(json!({"overlap_hours": 0})).expect(201);
    is(&rotate(json!({})), 409, "token_revoked");
    let path = format!("/v1/api-tokens/{}/rotation", made["id"].as_str().unwrap());
    let body = json!({"overlap_hours": 168, "confirmation_token": api.confirm("rotate_token")});
    is(&api.post(&path, &body), 400, "overlap_exceeds_expiry");
    let body = json!({"confirmation_token": api.confirm("rotate_token")});
    is(&api.post("/v1/api-tokens/12345/rotation", &body), 404, "not_found");
}

#[test]
fn tokens_of_others_are_for_members_who_hold_as_much() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let (dev_id, dev) = member(&server, EMAIL, &json!({}));
    let manages = json!({"organization": ["manage-members"]});
    let (_, manager) = member(&server, "manager@example.com", &manages);
    let (of_owner, of_dev) =
        (owner.create_api_token("me", &["read"], &[]), dev.create_api_token("me", &["read"], &[]));
    let list = format!("/v1/api-tokens?owner={dev_id}");
    let listed = manager.call("GET", &list).expect(200).json();
    assert_eq!(listed["items"][0]["id"], json!(of_dev.id));
    dev.call("GET", &list).expect(200);
    let me = owner.call("GET", "/v1/me").expect(200).field("id");
    is(&dev.call("GET", &format!("/v1/api-tokens?owner={me}")), 403, "insufficient_permissions");
    is(&manager.call("GET", "/v1/api-tokens?owner=12345"), 404, "not_found");
    is(&dev.call("DELETE", &path(&of_owner)), 403, "insufficient_permissions");
    is(&manager.call("DELETE", &path(&of_owner)), 403, "role_mismatch");
    is(&manager.call("DELETE", "/v1/api-tokens/12345"), 404, "not_found");
    // The holder of the successor would act as the other member.
    let body = json!({"confirmation_token": manager.confirm("rotate_token")});
    is(&manager.post(&rotation(&of_dev), &body), 403, "role_mismatch");
    manager.call("DELETE", &path(&of_dev)).expect(204);
    is(&of_dev.client.get("/v1/me"), 401, "not_signed_in");
    of_owner.client.get("/v1/me").expect(200);
}

#[test]
fn the_number_of_valid_tokens_of_an_owner_is_bounded() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let first = api.create_api_token("me", &["read"], &[]);
    for _ in 1..100 {
        api.create_api_token("me", &["read"], &[]);
    }
    let body = json!({"name": "more", "owner": "me", "scopes": ["read"], "expires_at": days_ahead(1)});
    is(&api.post("/v1/api-tokens", &body), 409, "too_many_api_tokens");
    api.call("DELETE", &path(&first)).expect(204);
    api.post("/v1/api-tokens", &body).expect(201);
}

#[test]
fn the_audit_log_names_the_token() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let token = api.create_api_token("me", &["repositories"], &[]);
    let new = json!({"name": "lib", "format": "maven", "kind": "hosted"});
    token.send("POST", "/v1/repositories", &new).expect(201);
    is(&token.client.get("/v1/webhooks"), 403, "scope_mismatch_api");
    let events = |query: &str| {
        api.call("GET", &format!("/v1/audit-events?{query}")).expect(200).json()["items"].clone()
    };
    let credential = format!("api-token:{}", token.id);
    let made = &events("action=create_repository")[0];
    assert_eq!((&made["actor"], &made["credential"]), (&json!(OWNER), &json!(credential)));
    assert_eq!(events("action=create_api_token")[0]["subject"], json!("a test's"));
    let text = events("limit=200").to_string();
    assert!(!text.contains("pka_"), "{text}");
}
