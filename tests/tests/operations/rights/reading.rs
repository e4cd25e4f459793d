//! The right to manage repositories does not include read access. A manager cannot gain access by
//! making a repository public, through a proxy's cache or upstream credentials, or with a key of
//! another owner.

use packhouse_tests::http::basic;
use packhouse_tests::image_proxy::{self, ImageProxy};
use packhouse_tests::images::{MANIFEST, manifest};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, MavenRepository, Server};
use serde_json::{Value, json};

use super::{is, permissions, signed_in};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const MANAGER: &str = "manager@example.com";
const READER: &str = "reader@example.com";

#[test]
fn a_manager_cannot_publish_a_repository_without_read_access() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "secret");
    repository.put(FILE, "hello").expect(201);
    let other = Api::sign_in(&server).create_maven("other", &json!({}));
    let manager = signed_in(&server, MANAGER, &permissions(&["manage-repositories"], &other, &["read"]));
    let path = |id: &str| format!("/v1/repositories/{id}");
    let public = json!({"settings": {"public": true}});
    is(&manager.patch(&path(&repository.id), &public), 403, "role_mismatch");
    server.anonymous().get(&repository.path(FILE)).expect(401);
    // A manager may change other settings. A manager with read access may also make the repository
    // public.
    manager.patch(&path(&repository.id), &json!({"settings": {"public": false}})).expect(200);
    manager.patch(&path(&repository.id), &json!({"settings": {"redeploy": "identical"}})).expect(200);
    manager.patch(&path(&other), &public).expect(200);

    let new = |name: &str, public: bool| json!({"name": name, "format": "maven", "kind": "hosted", "settings": {"public": public}});
    is(&manager.post("/v1/repositories", &new("open", true)), 403, "role_mismatch");
    // Two steps do not work either: create a private repository, then make it public.
    let made = manager.post("/v1/repositories", &new("closed", false)).expect(201).field("id");
    is(&manager.patch(&path(&made), &public), 403, "role_mismatch");
    let reader = signed_in(&server, READER, &permissions(&["manage-repositories"], "*", &["read"]));
    reader.patch(&path(&made), &public).expect(200);
    reader.post("/v1/repositories", &new("open", true)).expect(201);
    // If a repository is already public, a manager may change its other settings.
    manager.patch(&path(&made), &json!({"settings": {"public": true, "redeploy": "identical"}})).expect(200);
}

#[test]
fn a_group_hides_members_that_the_caller_may_not_read() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "secret");
    repository.put(FILE, "hello").expect(201);
    let open = MavenRepository::create_with(&server, "open", &json!({"public": true}));
    open.put("org/example/b/1.0/b-1.0.jar", "open").expect(201);
    let manager = signed_in(&server, MANAGER, &permissions(&["manage-repositories"], &open.id, &["read"]));
    let group =
        json!({"name": "all", "format": "maven", "kind": "group", "members": [open.id, repository.id]});
    let group = manager.post("/v1/repositories", &group).expect(201).field("id");
    let owner = Api::sign_in(&server);
    owner.patch(&format!("/v1/repositories/{group}"), &json!({"settings": {"public": true}})).expect(200);
    let anyone = server.anonymous();
    anyone.get("/repositories/all/org/example/b/1.0/b-1.0.jar").expect(200);
    assert_ne!(anyone.get(&format!("/repositories/all/{FILE}")).status, 200);
    let there = server.anonymous().basic(MANAGER, packhouse_tests::server::PASSWORD);
    assert_ne!(there.get(&format!("/repositories/all/{FILE}")).status, 200);
}

#[test]
fn the_cache_of_a_proxy_is_visible_only_with_read_access() {
    let server = image_proxy::server();
    let upstream = Upstream::start();
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({}));
    let cache = format!("/v1/repositories/{}/cache", proxy.id);
    let manager = signed_in(&server, MANAGER, &permissions(&["manage-repositories"], "*", &["publish"]));
    is(&manager.call("GET", &cache), 403, "role_mismatch");
    manager.call("DELETE", &cache).expect(204);
    let reader = signed_in(&server, READER, &permissions(&["manage-repositories"], &proxy.id, &["read"]));
    reader.call("GET", &cache).expect(200);
}

