//! `Packhouse-Published-At`: the callers that may send it, and its effect.

use packhouse_tests::api::Token;
use packhouse_tests::{Api, MavenRepository, Request, Server};
use serde_json::json;

use super::world::{BEGIN_2020_MS, version};

fn put(server: &Server, token: &Token, user: &str, file: &str, at: &str) -> packhouse_tests::Response {
    let client = server.anonymous().basic(user, &token.secret);
    let request =
        Request::new("PUT", &format!("/repositories/maven/{file}")).header("Packhouse-Published-At", at);
    client.send(request.body("bytes"))
}

#[test]
fn a_manager_of_repositories_sets_the_time_of_a_publish() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "maven");
    let owner = packhouse_tests::server::OWNER;
    put(&server, &repository.token, owner, "org/a/1/a-1.jar", "2020-01-01T02:00:00+02:00").expect(201);
    assert_eq!(version(&server, &repository.id, "org:a", "1")["published_at"], BEGIN_2020_MS);
    let events = Api::sign_in(&server).call("GET", "/v1/audit-events").expect(200).text();
    assert!(events.contains("published_at") && events.contains("1577836800000"), "{events}");
    // A later file without the header does not change the version's time.
    repository.put("org/a/1/a-1.pom", "<project/>").expect(201);
    assert_eq!(version(&server, &repository.id, "org:a", "1")["published_at"], BEGIN_2020_MS);
    // The value `unknown` means that the original time is not known; the server then records the
    // current time.
    put(&server, &repository.token, owner, "org/a/3/a-3.jar", "unknown").expect(201);
    assert!(version(&server, &repository.id, "org:a", "3")["published_at"].as_u64().unwrap() > BEGIN_2020_MS);
    for wrong in ["2999-01-01T00:00:00Z", "1960-01-01T00:00:00Z", "yesterday", ""] {
        let refused = put(&server, &repository.token, owner, "org/a/2/a-2.jar", wrong).expect(400);
        assert_eq!(refused.field("error"), "invalid_published_at");
    }
    repository.get("org/a/2/a-2.jar").expect(404);
}

#[test]
fn a_publisher_without_that_right_publishes_with_the_current_time() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "maven");
    let api = Api::sign_in(&server);
    let rights = json!({"organization": [], "repositories": [{"repository": repository.id, "actions": ["read", "publish", "delete"]}]});
    let member = json!({"email": "dev@example.com", "password": packhouse_tests::server::PASSWORD, "permissions": rights});
    api.post("/v1/members", &member).expect(201);
    let token = Api::sign_in_as(&server, "dev@example.com", packhouse_tests::server::PASSWORD).create_token(
        &[&repository.id],
        &["read", "write"],
        None,
    );
    for at in ["2020-01-01T00:00:00Z", "unknown"] {
        let refused = put(&server, &token, "dev@example.com", "org/a/1/a-1.jar", at).expect(403);
        assert_eq!(refused.field("error"), "published_at_not_permitted");
    }
    // A token that belongs to the repository itself has no member behind it. It therefore lacks the
    // right to manage the repository.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let soon = u64::try_from(now.as_millis()).unwrap() + 3_600_000;
    let body = json!({
        "name": "ci", "scope": ["read", "write"], "format": "generic", "repositories": [repository.id],
        "expires_at": soon, "backing": {"kind": "repo", "id": repository.id},
        "confirmation_token": api.confirm("create_token"),
    });
    let key = api.post("/v1/tokens", &body).expect(201);
    let key = Token { id: key.field("id"), secret: key.field("secret") };
    put(&server, &key, "__token__", "org/a/1/a-1.jar", "2020-01-01T00:00:00Z").expect(403);
    repository.get("org/a/1/a-1.jar").expect(404);
    let client = server.anonymous().basic("dev@example.com", &token.secret);
    client.put("/repositories/maven/org/a/1/a-1.jar", "bytes").expect(201);
    // A member without the right to manage the repository can still import everything with
    // `--without-times`; the server then records the current time.
    let home = tempfile::TempDir::new().unwrap();
    super::world::write(home.path(), "org/b/1/b-1.pom", "<project/>");
    let login = format!("dev@example.com:{}", packhouse_tests::server::PASSWORD);
    let tree = home.path().to_string_lossy().into_owned();
    let words = ["import", "maven", "--from", "maven", &tree, "--without-times"];
    let login = [("PACKHOUSE_LOGIN", login.as_str())];
    super::world::moved_with(&server, &words[..5], &login).output.refused("manage-repositories");
    super::world::moved_with(&server, &words, &login).success();
    // The server ignores the header in a read.
    let read =
        Request::new("GET", "/repositories/maven/org/a/1/a-1.jar").header("Packhouse-Published-At", "x");
    client.send(read).expect(200);
}
