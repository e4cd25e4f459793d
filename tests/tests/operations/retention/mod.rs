//! Retention policies. A run deletes exactly what its preview listed, in each format. Versions that
//! other versions need stay, and an undo restores each record. If a kill interrupts a run, the run
//! continues later and reaches the same result.

use crate::wheel;

mod formats;
mod large;
mod pages;
mod policies;
mod runs;

use std::collections::BTreeSet;

use packhouse_tests::Api;
use packhouse_tests::server::eventually;
use serde_json::{Value, json};

const POLICIES: &str = "/v1/retention-policies";

/// Creates a policy for these repositories and returns its id.
fn policy(api: &Api, repositories: Value, rule: Value) -> String {
    let mut body = json!({"name": "cleaning", "repositories": repositories, "delete": {"published_before_days": 0}, "max_deletes": 1000});
    body.as_object_mut().unwrap().extend(rule.as_object().unwrap().clone());
    let made = api.post(POLICIES, &body).expect(201).json();
    assert_eq!(made["mode"], "paused");
    made["id"].as_str().unwrap().to_owned()
}

fn preview(api: &Api, id: &str) -> Value {
    api.call("POST", &format!("{POLICIES}/{id}/preview")).expect(200).json()
}

fn enforce(api: &Api, id: &str) {
    let enforced = api.patch(&format!("{POLICIES}/{id}"), &json!({"mode": "enforced"})).expect(200).json();
    assert_eq!(enforced["mode"], "enforced");
}

fn runs(api: &Api, id: &str) -> Vec<Value> {
    let listed = api.call("GET", &format!("{POLICIES}/{id}/runs")).expect(200).json();
    listed["items"].as_array().unwrap().clone()
}

/// Runs an enforced policy and waits for its end.
fn run(api: &Api, id: &str) -> Value {
    let before = runs(api, id).len();
    api.call("POST", &format!("{POLICIES}/{id}/runs")).expect(202);
    eventually("the run has ended", || {
        let runs = runs(api, id);
        let ended = runs.iter().all(|run| run["ended_at"].is_i64());
        (runs.len() > before && ended).then(|| runs[0].clone())
    })
}

/// Returns the items of a preview or a list as `package version`.
fn named(items: &Value) -> BTreeSet<String> {
    let of = |item: &Value, field: &str| item[field].as_str().unwrap().to_owned();
    let items = items.as_array().unwrap().iter();
    items.map(|item| format!("{} {}", of(item, "package"), of(item, "version"))).collect()
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn trash(api: &Api, repository: &str) -> Value {
    let listed = api.call("GET", &format!("/v1/repositories/{repository}/trash?limit=200")).expect(200);
    listed.json()["items"].clone()
}

/// Restores everything from the trash.
fn restore_all(api: &Api, repository: &str) {
    for entry in trash(api, repository).as_array().unwrap() {
        let path = format!("/v1/repositories/{repository}/trash/{}/restore", entry["id"].as_str().unwrap());
        api.call("POST", &path).expect(200);
    }
}
