//! Every kind of credential at the repository host: its permissions, and the form of each refusal.

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server, database};
use serde_json::json;

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const OTHER: &str = "org/example/a/2.0/a-2.0.jar";

/// Checks a refusal. It has every field that any client displays, and its status line has a reason
/// phrase.
fn refused(answer: Response, status: u16, error: &str) {
    let answer = answer.expect(status);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let body = answer.json();
    for field in ["message", "request_id", "type", "title", "detail"] {
        assert!(body[field].is_string(), "{field} in {body}");
    }
    assert_eq!(body["status"], status, "{body}");
    assert_eq!(body["error"], error, "{body}");
    assert_eq!(answer.header("x-request-id"), body["request_id"].as_str());
    assert!(!answer.reason.is_empty(), "the status line has a reason phrase");
    assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
}

fn owner(server: &Server, secret: &str) -> Client {
    server.anonymous().basic(OWNER, secret)
}

#[test]
fn an_invalid_credential_is_401() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "guarded");
    repository.put(FILE, "hello").expect(201);
    let secret = &repository.token.secret;
    let mut damaged = secret.clone();
    let last = damaged.pop().unwrap();
    damaged.push(if last == 'a' { 'b' } else { 'a' });

    let anonymous = server.anonymous();
    let clients = [
        ("none", anonymous.clone()),
        ("an empty Basic, as podman sends", anonymous.clone().with("Authorization", "Basic Og==")),
        ("an unknown token", owner(&server, "pkh_0000000000000000000000000000000000000000000")),
        ("a damaged token", owner(&server, &damaged)),
        ("a wrong username", anonymous.clone().basic("somebody@example.com", secret)),
        ("no username", anonymous.clone().basic("", secret)),
        ("a wrong password", owner(&server, "wrong")),
        ("Basic that is not base64", anonymous.clone().with("Authorization", "Basic !!!")),
        ("an invalid bearer", anonymous.clone().with("Authorization", "Bearer wrong")),
        ("another scheme", anonymous.with("Authorization", "Negotiate abc")),
    ];
    for (what, client) in clients {
        // A wrong password delays the next attempt. So the test tries all methods only with
        // credentials that are not passwords.
        let methods: &[&str] =
            if what.contains("password") { &["GET"] } else { &["GET", "HEAD", "PUT", "DELETE"] };
        for &method in methods {
            let mut request = Request::new(method, &repository.path(OTHER));
            if method == "PUT" {
                request = request.body("hello");
            }
            let answer = client.send(request);
            assert_eq!(answer.status, 401, "{method} with {what}");
            if method == "GET" {
                refused(answer, 401, "unauthorized");
            }
        }
    }
    repository.get(OTHER).expect(404);
}

#[test]
fn a_valid_token_works_in_each_supported_header() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "shown");
    repository.put(FILE, "hello").expect(201);
    let secret = &repository.token.secret;
    let anonymous = server.anonymous();
    for client in [
        owner(&server, secret),
        anonymous.clone().basic("__token__", secret),
        anonymous.with("Authorization", &format!("Bearer {secret}")),
        owner(&server, PASSWORD),
    ] {
        client.get(&repository.path(FILE)).expect(200);
    }
    assert!(secret.starts_with("pkh_"), "secret scanners know a token by its prefix");
}

#[test]
fn a_revoked_and_an_expired_token_are_401() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "ended");
    repository.put(FILE, "hello").expect(201);
    let api = Api::sign_in(&server);
    let path = repository.path(FILE);

    let far = Some(4_000_000_000_000);
    for column in ["revoked_at", "expires_at", "ends_at"] {
        let token = api.create_token(&[&repository.id], &["read", "write"], far);
        let client = owner(&server, &token.secret);
        client.get(&path).expect(200);
        // The test changes the database directly, as another node would. The server must notice the
        // change at the very next request.
        database::sqlite(
            &server,
            &format!("update tokens set {column} = 1000 where id = (select max(id) from tokens)"),
        );
        refused(client.get(&path), 401, "unauthorized");
        refused(client.put(&repository.path(OTHER), "hello"), 401, "unauthorized");
    }
    repository.get(FILE).expect(200);
}

#[test]
fn a_token_is_limited_to_its_repositories_and_its_scope() {
    let server = Server::start();
    let mine = MavenRepository::create(&server, "mine");
    let other = MavenRepository::create(&server, "other");
    mine.put(FILE, "hello").expect(201);
    other.put(FILE, "hello").expect(201);
    let api = Api::sign_in(&server);
    let read = owner(&server, &api.create_token(&[&mine.id], &["read"], None).secret);
    let write = owner(&server, &api.create_token(&[&mine.id], &["write"], None).secret);

    let denied = |answer: Response, ending: &str| {
        let answer = answer.expect(403);
        assert_eq!(answer.field("reason_code"), "scope_mismatch_repo");
        assert!(answer.field("error").ends_with(ending), "{}", answer.text());
    };
    denied(mine.client.get(&other.path(FILE)), "2242");
    denied(mine.client.put(&other.path(OTHER), "hello"), "2242");
    read.get(&mine.path(FILE)).expect(200);
    denied(read.put(&mine.path(OTHER), "hello"), "[write]");
    let delete = || Request::new("DELETE", &mine.path(FILE));
    assert_eq!(read.send(delete()).field("reason_code"), "scope_mismatch_repo");
    denied(write.get(&mine.path(FILE)), "[read]");
    write.put(&mine.path(OTHER), "hello").expect(201);
    // The write scope also permits the reads that a client makes during a publish.
    write.get(&mine.path("org/example/a/maven-metadata.xml")).expect(200);
    write.get(&mine.path("org/example/a/maven-metadata.xml.sha1")).expect(200);

    refused(mine.client.get("/repositories/absent/x"), 404, "not_found");
    for method in ["POST", "PATCH", "LINK", "PROPFIND"] {
        let answer =
            mine.client.send(Request::new(method, &mine.path(FILE)).header("X-HTTP-Method-Override", "GET"));
        refused(answer, 405, "method_not_allowed");
    }
    mine.client.send(delete()).expect(204);
    mine.get(FILE).expect(404);
    other.get(FILE).expect(200);
}

#[test]
fn a_public_repository_is_readable_by_anyone_and_writable_with_its_tokens() {
    let server = Server::start();
    let repository = MavenRepository::create_with(&server, "public", &json!({"public": true}));
    repository.put(FILE, "hello").expect(201);
    let anonymous = server.anonymous();
    assert_eq!(anonymous.get(&repository.path(FILE)).expect(200).text(), "hello");
    refused(anonymous.put(&repository.path(OTHER), "hello"), 401, "unauthorized");
    refused(owner(&server, "pkh_wrong").get(&repository.path(FILE)), 401, "unauthorized");
    anonymous.get(&repository.path(OTHER)).expect(404);
}

#[test]
fn an_existing_version_is_refused_with_409() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "kept");
    repository.put(FILE, "hello").expect(201);
    refused(repository.put(FILE, "hello"), 409, "version_already_exists");
    refused(repository.put(FILE, "other"), 409, "version_already_exists");
    assert_eq!(repository.get(FILE).text(), "hello");
}

#[test]
fn the_database_holds_no_secret() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "sealed");
    let dump = database::sqlite(&server, ".dump");
    assert!(dump.contains("tokens"));
    for secret in [&repository.token.secret, PASSWORD] {
        assert!(!dump.contains(secret), "the database contains {secret}");
    }
}
