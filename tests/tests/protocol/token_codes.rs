//! The error codes of tokens, service keys and members. The tests provoke each code with requests.

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server};
use serde_json::{Value, json};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const DEV: &str = "dev@example.com";

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

#[track_caller]
fn is(answer: Response, status: u16, code: &str) {
    assert_eq!((answer.status, answer.field("error")), (status, code.to_owned()), "{}", answer.text());
}

/// Creates a token with this body. Fills in the required fields that the body lacks.
fn create(api: &Api, repository: &str, change: Value) -> Response {
    let mut body = json!({"name": "ci", "scope": ["read"], "format": "generic", "repositories": [repository],
        "expires_at": null, "confirmation_token": api.confirm("create_token")});
    body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    api.post("/v1/tokens", &body)
}

fn rotate(api: &Api, id: &str, change: Value) -> Response {
    let mut body = json!({"confirmation_token": api.confirm("rotate_token")});
    body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    api.post(&format!("/v1/tokens/{id}/rotation"), &body)
}

/// Creates a member with PASSWORD and signs the member in.
fn member(server: &Server, owner: &Api, permissions: Value) -> Api {
    let new = json!({"email": DEV, "password": PASSWORD, "permissions": permissions});
    owner.post("/v1/members", &new).expect(201);
    Api::sign_in_as(server, DEV, PASSWORD)
}

#[test]
fn a_service_key_is_checked_by_its_backing() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let id = api.create_maven("libs", &json!({}));
    let other = api.create_maven("other", &json!({}));
    let soon = now() + 30 * DAY_MS;
    let key = |change: Value| {
        let mut body = json!({"backing": {"kind": "org"}, "expires_at": soon});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        create(&api, &id, body)
    };
    is(key(json!({"expires_at": null})), 400, "service_key_must_expire");
    is(key(json!({"expires_at": now() + 91 * DAY_MS})), 400, "service_key_must_expire");
    is(key(json!({"backing": {"kind": "team"}})), 400, "invalid_backing_kind");
    is(key(json!({"backing": {"kind": "repo"}})), 400, "invalid_backing_id");
    is(key(json!({"format": "npm"})), 400, "invalid_service_key_format");
    let two = json!({"backing": {"kind": "repo", "id": id}, "repositories": [id, other]});
    is(key(two), 400, "repo_backing_scope_mismatch");
    let made = key(json!({})).expect(201);
    is(rotate(&api, &made.field("id"), json!({"expires_at": null})), 400, "service_key_must_expire");

    let everywhere = json!({"repositories": [{"repository": "*", "actions": ["read", "publish", "delete"]}]});
    let dev = member(&server, &api, everywhere);
    is(
        create(&dev, &id, json!({"backing": {"kind": "org"}, "expires_at": soon})),
        403,
        "service_key_forbidden",
    );
    create(&dev, &id, json!({"backing": {"kind": "repo", "id": id}, "expires_at": soon})).expect(201);
}

#[test]
fn a_rotation_is_checked_by_its_overlap_and_the_tokens_state() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let repository = MavenRepository::create(&server, "libs");
    let (id, token) = (&repository.id, &repository.token.id);
    for hours in [json!(-1), json!(169), json!(1.5), json!("24")] {
        is(rotate(&api, token, json!({"overlap_hours": hours})), 400, "invalid_overlap_hours");
    }
    is(rotate(&api, token, json!({"expires_at": "soon"})), 400, "invalid_expires_at");
    is(rotate(&api, token, json!({"expires_at": 1})), 400, "expires_at_in_past");
    let short = create(&api, id, json!({"expires_at": now() + DAY_MS / 2})).expect(201).field("id");
    is(rotate(&api, &short, json!({})), 400, "overlap_exceeds_expiry");
    is(api.post(&format!("/v1/tokens/{token}/rotation"), &json!({})), 400, "missing_confirmation_token");
    let stale = json!({"confirmation_token": api.confirm("create_token")});
    is(api.post(&format!("/v1/tokens/{token}/rotation"), &stale), 401, "step_up_required");

    rotate(&api, token, json!({"overlap_hours": 1})).expect(201);
    is(rotate(&api, token, json!({"overlap_hours": 2})), 400, "overlap_exceeds_scheduled_end");
    rotate(&api, token, json!({"overlap_hours": 0})).expect(201);
    is(rotate(&api, token, json!({"overlap_hours": 0})), 409, "token_revoked");
    is(rotate(&api, "12345", json!({})), 404, "not_found");
}

