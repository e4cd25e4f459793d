//! Scopes of API tokens. The OpenAPI document names the scopes that open each operation, and the
//! server accepts exactly these.

use packhouse_tests::{Api, ApiToken, Request, Response, Server};
use serde_json::Value;

const SCOPES: [&str; 11] = [
    "read",
    "repositories",
    "packages",
    "members",
    "tokens",
    "policies",
    "webhooks",
    "organization",
    "plugins",
    "scim",
    "all",
];

/// Operation of the OpenAPI document.
struct Operation {
    method: String,
    path: String,
    description: Value,
}

impl Operation {
    fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    fn scopes(&self) -> Vec<&str> {
        let scopes = self.description["x-scope"].as_array();
        let scopes = scopes.unwrap_or_else(|| panic!("{} names no scopes", self.name()));
        scopes.iter().map(|scope| scope.as_str().unwrap()).collect()
    }

    fn is_for_anyone(&self) -> bool {
        self.description["x-right"] == "anyone"
    }

    /// Sends a request with this token. Its parameters name nothing that exists, except that the
    /// token itself is the only one that it may rotate.
    fn send(&self, token: &ApiToken) -> Response {
        let id = if self.path.starts_with("/v1/api-tokens/") { token.id.as_str() } else { "1" };
        let mut path = String::new();
        for segment in self.path.split('/').skip(1) {
            path.push('/');
            path.push_str(if segment.starts_with('{') { id } else { segment });
        }
        let mut request = Request::new(&self.method, &path);
        if let Some(content) = self.description["requestBody"]["content"].as_object() {
            let json = "application/json";
            let kind = if content.contains_key(json) { json } else { content.keys().next().unwrap() };
            request = request.header("Content-Type", kind).body("{}");
        }
        token.client.send(request)
    }
}

fn operations(api: &Api) -> Vec<Operation> {
    let document = api.call("GET", "/v1/openapi.json").expect(200).json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, description) in item.as_object().unwrap() {
            let (method, path) = (method.to_uppercase(), path.clone());
            operations.push(Operation { method, path, description: description.clone() });
        }
    }
    operations
}

/// Returns whether the server refused a token because of its scopes.
fn is_out_of_scope(answer: &Response) -> bool {
    answer.status == 403 && answer.text().contains("This API token may not do this")
}

#[test]
fn every_operation_names_its_right_and_the_scopes_that_open_it() {
    let server = Server::start();
    for operation in operations(&Api::sign_in(&server)) {
        let (name, scopes) = (operation.name(), operation.scopes());
        assert!(!operation.description["x-right"].is_null(), "{name} names no right");
        assert!(scopes.iter().all(|scope| SCOPES.contains(scope)), "{name}: {scopes:?}");
        let resource = operation.path.split('/').nth(2).unwrap();
        let belongs_to_session = ["sessions", "confirmations", "me", "api-tokens"].contains(&resource);
        match name.as_str() {
            "GET /v1/me" | "POST /v1/api-tokens/{id}/rotation" => assert_eq!(scopes, SCOPES, "{name}"),
            _ if operation.is_for_anyone() || belongs_to_session => {
                assert!(scopes.is_empty(), "{name}: {scopes:?}");
            }
            _ => {
                assert!(scopes.contains(&"all") && scopes.len() >= 2, "{name}: {scopes:?}");
                let reads = operation.method == "GET" || operation.path.starts_with("/v1/query");
                assert_eq!(scopes.contains(&"read"), reads, "{name}: {scopes:?}");
            }
        }
    }
}

#[test]
fn a_token_opens_exactly_the_operations_of_its_scope() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let tokens: Vec<_> =
        SCOPES.iter().map(|scope| (*scope, api.create_api_token("me", &[scope], &[]))).collect();
    for operation in operations(&api).iter().filter(|operation| !operation.is_for_anyone()) {
        let scopes = operation.scopes();
        for (scope, token) in &tokens {
            let answer = operation.send(token);
            let is_open = scopes.contains(scope);
            assert_eq!(
                is_out_of_scope(&answer),
                !is_open,
                "{} with {scope}: {} {}",
                operation.name(),
                answer.status,
                answer.text()
            );
            let is_judged = answer.status != 415 && !answer.text().contains("not_signed_in");
            assert!(is_judged, "{}: {}", operation.name(), answer.text());
            if !is_open && !operation.path.starts_with("/scim/") {
                assert_eq!(answer.field("error"), "scope_mismatch_api", "{}", operation.name());
            }
        }
    }
}

#[test]
fn several_scopes_open_what_each_of_them_opens() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let token = api.create_api_token("me", &["webhooks", "policies"], &[]);
    for (path, is_open) in
        [("/v1/webhooks", true), ("/v1/policies", true), ("/v1/members", false), ("/v1/me", true)]
    {
        assert_eq!(!is_out_of_scope(&token.client.get(path)), is_open, "{path}");
    }
}
