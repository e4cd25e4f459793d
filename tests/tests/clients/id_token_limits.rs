//! Limits of an ID token that a client sends directly as a credential. The server accepts it for
//! one hour after its issue, unless it was revoked. An audience that a format declares is valid
//! only in repositories of this format. A publisher can also require the event that started the
//! workflow.

use super::trusted_publishing::issuer;

use issuer::{Issuer, now};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Request, Response, Server};
use serde_json::{Value, json};

const YEARS: u64 = 31 * 365 * 24 * 3600;

struct World {
    server: Server,
    api: Api,
    issuer: Issuer,
}

impl World {
    /// Starts a server with a hosted repository `files` of this format, and a trusted publisher for
    /// a job in it.
    fn start(format: &str) -> World {
        let server = Server::with().arg("--upstream-allow-networks").arg("127.0.0.0/8").start();
        let world = World { api: Api::sign_in(&server), server, issuer: Issuer::start() };
        let body = json!({"name": "files", "format": format, "kind": "hosted"});
        let repository = world.api.post("/v1/repositories", &body).expect(201).field("id");
        world.trust(&repository, "oidc", json!({"sub": "ci:builder"}));
        world
    }

    #[track_caller]
    fn trust(&self, repository: &str, provider: &str, claims: Value) {
        let body = json!({
            "repository": repository, "provider": provider, "issuer": self.issuer.url, "packages": ["*"],
            "scope": ["read", "write"], "claims": claims,
        });
        self.api.post("/v1/trusted-publishers", &body).expect(201);
    }

    /// The claims of the job's tokens, changed by `more`.
    fn claims(&self, more: Value) -> Value {
        let mut claims = json!({
            "iss": self.issuer.url, "sub": "ci:builder", "aud": self.server.packages().to_string(),
            "iat": now(), "exp": now() + 300, "jti": now().to_string(),
        });
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claims
    }

    fn token(&self, more: Value) -> String {
        self.issuer.token(&self.claims(more))
    }

    /// Publishes a file with this ID token as the credential.
    fn put(&self, id_token: &str, path: &str) -> Response {
        self.server.anonymous().basic("ci", id_token).put(&format!("/repositories/files/{path}"), "x")
    }

    fn listed(&self) -> Vec<Value> {
        let tokens = self.api.call("GET", "/v1/tokens?backing=publisher").expect(200).json();
        tokens["items"].as_array().unwrap().clone()
    }
}

#[test]
fn an_id_token_is_valid_for_an_hour_after_its_issue() {
    let world = World::start("generic");
    let lasting = world.token(json!({"exp": now() + YEARS}));
    world.put(&lasting, "a/1").expect(201);
    let expires_at = world.listed()[0]["expires_at"].as_u64().unwrap();
    assert!(expires_at <= (now() + 3600) * 1000, "{expires_at}");
    let old = world.token(json!({"iat": now() - 3700, "exp": now() + YEARS}));
    assert_eq!(world.put(&old, "a/2").status, 401);
    let mut claims = world.claims(json!({"exp": now() + YEARS}));
    claims.as_object_mut().unwrap().remove("iat");
    assert_eq!(world.put(&world.issuer.token(&claims), "a/3").status, 401, "it has no time of issue");
}

#[test]
fn a_used_id_token_is_listed_and_revoked_for_good() {
    let world = World::start("generic");
    let id_token = world.token(json!({}));
    world.put(&id_token, "a/1").expect(201);
    let listed = world.listed();
    assert_eq!((listed.len(), &listed[0]["backing"]["kind"]), (1, &json!("publisher")), "{listed:?}");
    let path = format!("/v1/tokens/{}", listed[0]["id"].as_str().unwrap());
    world.api.call("DELETE", &path).expect(204);
    assert_eq!(world.put(&id_token, "a/2").status, 401);
    assert_eq!(world.put(&id_token, "a/3").status, 401, "it is verified again, and stays revoked");
    // Another token of the same workflow still works.
    world.put(&world.token(json!({"jti": "another"})), "a/4").expect(201);
}

#[test]
fn only_owners_of_the_account_list_tokens_of_publishers() {
    let world = World::start("generic");
    let member = json!({
        "email": "m@example.com", "password": packhouse_tests::server::PASSWORD,
        "permissions": {"organization": ["manage-repositories"]},
    });
    world.api.post("/v1/members", &member).expect(201);
    let some = Api::sign_in_as(&world.server, "m@example.com", packhouse_tests::server::PASSWORD);
    some.call("GET", "/v1/tokens?backing=publisher").expect(403);
}

#[test]
fn a_revoked_id_token_is_refused() {
    let world = World::start("python");
    let burn = |token: &str| {
        let request = Request::new("POST", "/_/oidc/burn-token").header("Content-Type", "application/json");
        world.server.anonymous().send(request.body(json!({"token": token}).to_string()))
    };
    let read =
        |token: &str| world.server.anonymous().basic("ci", token).get("/repositories/files/simple/").status;
    let used = world.token(json!({"jti": "used"}));
    assert_eq!(read(&used), 200);
    assert!(burn(&used).status < 300);
    assert_eq!(read(&used), 401);
    let fresh = world.token(json!({"jti": "fresh"}));
    assert!(burn(&fresh).status < 300);
    assert_eq!(read(&fresh), 401, "it was revoked before it was used");
}

#[test]
fn an_audience_counts_for_the_format_that_declares_it() {
    let host = |world: &World| format!("npm:{}", world.server.packages().ip());
    let generic = World::start("generic");
    let foreign = generic.token(json!({"aud": host(&generic)}));
    assert_eq!(generic.put(&foreign, "a/1").status, 401, "no client of this format requests such a token");
    let npm = World::start("npm");
    let own = npm.token(json!({"aud": host(&npm)}));
    let read = npm.server.anonymous().basic("ci", &own).get("/repositories/files/nothing");
    assert_eq!(read.status, 404, "{}", read.text());
}

#[test]
fn a_workflow_event_that_runs_foreign_code_must_be_named_by_the_publisher() {
    let world = World::start("generic");
    let body = json!({"name": "other", "format": "generic", "kind": "hosted"});
    let other = world.api.post("/v1/repositories", &body).expect(201).field("id");
    for (number, event) in ["pull_request_target", "workflow_run"].into_iter().enumerate() {
        let jti = format!("event-{number}");
        let refused = world.put(&world.token(json!({"event_name": event, "jti": jti})), "a/1");
        assert_eq!(refused.status, 401, "{event}: {}", refused.text());
    }
    world.trust(&other, "oidc", json!({"sub": "ci:builder", "event_name": "workflow_run"}));
    let named = world.token(json!({"event_name": "workflow_run", "jti": "named"}));
    let client = world.server.anonymous().basic(OWNER, &named);
    client.put("/repositories/other/a/1", "x").expect(201);
    let elsewhere = world.put(&named, "a/2").status;
    assert!(matches!(elsewhere, 403 | 404), "the publisher of this repository names no event: {elsewhere}");
}