#[test]
fn tokens_of_another_member_need_more_than_a_session() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let id = api.create_maven("libs", &json!({}));
    let dev =
        member(&server, &api, json!({"repositories": [{"repository": id, "actions": ["read", "publish"]}]}));
    is(create(&dev, &id, json!({"scope": ["write"]})), 403, "role_mismatch");
    is(dev.call("GET", "/v1/tokens?member=owner@example.com"), 403, "insufficient_permissions");
    is(dev.call("GET", "/v1/tokens?member=%20"), 400, "invalid_user_id");
    is(api.call("GET", "/v1/tokens?member=nobody@example.com"), 404, "user_not_found");
    for (method, path) in [("GET", "/v1/formats"), ("GET", "/v1/audit-events")] {
        is(dev.call(method, path), 403, "insufficient_permissions");
    }
    is(dev.patch("/v1/formats/maven", &json!({"enabled": false})), 403, "insufficient_permissions");

    let invite = json!({"email": DEV, "permissions": {"organization": [], "repositories": []}});
    let code = api.post("/v1/invitations", &invite).expect(201).field("code");
    let accept = format!("/v1/invitations/{code}/accept");
    let password = json!({"password": PASSWORD});
    is(api.post(&accept, &password), 409, "user_already_exists");
    is(api.post(&accept, &password), 404, "not_found");
    let me = api.call("GET", "/v1/me").expect(200).field("id");
    is(api.call("DELETE", &format!("/v1/members/{me}")), 409, "last_owner");
}

#[test]
fn settings_that_a_repositorys_kind_forbids_are_refused() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let new = |change: Value| {
        let mut body = json!({"name": "libs", "format": "maven", "kind": "hosted"});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        api.post("/v1/repositories", &body)
    };
    is(new(json!({"upstream": {"url": "https://upstream.example"}})), 400, "invalid_upstream");
    is(new(json!({"members": []})), 400, "invalid_members");
    let id = new(json!({})).expect(201).field("id");
    for field in ["name", "format", "kind"] {
        is(api.patch(&format!("/v1/repositories/{id}"), &json!({field: "other"})), 400, "immutable_field");
    }
}

#[test]
fn guessing_passwords_is_held_up() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let wrong = json!({"email": DEV, "password": "wrong"});
    let answers: Vec<Response> = (0..20).map(|_| api.post("/v1/sessions", &wrong)).collect();
    let last = answers.into_iter().find(|answer| answer.status == 429).expect("guessing is limited");
    assert!(last.header("retry-after").is_some_and(|seconds| seconds.parse::<u64>().unwrap() > 0));
    is(last, 429, "too_many_attempts");
}

#[test]
fn an_access_key_is_checked_by_its_state() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let id = api.create_maven("libs", &json!({}));
    let subscriber = |name: &str| {
        let new = json!({"name": name, "repositories": [id]});
        api.post("/v1/subscribers", &new).expect(201).field("id")
    };
    let (one, other) = (subscriber("one"), subscriber("other"));
    let keys = format!("/v1/subscribers/{one}/access-keys");
    let send = |method: &str, path: &str, change: Value| {
        let mut body = json!({"confirmation_token": api.confirm("manage_access_keys")});
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        api.send(method, path, &body)
    };
    is(api.post(&keys, &json!({"expires_at": null})), 403, "step_up_required");
    let key = send("POST", &keys, json!({"expires_at": null})).expect(201).field("id");
    let path = format!("{keys}/{key}");
    let elsewhere = format!("/v1/subscribers/{other}/access-keys/{key}");
    is(send("DELETE", &elsewhere, json!({})), 404, "access_key_not_found");
    let (soon, later) = (now() + DAY_MS, now() + 2 * DAY_MS);
    let stale = json!({"expires_at": later, "expected_expires_at": soon});
    is(send("PATCH", &path, stale), 409, "access_key_changed");
    send("PATCH", &path, json!({"expires_at": later, "expected_expires_at": null})).expect(200);
    send("DELETE", &path, json!({})).expect(204);
    is(send("POST", &format!("{path}/rotation"), json!({})), 409, "access_key_revoked");
}

#[test]
fn a_browsers_session_needs_its_csrf_token() {
    let server = Server::start();
    let client = Client::new(server.api());
    let post = |path: &str, body: Value| {
        Request::new("POST", path).header("Content-Type", "application/json").body(body.to_string())
    };
    let sign_in = json!({"email": OWNER, "password": PASSWORD, "cookie": true});
    let answer = client.send(post("/v1/sessions", sign_in)).expect(201);
    let cookie = answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let client = client.with("Cookie", &cookie);
    let token = client.get("/v1/me").expect(200).header("x-csrf-token").unwrap().to_owned();
    let new = json!({"name": "libs", "format": "maven", "kind": "hosted"});
    is(client.send(post("/v1/repositories", new.clone())), 403, "csrf_refused");
    is(
        client.send(post("/v1/repositories", new.clone()).header("X-CSRF-Token", "wrong")),
        403,
        "csrf_refused",
    );
    client.send(post("/v1/repositories", new).header("X-CSRF-Token", &token)).expect(201);
}

#[test]
fn trusted_publishing_paths_without_an_exchange_are_not_enabled() {
    let server = Server::start();
    // The server serves only the exchange itself. It answers `not_enabled` at any other path below
    // `/_/oidc/`.
    is(server.anonymous().get("/_/oidc/something"), 404, "not_enabled");
}
