//! Webhooks: the rights to manage them, invalid settings, and values that the API never returns.

use packhouse_tests::database::sqlite;
use packhouse_tests::{Api, Server};
use serde_json::{Value, json};

use super::receiver::Receiver;
use super::{Hook, WEBHOOKS, allowing};

const PASSWORD: &str = "another long password";

fn member(server: &Server, owner: &Api, email: &str, organization: &[&str]) -> Api {
    let permissions = json!({"organization": organization, "repositories": [{"repository": "*", "actions": ["read", "publish", "delete"]}]});
    owner
        .post("/v1/members", &json!({"email": email, "password": PASSWORD, "permissions": permissions}))
        .expect(201);
    Api::sign_in_as(server, email, PASSWORD)
}

#[test]
fn invalid_webhooks_and_members_without_account_rights_are_refused() {
    let server = allowing().start();
    let owner = Api::sign_in(&server);
    let good =
        json!({"url": "https://hooks.example/x", "events": ["package.published"], "repositories": "*"});
    let made = owner.post(WEBHOOKS, &good).expect(201).json();
    let id = made["id"].as_str().unwrap();
    let other = member(&server, &owner, "other@example.com", &["manage-repositories", "manage-members"]);
    let path = format!("{WEBHOOKS}/{id}");
    for (method, path) in [
        ("GET", WEBHOOKS.to_owned()),
        ("GET", path.clone()),
        ("DELETE", path.clone()),
        ("POST", format!("{path}/test")),
        ("GET", format!("{path}/deliveries")),
        ("POST", format!("{path}/deliveries/1/redelivery")),
        // The server refuses a caller without the right before it looks the webhook up.
        ("GET", format!("{WEBHOOKS}/1")),
    ] {
        let refused = other.call(method, &path).expect(403);
        assert_eq!(refused.field("error"), "insufficient_permissions", "{method} {path}");
    }
    other.post(WEBHOOKS, &good).expect(403);
    other.patch(&path, &json!({"state": "paused"})).expect(403);

    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body
    };
    for body in [
        with("url", json!("ftp://hooks.example/")),
        with("url", json!("hooks.example")),
        with("url", json!("https://me:secret@hooks.example/")),
        with("url", json!("https://hooks.example/#part")),
        with("url", json!(7)),
        with("url", json!(format!("https://hooks.example/{}", "x".repeat(2048)))),
        with("events", json!([])),
        with("events", json!("package.published")),
        with("events", json!(["package.renamed"])),
        with("events", json!(["package.published", "package.published"])),
        with("repositories", json!([])),
        with("repositories", json!(["1"])),
        with("repositories", json!("all")),
        with("repositories", Value::Null),
        with("secret", json!("mine")),
        json!({"url": "https://hooks.example/x", "events": ["package.published"]}),
        json!({}),
    ] {
        assert_eq!(owner.post(WEBHOOKS, &body).expect(400).field("error"), "invalid_request", "{body}");
    }
    for body in [
        json!({"state": "off"}),
        json!({"url": "http://10.0.0.1/"}),
        json!({"events": []}),
        json!({"id": "1"}),
    ] {
        assert_eq!(owner.patch(&path, &body).expect(400).field("error"), "invalid_request", "{body}");
    }
    for (method, path) in [
        ("GET", format!("{WEBHOOKS}/1")),
        ("GET", format!("{WEBHOOKS}/x")),
        ("DELETE", format!("{WEBHOOKS}/1")),
        ("POST", format!("{WEBHOOKS}/1/test")),
        ("GET", format!("{WEBHOOKS}/1/deliveries")),
        ("POST", format!("{path}/deliveries/1/redelivery")),
        ("POST", format!("{path}/deliveries/x/redelivery")),
    ] {
        assert_eq!(owner.call(method, &path).expect(404).field("error"), "not_found", "{method} {path}");
    }
    assert_eq!(owner.patch(&format!("{WEBHOOKS}/1"), &json!({})).expect(404).field("error"), "not_found");

    // Lists are paginated, and the limit is fifty webhooks.
    for _ in 0..49 {
        owner.post(WEBHOOKS, &good).expect(201);
    }
    assert_eq!(owner.post(WEBHOOKS, &good).expect(409).field("error"), "too_many_webhooks");
    let page = owner.call("GET", &format!("{WEBHOOKS}?limit=30")).expect(200).json();
    assert_eq!(page["items"].as_array().unwrap().len(), 30);
    let next = page["next"].as_str().unwrap();
    let rest = owner.call("GET", &format!("{WEBHOOKS}?limit=30&after={next}")).expect(200).json();
    assert_eq!(rest["items"].as_array().unwrap().len(), 20);
    assert!(rest["next"].is_null());
    owner.call("DELETE", &path).expect(204);
    owner.call("GET", &path).expect(404);
    owner.post(WEBHOOKS, &good).expect(201);
}

#[test]
fn a_secret_is_displayed_once_and_stored_nowhere() {
    let server = allowing().env("PACKHOUSE_LOG", "debug").start();
    let (api, receiver) = (Api::sign_in(&server), Receiver::start());
    let hook = Hook::create(&api, &receiver.url(), &["repository.created"], json!("*"));
    assert!(hook.secret.starts_with("whsec_") && hook.secret.len() == 50, "{}", hook.secret);
    api.call("POST", &format!("{}/test", hook.path())).expect(202);
    receiver.expect("webhook.test", &hook.id);
    let bare = hook.secret.strip_prefix("whsec_").unwrap();
    for path in [
        WEBHOOKS.to_owned(),
        hook.path(),
        format!("{}/deliveries", hook.path()),
        "/v1/audit-events".to_owned(),
    ] {
        assert!(!api.call("GET", &path).text().contains(bare), "{path}");
    }
    assert!(!server.log().contains(bare));
    let stored = sqlite(&server, "SELECT secret FROM webhooks");
    assert!(stored.contains("v1.") && !stored.contains(bare), "{stored}");
    // The audit log contains the actions.
    api.call("DELETE", &hook.path()).expect(204);
    let audit = api.call("GET", "/v1/audit-events").expect(200).text();
    for action in ["create_webhook", "test_webhook", "delete_webhook"] {
        assert!(audit.contains(action), "{action}");
    }
}
