//! The OpenAPI document and docs/API.md: each names every call, and no other.

use std::collections::BTreeSet;

use serde_json::Value;

use super::world::World;

/// The page for people.
const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/API.md"));
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/// Each operation of the document, as `GET /v1/me`.
async fn operations() -> Vec<(String, Value)> {
    let document = World::new().await.get("", "/v1/openapi.json").await.ok(200);
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            found.push((format!("{} {path}", method.to_uppercase()), operation.clone()));
        }
    }
    found
}

/// The calls that a text names: `GET /v1/sso`, or `GET, PUT /v1/sso` for two.
fn named(text: &str) -> BTreeSet<String> {
    let (mut calls, mut methods) = (BTreeSet::new(), Vec::new());
    for word in text.split(|letter: char| letter.is_whitespace() || letter == '`') {
        let path = word.split(['?', ',', ')']).next().unwrap_or_default();
        match word.trim_end_matches(',') {
            "" => {}
            method if METHODS.contains(&method) => methods.push(method),
            _ if path.starts_with("/v1/") => {
                calls.extend(methods.drain(..).map(|method| format!("{method} {path}")));
            }
            _ => methods.clear(),
        }
    }
    calls
}

#[tokio::test]
async fn each_operation_has_a_name_of_its_own() {
    let mut names = BTreeSet::new();
    for (call, operation) in operations().await {
        let name = operation["operationId"].as_str().unwrap().to_owned();
        let said = |word: &str| word.bytes().all(|letter| letter.is_ascii_lowercase());
        assert!(name.contains('_') && name.split('_').all(said), "{call}: {name} is not verb_thing");
        assert!(operation["summary"].is_string(), "{call}: what it does is not said");
        assert!(names.insert(name.clone()), "{call}: another is called {name} as well");
    }
}

#[tokio::test]
async fn the_page_names_every_call_and_no_other() {
    let served: BTreeSet<String> = operations().await.into_iter().map(|(call, _)| call).collect();
    let apart: Vec<_> = served.symmetric_difference(&named(PAGE)).cloned().collect();
    assert_eq!(apart, [""; 0], "the document and docs/API.md differ");
}

#[test]
fn calls_are_found_in_a_text() {
    let text = "`GET, PUT /v1/a`, `POST\n/v1/b/{id}?x=&y=` and `DELETE …/b`, /v1/c (`GET /v1/d`)";
    let found = named(text).into_iter().collect::<Vec<_>>();
    assert_eq!(found, ["GET /v1/a", "GET /v1/d", "POST /v1/b/{id}", "PUT /v1/a"]);
}
