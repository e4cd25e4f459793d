//! Two servers on one PostgreSQL: after a client revokes access through one server, the second
//! server refuses the next request.

use packhouse_tests::database::Postgres;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Client, MavenRepository, Server};
use serde_json::json;

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const MEMBER: &str = "dev@example.com";
const SECRET: &str = "the member's password";

struct Pair {
    one: Server,
    two: Server,
    _postgres: Postgres,
    _data: tempfile::TempDir,
}

fn pair() -> Pair {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let start = || Server::with().data(data.path()).arg("--database-url").arg(&postgres.url()).start();
    let (one, two) = (start(), start());
    Pair { one, two, _postgres: postgres, _data: data }
}

#[test]
fn a_revoked_token_a_disabled_format_and_a_removed_member_are_refused_by_the_other_server() {
    let Pair { one, two, .. } = &pair();
    let repository = MavenRepository::create(one, "shared");
    let path = repository.path(FILE);
    repository.put(FILE, "hello").expect(201);
    let api = Api::sign_in(one);
    let there = |user: &str, secret: &str| Client::new(two.packages()).basic(user, secret);

    let token = api.create_token(&[&repository.id], &["read"], None);
    let client = there(OWNER, &token.secret);
    assert_eq!(client.get(&path).expect(200).text(), "hello");
    api.call("DELETE", &format!("/v1/tokens/{}", token.id)).expect(204);
    client.get(&path).expect(401);

    let client = there(OWNER, &repository.token.secret);
    client.get(&path).expect(200);
    api.patch("/v1/formats/maven", &json!({"enabled": false})).expect(200);
    assert_eq!(client.get(&path).expect(503).field("error"), "format_disabled");
    api.patch("/v1/formats/maven", &json!({"enabled": true})).expect(200);
    client.get(&path).expect(200);

    let everything = json!({"organization": [], "repositories": [{"repository": "*", "actions": ["read", "publish", "delete"]}]});
    let new = json!({"email": MEMBER, "password": SECRET, "permissions": everything});
    let member = api.post("/v1/members", &new).expect(201).field("id");
    let session = Api::sign_in_as(two, MEMBER, SECRET);
    let body = json!({"action": "create_token", "password": SECRET});
    let confirmation = session.post("/v1/confirmations", &body).expect(201).field("confirmation_token");
    let body = json!({"name": "ci", "scope": ["read", "write"], "format": "generic", "repositories": [repository.id],
        "expires_at": null, "confirmation_token": confirmation});
    let secret = session.post("/v1/tokens", &body).expect(201).field("secret");
    let client = there(MEMBER, &secret);
    client.put(&repository.path("org/example/a/2.0/a-2.0.jar"), "x").expect(201);
    let less = json!({"permissions": {"organization": [], "repositories": [{"repository": "*", "actions": ["read", "publish"]}]}});
    api.send("PUT", &format!("/v1/members/{member}/permissions"), &less).expect(200);
    let clamped = client.put(&repository.path("org/example/a/3.0/a-3.0.jar"), "x").expect(403);
    assert_eq!(clamped.field("reason_code"), "revoked-authority-clamp");
    client.get(&path).expect(200);
    api.call("DELETE", &format!("/v1/members/{member}")).expect(204);
    client.get(&path).expect(401);
    there(MEMBER, SECRET).get(&path).expect(401);
    session.call("GET", "/v1/me").expect(401);
}