#[test]
fn credentials_for_one_upstream_are_sent_to_no_other() {
    let server = image_proxy::server();
    let (upstream, attacker) = (Upstream::start(), Upstream::start());
    let manifest = manifest(&[b"layer"]);
    let offered = || Answer::ok(manifest.as_str()).header("Content-Type", MANIFEST);
    let secret = basic("robot", "planted-upstream-password");
    for image in ["one", "two", "three"] {
        upstream.on(&format!("/v2/app/manifests/{image}"), offered().guarded(&secret, "Basic realm=\"x\""));
        attacker.on(&format!("/v2/app/manifests/{image}"), offered().guarded(&secret, "Basic realm=\"x\""));
    }
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({}));
    proxy.credentials("robot", "planted-upstream-password", None);
    proxy.get("app/manifests/one").expect(200);

    // Setting credentials needs a fresh confirmation. A change of the upstream must need one too,
    // because it would send the credentials to another server.
    let manager = signed_in(&server, MANAGER, &permissions(&["manage-repositories"], "*", &["read"]));
    let path = format!("/v1/repositories/{}", proxy.id);
    let lead = |change: &Value| manager.patch(&path, change).expect(200);
    lead(&json!({"settings": {"metadata_ttl_s": 1}}));
    lead(&json!({"upstream": {"url": format!("{}/", upstream.url())}}));
    proxy.get("app/manifests/two").expect(200);
    lead(&json!({"upstream": {"url": attacker.url()}}));
    assert_ne!(proxy.get("app/manifests/three").status, 200);
    lead(&json!({"upstream": {"url": upstream.url()}}));
    assert_ne!(proxy.get("app/manifests/three").status, 200, "the credentials are not restored either");
    proxy.credentials("robot", "planted-upstream-password", None);
    lead(&json!({"settings": {"egress_proxy": attacker.url()}}));
    assert_ne!(proxy.get("app/manifests/three").status, 200);
    let leaked = attacker.requests().iter().any(|request| request.header("authorization").is_some());
    assert!(!leaked, "{:?}", attacker.requests());
}

#[test]
fn only_a_manager_of_a_repository_creates_its_keys() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let (one, two) = (owner.create_maven("one", &json!({})), owner.create_maven("two", &json!({})));
    let soon =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() + 86_400_000;
    let soon = u64::try_from(soon).unwrap();
    let create = |api: &Api, id: &str| {
        let body = json!({"name": "ci", "scope": ["read"], "format": "generic", "repositories": [id],
            "expires_at": soon, "backing": {"kind": "repo", "id": id},
            "confirmation_token": api.confirm("create_token")});
        api.post("/v1/tokens", &body)
    };
    for (email, actions, made) in [
        ("a@example.com", &["read"][..], false),
        ("b@example.com", &["read", "publish"], false),
        ("c@example.com", &["read", "delete"], false),
        ("d@example.com", &["read", "publish", "delete"], true),
    ] {
        let api = signed_in(&server, email, &permissions(&[], &one, actions));
        let answer = create(&api, &one);
        let listed = api.call("GET", "/v1/tokens?backing=repo").expect(200).json()["items"].clone();
        if made {
            let id = answer.expect(201).field("id");
            assert_eq!(listed[0]["id"], json!(id));
            api.call("DELETE", &format!("/v1/tokens/{id}")).expect(204);
        } else {
            is(&answer, 403, "role_mismatch");
            assert_eq!(listed, json!([]), "{email}");
        }
        is(&create(&api, &two), 403, "repo_access_denied");
    }
    create(&owner, &two).expect(201);
}
