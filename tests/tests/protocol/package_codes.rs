//! Error codes of the repository host and of the package API. The tests provoke each code with
//! requests.

use crate::release;

use packhouse_tests::npm::NpmRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server, checkout, database};
use release::Release;
use serde_json::json;
use tempfile::TempDir;

/// Checks the error code in the field `error`.
#[track_caller]
fn is(answer: Response, status: u16, code: &str) {
    let answer = answer.expect(status);
    assert_eq!(answer.field("error"), code, "{}", answer.text());
}

/// Checks a response whose field `code` has the error code, and whose field `error` has it in lower
/// case.
#[track_caller]
fn is_in_code(answer: Response, status: u16, code: &str) {
    assert_eq!(answer.field("code"), code, "{}", answer.text());
    is(answer, status, &code.to_lowercase());
}

#[test]
fn refusals_of_npm_have_their_codes() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "npm");
    repository.put("a", &Release::new("a", "1.0.0").document()).expect(201);
    let read = repository.get("a").expect(200).json();
    is(repository.put("a/-rev/0", &read), 409, "conflict");

    let login = json!({"name": "ann", "password": "secret"});
    is_in_code(repository.put("-/user/org.couchdb.user:ann", &login), 410, "LEGACY_NPM_LOGIN_DISABLED");
    let create = Request::new("POST", &repository.path("-/npm/v1/tokens")).body(r#"{"password":"secret"}"#);
    is_in_code(repository.client.send(create), 410, "NPM_CLI_TOKEN_CREATE_DISABLED");
}

#[test]
fn a_token_of_the_npm_format_is_refused_on_a_proxy() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let upstream = json!({"kind": "proxy", "upstream": {"url": "https://example.com"}});
    let proxy = NpmRepository::create_as(&server, "proxy", &upstream);
    let body = json!({"name": "ci", "scope": ["read"], "format": "npm", "repositories": [proxy.id],
        "expires_at": null, "confirmation_token": api.confirm("create_token")});
    let secret = api.post("/v1/tokens", &body).expect(201).field("secret");
    let client = server.anonymous().with("Authorization", &format!("Bearer {secret}"));
    is_in_code(client.get(&proxy.path("a")), 403, "npm_token_not_supported_on_proxy");
}

#[test]
fn refusals_of_groups_and_members_have_their_codes() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let member = NpmRepository::create(&server, "member");
    let group = NpmRepository::create_as(&server, "group", &json!({"kind": "group", "members": [member.id]}));
    let document = Release::new("a", "1.0.0").document();
    is_in_code(group.put("a", &document), 405, "writes_not_permitted_on_group");
    let path = format!("/v1/repositories/{}", group.id);
    is_in_code(api.call("DELETE", &format!("{path}/packages/a")), 405, "writes_not_permitted_on_group");
    is(api.call("DELETE", &format!("/v1/repositories/{}", member.id)), 409, "repository_in_use");
    api.call("DELETE", &path).expect(204);

    member.put("a", &document).expect(201);
    let state = format!("/v1/repositories/{}/packages/a/versions/1.0.0/state", member.id);
    is(api.send("PUT", &state, &json!({"state": "yanked"})), 405, "not_supported");
    api.call("DELETE", &format!("/v1/repositories/{}", member.id)).expect(204);
}

#[test]
fn too_long_or_too_deep_paths_are_refused() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "libs");
    is(repository.get(&"a".repeat(9_000)), 414, "uri_too_long");
    let long = (0..5).fold(Request::new("GET", &repository.path("a")), |request, number| {
        request.header(&format!("X-{number}"), &"a".repeat(7_000))
    });
    is(repository.client.send(long), 431, "headers_too_large");

    let api = Api::sign_in(&server);
    let nested = |depth: usize| {
        let body = format!(r#"{{"name":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
        let request = Request::new("POST", "/v1/repositories").header("Content-Type", "application/json");
        api.client().send(request.body(body))
    };
    is(nested(20), 400, "invalid_repository_name");
    for depth in [200, 4_000] {
        is(nested(depth), 400, "malformed_json");
    }
}

/// A database trigger deletes the token after the rotation has read it and before the rotation
/// writes it.
#[test]
fn a_token_that_is_deleted_during_its_rotation_has_its_code() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let id = api.create_maven("libs", &json!({}));
    let token = api.create_token(&[&id], &["read"], None).id;
    let gone = "CREATE TRIGGER gone BEFORE UPDATE OF ends_at ON tokens BEGIN \
                DELETE FROM tokens WHERE id = old.id; SELECT RAISE(IGNORE); END";
    database::sqlite(&server, gone);
    let rotate = || {
        let body = json!({"confirmation_token": api.confirm("rotate_token")});
        api.post(&format!("/v1/tokens/{token}/rotation"), &body)
    };
    is(rotate(), 400, "token_not_found");
    database::sqlite(&server, "DROP TRIGGER gone");
    rotate().expect(201);
}

struct Lair {
    server: Server,
    client: Client,
    _plugins: TempDir,
}

/// Starts a server with the hostile test guest, which can run one call at a time.
fn lair(call_timeout_ms: &str) -> Lair {
    let plugins = tempfile::tempdir().unwrap();
    let hostile = checkout().join("target/release/guests/hostile.wasm");
    std::fs::copy(&hostile, plugins.path().join("hostile.wasm"))
        .unwrap_or_else(|error| panic!("{}: {error}; run `just guests`", hostile.display()));
    let server = Server::with()
        .arg("--plugins")
        .arg(plugins.path().to_str().unwrap())
        .env("PACKHOUSE_PLUGINS_HOSTILE_CONCURRENCY", "1")
        .env("PACKHOUSE_PLUGINS_HOSTILE_CALL_TIMEOUT_MS", call_timeout_ms)
        .start();
    let api = Api::sign_in(&server);
    let body = json!({"name": "lair", "format": "hostile", "kind": "hosted"});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    let client = server.anonymous().basic(OWNER, &api.create_token(&[&id], &["read"], None).secret);
    Lair { server, client, _plugins: plugins }
}

#[test]
fn a_failing_or_fully_occupied_plugin_has_its_code() {
    let Lair { server, client, _plugins } = lair("4000");
    is(client.get("/repositories/lair/recurse"), 500, "internal_error");
    client.get("/repositories/lair/ok").expect(200);
    let ask = |path: &str| client.try_send(Request::new("GET", path)).unwrap();
    let answers = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| ask("/repositories/lair/loop"))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let busy = answers.into_iter().find(|answer| answer.status == 503).expect("only one call fits");
    assert_eq!(busy.header("retry-after"), Some("5"));
    is(busy, 503, "format_busy");
    assert!(server.log().contains("deadline"), "the endless loop was stopped");
}
