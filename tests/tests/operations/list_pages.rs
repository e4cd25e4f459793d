//! Pagination of every list of the API.

use packhouse_tests::{Api, Server};
use serde_json::{Value, json};

/// Returns the schema of the success response, with references resolved.
fn answer<'a>(document: &'a Value, operation: &'a Value) -> &'a Value {
    let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    match schema["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).expect("the schema exists"),
        None => schema,
    }
}

/// Returns the list calls of the OpenAPI document: paths whose GET returns `items` and `next`, each
/// with its query parameters.
fn lists(document: &Value) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let operation = &item["get"];
        let fields = &answer(document, operation)["properties"];
        if fields["items"].is_null() || fields["next"].is_null() {
            continue;
        }
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        let query = parameters.iter().filter(|parameter| parameter["in"] == "query");
        found.push((path.clone(), query.map(|one| one["name"].as_str().unwrap().to_owned()).collect()));
    }
    found
}

#[test]
fn every_list_takes_limit_and_after() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let document = api.call("GET", "/v1/openapi.json").expect(200).json();
    let lists = lists(&document);
    assert!(lists.len() > 20, "{lists:?}");
    let without: Vec<_> = lists
        .iter()
        .filter(|(_, query)| !["limit", "after"].iter().all(|name| query.iter().any(|one| one == name)))
        .collect();
    assert!(without.is_empty(), "{without:?}");
    for (path, _) in lists.iter().filter(|(path, _)| !path.contains('{')) {
        let answer = api.call("GET", &format!("{path}?limit=1"));
        assert!([200, 400].contains(&answer.status), "{path}: {}", answer.text());
        if answer.status == 200 {
            assert!(answer.json()["items"].as_array().unwrap().len() <= 1, "{path}");
            assert_eq!(
                api.call("GET", &format!("{path}?limit=0")).expect(400).field("error"),
                "invalid_request"
            );
        }
    }
}

#[test]
fn lists_in_memory_are_read_page_by_page() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    for path in ["/v1/plugins", "/v1/formats"] {
        let whole = api.call("GET", path).expect(200).json();
        assert_eq!(whole["next"], Value::Null, "{path}");
        let (mut items, mut after) = (Vec::new(), String::new());
        loop {
            let page = api.call("GET", &format!("{path}?limit=1{after}")).expect(200).json();
            items.extend(page["items"].as_array().unwrap().clone());
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={}", next.replace(' ', "%20").replace(':', "%3A"));
        }
        let names = |items: &[Value]| {
            items.iter().map(|one| json!([one["format"], one["digest"]])).collect::<Vec<_>>()
        };
        assert!(items.len() > 1, "{path}");
        assert_eq!(names(&items), names(whole["items"].as_array().unwrap()), "{path}");
    }
}
