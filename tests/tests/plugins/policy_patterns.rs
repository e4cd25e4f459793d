//! Patterns of packages in policies and retention. They match names as the format spells them, and
//! the server refuses a policy that can never match.

use packhouse_tests::python::{PythonRepository, SIMPLE_JSON};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Server, digests};
use serde_json::{Value, json};

use crate::wheel;

const POLICIES: &str = "/v1/policies";

/// An upstream with `evil-pkg 1.0`, and a proxy of it.
struct PatternFixture {
    api: Api,
    proxy: PythonRepository,
    server: Server,
}

impl PatternFixture {
    fn start() -> PatternFixture {
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let (api, upstream) = (Api::sign_in(&server), Upstream::start());
        let name = wheel::wheel_name("evil-pkg", "1.0");
        let file = json!({
            "filename": name, "url": format!("/files/{name}"), "hashes": {"sha256": digests::sha256(b"bytes")},
        });
        let page = json!({"meta": {"api-version": "1.1"}, "name": "evil-pkg", "files": [file]}).to_string();
        upstream.on("/simple/evil-pkg/", Answer::ok(page).header("Content-Type", SIMPLE_JSON));
        upstream.on(&format!("/files/{name}"), Answer::ok("bytes"));
        let proxy =
            PythonRepository::proxy(&server, "near", &format!("{}/simple/", upstream.url()), &json!({}));
        PatternFixture { api, proxy, server }
    }

    fn status(&self) -> u16 {
        self.proxy.file("evil-pkg", "1.0", &wheel::wheel_name("evil-pkg", "1.0")).status
    }

    /// Creates a policy and enforces it. Returns the policy's id.
    #[track_caller]
    fn enforce(&self, settings: Value, packages: Value) -> String {
        let body = json!({
            "name": "ours", "component": "names", "settings": settings, "repositories": "*", "packages": packages,
        });
        let id = self.api.post(POLICIES, &body).expect(201).field("id");
        self.api.call("POST", &format!("{POLICIES}/{id}/preview")).expect(200);
        self.api.patch(&format!("{POLICIES}/{id}"), &json!({"mode": "enforced"})).expect(200);
        id
    }

    #[track_caller]
    fn remove(&self, id: &str) {
        self.api.call("DELETE", &format!("{POLICIES}/{id}")).expect(204);
    }
}

#[test]
fn a_pattern_covers_a_name_in_whatever_spelling_it_is_written() {
    let world = PatternFixture::start();
    assert_eq!(world.status(), 200);
    for (claimed, packages) in [
        (json!(["Evil_*"]), Value::Null),
        (json!(["EVIL.pkg"]), Value::Null),
        (json!(["*"]), json!(["Evil.Pkg"])),
        (json!(["*"]), json!(["evil_*"])),
    ] {
        let id = world.enforce(json!({"claimed": claimed, "distance": 0}), packages.clone());
        assert_eq!(world.status(), 403, "{claimed} {packages}");
        world.remove(&id);
        assert_eq!(world.status(), 200);
    }
    let id = world.enforce(json!({"claimed": ["evil*"], "distance": 0}), json!(["other*"]));
    assert_eq!(world.status(), 200, "the policy is about other packages");
    world.remove(&id);
}

#[test]
fn an_exception_covers_a_name_in_whatever_spelling_it_is_written() {
    let world = PatternFixture::start();
    let id = world.enforce(json!({"claimed": ["*"], "distance": 0}), Value::Null);
    assert_eq!(world.status(), 403);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as i64;
    let exception = json!({"package": "Evil_Pkg", "reason": "accepted", "until": now + 3_600_000});
    world.api.post(&format!("{POLICIES}/{id}/exceptions"), &exception).expect(201);
    assert_eq!(world.status(), 200);
}

#[test]
fn retention_covers_a_name_in_whatever_spelling_it_is_written() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let hosted = PythonRepository::create(&server, "own");
    for project in ["old-tool", "other"] {
        let name = wheel::wheel_name(project, "1.0");
        hosted.publish(project, "1.0", &name, &wheel::wheel(project, "1.0", "")).expect(200);
    }
    let body = json!({
        "name": "old", "repositories": [hosted.id], "match": {"packages": ["Old_T*"]},
        "delete": {"published_before_days": 0}, "max_deletes": 100,
    });
    let id = api.post("/v1/retention-policies", &body).expect(201).field("id");
    let preview = api.call("POST", &format!("/v1/retention-policies/{id}/preview")).expect(200).json();
    let items = preview["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["package"]), (1, &json!("old-tool")), "{preview}");
}

#[test]
fn a_policy_about_a_group_is_refused() {
    let world = PatternFixture::start();
    let group = PythonRepository::group(&world.server, "all", &[&world.proxy], &json!({}));
    let body = json!({
        "name": "ours", "component": "names", "settings": {"claimed": ["*"]}, "repositories": [group.id],
    });
    let refused = world.api.post(POLICIES, &body).expect(400);
    assert_eq!(refused.field("error"), "invalid_request");
    assert!(refused.field("message").contains("the group all"), "{}", refused.text());
    let mut about_proxy = body;
    about_proxy["repositories"] = json!([world.proxy.id]);
    let id = world.api.post(POLICIES, &about_proxy).expect(201).field("id");
    let change = json!({"repositories": [group.id]});
    world.api.patch(&format!("{POLICIES}/{id}"), &change).expect(400);
}
