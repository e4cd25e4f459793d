//! Refusals of the management API: the order of its checks, and its error codes. The tests provoke
//! each refusal with requests to a running server.

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, MavenRepository, Request, Server};
use serde_json::{Value, json};

fn post(client: &Client, path: &str, body: &str) -> (u16, String) {
    let answer =
        client.send(Request::new("POST", path).header("Content-Type", "application/json").body(body));
    (answer.status, answer.field("error"))
}

fn is(found: (u16, String), status: u16, error: &str, what: &str) {
    assert_eq!(found, (status, error.to_owned()), "{what}");
}

#[test]
fn the_transport_and_the_session_are_checked_first() {
    let server = Server::with().env("PACKHOUSE_LIMITS_API_BODY_BYTES", "10000").start();
    let client = Client::new(server.api());
    let sign_in = json!({"email": OWNER, "password": PASSWORD}).to_string();

    let untyped = client.send(Request::new("POST", "/v1/sessions").body(sign_in.clone())).expect(415);
    assert_eq!(untyped.field("error"), "unsupported_media_type");
    let form = Request::new("POST", "/v1/sessions").header("Content-Type", "text/plain").body(sign_in);
    client.send(form).expect(415);
    is(post(&client, "/v1/sessions", "{"), 400, "malformed_json", "truncated JSON");
    let large = format!("{{\"email\": \"{}\"}}", "x".repeat(20_000));
    is(post(&client, "/v1/sessions", &large), 413, "request_body_too_large", "the body's length is checked");
    let tokens = format!("[{}1]", "1,".repeat(4_900));
    is(post(&client, "/v1/sessions", &tokens), 400, "invalid_request", "no object");
    let values = json!([OWNER, PASSWORD, null, false]).to_string();
    is(post(&client, "/v1/sessions", &values), 400, "invalid_request", "field values without names");
    let server = Server::with().env("PACKHOUSE_LIMITS_API_JSON_TOKENS", "100").start();
    let client = Client::new(server.api());
    is(
        post(&client, "/v1/sessions", &tokens),
        413,
        "request_body_too_large",
        "the number of JSON tokens is checked",
    );

    is(post(&client, "/v1/sessions", "{}"), 400, "invalid_request", "fields are missing");
    let wrong = json!({"email": OWNER, "password": "wrong"}).to_string();
    is(post(&client, "/v1/sessions", &wrong), 401, "invalid_credentials", "a wrong password");
    let nobody = json!({"email": "nobody@example.com", "password": "wrong"}).to_string();
    is(
        post(&client, "/v1/sessions", &nobody),
        401,
        "invalid_credentials",
        "an unknown member gets the same error",
    );
    for client in [client.clone(), client.clone().with("Authorization", "Bearer wrong")] {
        is(post(&client, "/v1/repositories", "{}"), 401, "not_signed_in", "no session");
        is(post(&client, "/v1/tokens", "{}"), 401, "not_signed_in", "no session");
    }
    client.get("/v1/openapi.json").expect(200);
    let method = client.send(Request::new("PATCH", "/v1/sessions")).expect(405);
    assert!(method.header("allow").is_some_and(|allow| allow.contains("POST")));
    client.get("/v1/nothing").expect(404);
}

#[test]
fn a_list_is_not_an_object_without_fields() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    for (method, path) in [("PATCH", "/v1/organization"), ("POST", "/v1/querybatch"), ("POST", "/v1/query")] {
        let request = Request::new(method, path).header("Content-Type", "application/json").body("[]");
        assert_eq!(api.client().send(request).expect(400).field("error"), "invalid_request", "{path}");
    }
}

#[test]
fn a_repository_with_an_unknown_format_kind_or_field_is_refused() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let with = |change: Value| {
        let mut body = json!({"name": "good", "format": "maven", "kind": "hosted"});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let answer = api.post("/v1/repositories", &body);
        (answer.status, answer.field("error"))
    };
    for name in ["", "Upper", "a b", "-a", "a..b", "ä", &"a".repeat(65)] {
        is(with(json!({"name": name})), 400, "invalid_repository_name", name);
    }
    is(with(json!({"format": "absent"})), 400, "invalid_format", "no such plugin");
    is(with(json!({"kind": "absent"})), 400, "invalid_kind", "no such kind");
    is(with(json!({"settings": {"absent": 1}})), 400, "invalid_settings", "no such setting");
    is(with(json!({"absent": 1})), 400, "invalid_request", "no such field");
    let made = api
        .post("/v1/repositories", &json!({"name": "good", "format": "maven", "kind": "hosted"}))
        .expect(201);
    assert!(made.field("connection_address").ends_with("/repositories/good/"), "{}", made.text());
    is(with(json!({})), 409, "repository_already_exists", "the name is in use");
}

#[test]
fn a_token_is_judged_field_by_field_and_needs_a_fresh_confirmation() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = MavenRepository::create(&server, "tokens").id;
    let with = |change: Value| {
        let mut body = json!({
            "name": "a", "scope": ["read"], "format": "generic", "repositories": [repository], "expires_at": null,
            "confirmation_token": api.confirm("create_token"),
        });
        for (name, value) in change.as_object().unwrap() {
            match value.as_str() {
                Some("absent") => body.as_object_mut().unwrap().remove(name),
                _ => body.as_object_mut().unwrap().insert(name.clone(), value.clone()),
            };
        }
        let answer = api.post("/v1/tokens", &body);
        (answer.status, answer.field("error"))
    };
    for name in [String::new(), "x".repeat(257), "a\u{7}".into(), "a\u{202e}b".into()] {
        is(with(json!({"name": name})), 400, "invalid_name", &name);
    }
    for scope in [json!([]), json!(["admin"]), json!(["read", "admin"])] {
        is(with(json!({"scope": scope})), 400, "invalid_scope", "scope");
    }
    is(with(json!({"format": "other"})), 400, "invalid_token_format", "format");
    is(with(json!({"repositories": []})), 400, "missing_repo_ids", "no repository");
    is(with(json!({"expires_at": "absent"})), 400, "missing_expires_at", "must be stated");
    for time in [json!(1.5), json!("soon"), json!(253_402_300_800_000_u64), json!(-1.5)] {
        is(with(json!({"expires_at": time})), 400, "invalid_expires_at", "no time");
    }
    is(with(json!({"expires_at": 1000})), 400, "expires_at_in_past", "past");
    is(with(json!({"confirmation_token": "absent"})), 400, "missing_confirmation_token", "none");
    is(with(json!({"confirmation_token": "wrong"})), 401, "step_up_required", "unknown");
    is(
        with(json!({"confirmation_token": api.confirm("rotate_token")})),
        401,
        "step_up_required",
        "another action's",
    );
    let spent = api.confirm("create_token");
    is(with(json!({"confirmation_token": spent})), 201, "", "good");
    is(with(json!({"confirmation_token": spent})), 401, "step_up_required", "used before");
    is(with(json!({"repositories": ["12345"]})), 403, "repo_access_denied", "not there");
    is(with(json!({"unknown": 1})), 400, "invalid_request", "no such field");
}
