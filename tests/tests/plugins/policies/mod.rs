//! Policies: four policies over publishes, proxies and groups in four formats, with the output of
//! real clients. Also misbehaving components, previews and exceptions. The server drops cached
//! responses when the rules change.

use crate::wheel;

mod candidate;
mod clients;
mod hostile;
mod left_out;
mod pages;
mod preview;
mod proxies;
mod publishes;
mod recordings;
mod rules;

use packhouse_tests::{Api, Response};
use serde_json::{Value, json};

const POLICIES: &str = "/v1/policies";

/// Creates a paused policy and returns its id.
#[track_caller]
fn paused(api: &Api, component: &str, settings: Value, repositories: Value) -> String {
    let body =
        json!({"name": "ours", "component": component, "settings": settings, "repositories": repositories});
    let made = api.post(POLICIES, &body).expect(201).json();
    assert_eq!((&made["mode"], &made["failure"]), (&json!("paused"), &Value::Null));
    made["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn preview(api: &Api, id: &str) -> Value {
    api.call("POST", &format!("{POLICIES}/{id}/preview")).expect(200).json()
}

#[track_caller]
fn mode(api: &Api, id: &str, mode: &str) {
    let changed = api.patch(&format!("{POLICIES}/{id}"), &json!({"mode": mode})).expect(200).json();
    assert_eq!(changed["mode"], mode);
}

/// Creates a policy, previews it and enforces it. Returns its id.
#[track_caller]
fn enforced(api: &Api, component: &str, settings: Value, repositories: Value) -> String {
    let id = paused(api, component, settings, repositories);
    preview(api, &id);
    mode(api, &id, "enforced");
    id
}

#[track_caller]
fn remove(api: &Api, id: &str) {
    api.call("DELETE", &format!("{POLICIES}/{id}")).expect(204);
}

/// Checks that the response is a policy's 403 with this text.
#[track_caller]
fn denied(answer: &Response, words: &str) {
    let text = answer.text();
    assert_eq!(answer.status, 403, "{text}");
    assert!(text.contains("policy_denied") && text.contains(words), "{words:?} is not in {text}");
    assert!(text.contains("(policy ours)"), "the text names the policy: {text}");
}

fn in_an_hour() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    now.as_millis() as i64 + 3_600_000
}

/// Creates an exception for all versions of a package. Returns the exception's id.
#[track_caller]
fn except(api: &Api, id: &str, package: &str) -> String {
    let body = json!({"package": package, "reason": "seen and accepted", "until": in_an_hour()});
    api.post(&format!("{POLICIES}/{id}/exceptions"), &body).expect(201).field("id")
}

#[track_caller]
fn end_exception(api: &Api, id: &str, exception: &str) {
    api.call("DELETE", &format!("{POLICIES}/{id}/exceptions/{exception}")).expect(204);
}

/// Settings with which each of the four policies refuses `lib`, and the text of the refusal.
fn refusals() -> [(&'static str, Value, &'static str); 4] {
    [
        ("provenance", json!({"identities": ["https://github.com/acme/*"]}), "has no provenance"),
        ("licences", json!({"allow": ["MIT"], "unknown": "deny"}), "licence"),
        ("names", json!({"claimed": ["*lib*"], "publish": ["acme-*"]}), "name"),
        ("least-age", json!({"hours": 24}), "younger than 24 h"),
    ]
}
