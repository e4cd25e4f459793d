//! Calls that create or extend a credential need a fresh confirmation of their action. The OpenAPI
//! description states this for each of these calls.

use std::collections::BTreeMap;

use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, Request, Response, Server, days_ahead};
use serde_json::{Value, json};

/// The calls whose confirmation can be used several times: method, path, action, and a valid body.
fn calls() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let digest = format!("sha256:{}", "ab".repeat(32));
    let member =
        json!({"email": "new@example.com", "password": PASSWORD, "permissions": {"repositories": []}});
    let sso = json!({"issuer": "https://login.example.com", "client_id": "packhouse"});
    let publisher = json!({
        "repository": "1", "provider": "github", "packages": ["*"], "scope": ["write"],
        "claims": {"repository_owner": "acme", "repository": "lib", "workflow": "release.yml"},
    });
    let hook =
        json!({"url": "https://hooks.example.com/", "events": ["package.published"], "repositories": "*"});
    let api_token = json!({
        "name": "ci", "owner": "me", "scopes": ["read"], "expires_at": days_ahead(1),
    });
    vec![
        ("PUT", "/v1/sso", "change_sign_in", sso),
        ("DELETE", "/v1/sso", "change_sign_in", Value::Null),
        ("POST", "/v1/trusted-publishers", "manage_publishers", publisher),
        ("POST", "/v1/members", "manage_members", member),
        ("POST", "/v1/members/1/password-reset", "manage_members", json!({})),
        ("DELETE", "/v1/members/1/totp", "manage_members", Value::Null),
        (
            "POST",
            "/v1/plugins",
            "manage_plugins",
            json!({"source": "oci://registry.example.com/x@sha256:00"}),
        ),
        ("POST", "/v1/plugins/maven/activate", "manage_plugins", json!({"digest": digest})),
        ("POST", "/v1/webhooks", "manage_webhooks", hook),
        ("POST", "/v1/api-tokens", "create_api_token", api_token),
    ]
}

/// Sends a call with this confirmation, or without one if `token` is `None`.
fn send(api: &Api, method: &str, path: &str, body: &Value, token: Option<&str>) -> Response {
    let mut request = Request::new(method, path);
    if let Some(token) = token {
        request = request.header("X-Confirmation-Token", token);
    }
    if !body.is_null() {
        request = request.header("Content-Type", "application/json").body(body.to_string());
    }
    api.client().send(request)
}

#[test]
fn a_call_without_a_fresh_confirmation_of_its_action_changes_nothing() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let other = api.confirm("create_token");
    for (method, path, action, body) in calls() {
        for token in [None, Some("pkh_x"), Some(other.as_str())] {
            let refused = send(&api, method, path, &body, token).expect(403);
            assert_eq!(refused.field("error"), "step_up_required", "{method} {path}");
            assert!(refused.field("message").contains(action), "{}", refused.text());
        }
        let token = api.confirm(action);
        let judged = send(&api, method, path, &body, Some(&token));
        assert!(!judged.text().contains("step_up_required"), "{method} {path}: {}", judged.text());
    }
    let members = api.call("GET", "/v1/members").expect(200).json();
    assert_eq!(members["items"].as_array().unwrap().len(), 2, "only the confirmed call created one");
}

#[test]
fn a_confirmation_is_good_for_several_calls_of_its_kind() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let token = api.confirm("manage_members");
    for number in 0..3 {
        let email = format!("m{number}@example.com");
        let body = json!({"email": email, "password": PASSWORD, "permissions": {"repositories": []}});
        send(&api, "POST", "/v1/members", &body, Some(&token)).expect(201);
    }
    let mut body =
        json!({"email": "last@example.com", "password": PASSWORD, "permissions": {"repositories": []}});
    body["confirmation_token"] = json!(token);
    send(&api, "POST", "/v1/members", &body, None).expect(201);
    // A confirmation belongs to its member. Another member's session cannot use it.
    let other = Api::sign_in_as(&server, "last@example.com", PASSWORD);
    let body = json!({"email": "x@example.com", "password": PASSWORD, "permissions": {"repositories": []}});
    let refused = send(&other, "POST", "/v1/members", &body, Some(&token)).expect(403);
    assert_eq!(refused.field("error"), "step_up_required");
}

