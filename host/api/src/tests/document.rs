//! Tests of the OpenAPI document: each operation has a unique name and a summary.

use std::collections::BTreeSet;

use serde_json::Value;

use super::test_api::TestApi;

/// Operations of the document, named like `GET /v1/me`.
async fn operations() -> Vec<(String, Value)> {
    let document = TestApi::new().await.get("", "/v1/openapi.json").await.ok(200);
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            found.push((format!("{} {path}", method.to_uppercase()), operation.clone()));
        }
    }
    found
}

#[tokio::test]
async fn each_operation_has_a_unique_name() {
    let mut names = BTreeSet::new();
    for (call, operation) in operations().await {
        let name = operation["operationId"].as_str().unwrap().to_owned();
        let is_lowercase = |word: &str| word.bytes().all(|letter| letter.is_ascii_lowercase());
        assert!(name.contains('_') && name.split('_').all(is_lowercase), "{call}: {name} is not verb_thing");
        assert!(operation["summary"].is_string(), "{call}: the summary is missing");
        assert!(names.insert(name.clone()), "{call}: another is called {name} as well");
    }
}

/// The page docs/reference/api.md is generated from this document.
#[tokio::test]
async fn the_generated_document_has_every_operation() {
    let reference = crate::openapi_document().unwrap();
    for (call, _) in operations().await {
        let (method, path) = call.split_once(' ').unwrap();
        assert!(reference["paths"][path][method.to_lowercase()].is_object(), "{call} is missing");
    }
}