#[test]
fn a_confirmation_of_an_action_in_the_specification_works_once() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = api.create_maven("lib", &json!({}));
    let body = json!({
        "name": "ci", "scope": ["read"], "format": "generic", "repositories": [repository], "expires_at": null,
        "confirmation_token": api.confirm("create_token"),
    });
    api.post("/v1/tokens", &body).expect(201);
    assert_eq!(api.post("/v1/tokens", &body).expect(401).field("error"), "step_up_required");
}

/// The description names the action of each call that needs a confirmation. Without a confirmation,
/// the server refuses exactly these calls.
#[test]
fn the_description_names_each_call_that_needs_a_confirmation() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let described = api.call("GET", "/v1/openapi.json").expect(200).json();
    let mut documented: BTreeMap<String, String> = BTreeMap::new();
    for (path, item) in described["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Some(action) = operation["x-confirmation"].as_str() {
                documented.insert(format!("{} {path}", method.to_uppercase()), action.to_owned());
            }
        }
    }
    let mut expected: BTreeMap<String, String> = [
        ("POST /v1/tokens", "create_token"),
        ("POST /v1/tokens/{id}/rotation", "rotate_token"),
        ("POST /v1/api-tokens/{id}/rotation", "rotate_token"),
        ("POST /v1/npm-logins/{id}/finish", "finish_npm_login"),
        ("PUT /v1/repositories/{id}/upstream-credentials", "set_upstream_credentials"),
        ("POST /v1/members/{id}/password-reset", "manage_members"),
        ("DELETE /v1/members/{id}/totp", "manage_members"),
        ("POST /v1/plugins/{format}/activate", "manage_plugins"),
    ]
    .into_iter()
    .map(|(call, action)| (call.to_owned(), action.to_owned()))
    .collect();
    for owner in ["subscribers", "subscriber-groups"] {
        for (method, rest) in
            [("POST", ""), ("PATCH", "/{key}"), ("DELETE", "/{key}"), ("POST", "/{key}/rotation")]
        {
            let call = format!("{method} /v1/{owner}/{{id}}/access-keys{rest}");
            expected.insert(call, "manage_access_keys".to_owned());
        }
    }
    for (method, path, action, _) in calls() {
        if !path.contains("/1/") && !path.contains("/maven/") {
            expected.insert(format!("{method} {path}"), action.to_owned());
        }
    }
    assert_eq!(documented, expected);
}

#[test]
fn a_rotation_of_another_members_token_revokes_it_and_returns_no_secret() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let repository = owner.create_maven("lib", &json!({"public": false}));
    let permissions = json!({"repositories": [{"repository": repository, "actions": ["read"]}]});
    let member = json!({"email": "m@example.com", "password": PASSWORD, "permissions": permissions});
    owner.post("/v1/members", &member).expect(201);
    let theirs =
        Api::sign_in_as(&server, "m@example.com", PASSWORD).create_token(&[&repository], &["read"], None);
    let read = |secret: &str| {
        server.anonymous().basic("m@example.com", secret).get("/repositories/lib/g/a/1/a-1.jar").status
    };
    assert_eq!(read(&theirs.secret), 404);
    let path = format!("/v1/tokens/{}/rotation", theirs.id);
    let body = json!({"overlap_hours": 24, "confirmation_token": owner.confirm("rotate_token")});
    let answer = owner.post(&path, &body).expect(201).json();
    assert!(answer.get("secret").is_none(), "{answer}");
    assert_eq!(answer["replaced"]["id"], json!(theirs.id));
    assert_eq!(read(&theirs.secret), 401);
    let listed = owner.call("GET", "/v1/tokens?member=m%40example.com").expect(200).json();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "a successor was created: {listed}");
    let again = json!({"confirmation_token": owner.confirm("rotate_token")});
    assert_eq!(owner.post(&path, &again).expect(409).field("error"), "token_revoked");
}
