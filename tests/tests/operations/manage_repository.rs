//! The action `manage` in a repository: its settings, upstream and credentials, members of a group,
//! service keys, trusted publishers, retention, quota and trash. It includes neither the packages
//! of the repository nor any other repository.

use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, MavenRepository, Response, Server, days_ahead};
use serde_json::{Value, json};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
const MANAGER: &str = "manager@example.com";

#[track_caller]
fn is(answer: &Response, status: u16, code: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (status, code), "{}", answer.text());
}

fn entry(repository: &str, actions: &[&str]) -> Value {
    json!({"repository": repository, "actions": actions})
}

/// Creates a member with these entries for repositories, as the owner, and signs the member in.
#[track_caller]
fn signed_in(server: &Server, email: &str, repositories: &Value) -> Api {
    let permissions = json!({"organization": [], "repositories": repositories});
    let new = json!({"email": email, "password": PASSWORD, "permissions": permissions});
    Api::sign_in(server).post("/v1/members", &new).expect(201);
    Api::sign_in_as(server, email, PASSWORD)
}

fn path(repository: &str) -> String {
    format!("/v1/repositories/{repository}")
}

#[test]
fn a_manager_of_one_repository_changes_only_its_settings() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let (own, seen) = (owner.create_maven("own", &json!({})), owner.create_maven("seen", &json!({})));
    let hidden = owner.create_maven("hidden", &json!({}));
    let manager = signed_in(&server, MANAGER, &json!([entry(&own, &["manage"]), entry(&seen, &["read"])]));
    let me = manager.call("GET", "/v1/me").expect(200).json();
    let actions: Vec<&Value> =
        me["repositories"].as_array().unwrap().iter().map(|repository| &repository["actions"]).collect();
    assert_eq!(actions, [&json!(["manage"]), &json!(["read"])]);
    let change = json!({"settings": {"redeploy": "identical", "quota_bytes": 1000}});
    let changed = manager.patch(&path(&own), &change).expect(200).json();
    assert_eq!(changed["settings"]["quota_bytes"], 1000);
    is(&manager.patch(&path(&seen), &change), 403, "insufficient_permissions");
    for id in [hidden.as_str(), "12345", "x"] {
        is(&manager.patch(&path(id), &change), 404, "not_found");
    }
    // These stay with the permission to manage all repositories.
    is(&manager.call("DELETE", &path(&own)), 403, "insufficient_permissions");
    let new = json!({"name": "new", "format": "maven", "kind": "hosted"});
    is(&manager.post("/v1/repositories", &new), 403, "insufficient_permissions");
    // The packages need rights of their own. So does making the repository public.
    is(&manager.call("GET", &format!("{}/packages", path(&own))), 403, "role_mismatch");
    is(&manager.patch(&path(&own), &json!({"settings": {"public": true}})), 403, "role_mismatch");
    // A manager by the name of repositories also manages those that are created later.
    let by_name = json!([{"repository_name": "team-*", "actions": ["manage", "read"]}]);
    let team = signed_in(&server, "team@example.com", &by_name);
    let later = owner.create_maven("team-later", &json!({}));
    team.patch(&path(&later), &json!({"settings": {"public": true}})).expect(200);
    is(&team.patch(&path(&own), &change), 404, "not_found");
}

#[test]
fn a_manager_changes_upstream_credentials_and_cache_of_a_proxy() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let proxy = owner.create_proxy("hub", "docker", "https://upstream.example/", &json!({}));
    let manager = signed_in(&server, MANAGER, &json!([entry(&proxy, &["manage"])]));
    let change = json!({"upstream": {"url": "https://other.example/"}});
    let changed = manager.patch(&path(&proxy), &change).expect(200).json();
    assert_eq!(changed["upstream"]["url"], "https://other.example/");
    let credentials = json!({"username": "robot", "password": "secret",
        "confirmation_token": manager.confirm("set_upstream_credentials")});
    manager.send("PUT", &format!("{}/upstream-credentials", path(&proxy)), &credentials).expect(204);
    // The list of cached responses reveals the content.
    is(&manager.call("GET", &format!("{}/cache", path(&proxy))), 403, "role_mismatch");
    manager.call("DELETE", &format!("{}/cache", path(&proxy))).expect(204);
}

#[test]
fn a_manager_adds_only_readable_repositories_to_a_group() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let (one, two) = (owner.create_maven("one", &json!({})), owner.create_maven("two", &json!({})));
    let secret = owner.create_maven("secret", &json!({}));
    let group = json!({"name": "all", "format": "maven", "kind": "group", "members": [secret]});
    let group = owner.post("/v1/repositories", &group).expect(201).field("id");
    let entries = json!([entry(&group, &["manage"]), entry(&one, &["read"]), entry(&two, &["publish"])]);
    let manager = signed_in(&server, MANAGER, &entries);
    let set = |members: &[&str]| manager.patch(&path(&group), &json!({"members": members}));
    // A present member stays or leaves, whether or not the manager may read it.
    assert_eq!(set(&[&secret, &one]).expect(200).json()["members"], json!([secret, one]));
    for members in [vec![&one, &two], vec![&one, &"12345".to_owned()]] {
        let members: Vec<&str> = members.into_iter().map(String::as_str).collect();
        is(&set(&members), 403, "repo_access_denied");
    }
    set(&[&one]).expect(200);
    is(&set(&[&secret]), 403, "repo_access_denied");
    owner.patch(&path(&secret), &json!({"settings": {"public": true}})).expect(200);
    set(&[&secret]).expect(200);
}

#[test]
fn a_manager_manages_service_keys_without_gaining_their_rights() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let (own, other) = (owner.create_maven("own", &json!({})), owner.create_maven("other", &json!({})));
    let create = |api: &Api, id: &str, scope: &[&str]| {
        let body = json!({"name": "ci", "scope": scope, "format": "generic", "repositories": [id],
            "expires_at": days_ahead(30), "backing": {"kind": "repo", "id": id},
            "confirmation_token": api.confirm("create_token")});
        api.post("/v1/tokens", &body)
    };
    let rotate = |api: &Api, id: &str| {
        let body = json!({"confirmation_token": api.confirm("rotate_token")});
        api.post(&format!("/v1/tokens/{id}/rotation"), &body)
    };
    let keys = [["read", "write"].as_slice(), &["read"]].map(|scope| create(&owner, &own, scope).expect(201));
    let [writes, reads] = keys.map(|made| made.field("id"));
    let foreign = create(&owner, &other, &["read"]).expect(201).field("id");
    let manager = signed_in(&server, MANAGER, &json!([entry(&own, &["manage", "read"])]));
    let listed = manager.call("GET", "/v1/tokens?backing=repo").expect(200).json();
    let ids: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|key| &key["id"]).collect();
    assert_eq!(ids, [&json!(writes), &json!(reads)]);
    // The manager receives the secret of a new key, so that the key may do no more than the
    // manager.
    create(&manager, &own, &["read"]).expect(201);
    is(&create(&manager, &own, &["read", "write"]), 403, "role_mismatch");
    rotate(&manager, &reads).expect(201);
    is(&rotate(&manager, &writes), 403, "role_mismatch");
    is(&rotate(&manager, &foreign), 403, "insufficient_permissions");
    is(&manager.call("DELETE", &format!("/v1/tokens/{foreign}")), 403, "insufficient_permissions");
    let writer = signed_in(&server, "writer@example.com", &json!([entry(&own, &["publish", "delete"])]));
    for key in [&writes, &reads] {
        is(&rotate(&writer, key), 403, "role_mismatch");
    }
    manager.call("DELETE", &format!("/v1/tokens/{writes}")).expect(204);
    // Without read access, the manager revokes keys and makes none.
    let blind = signed_in(&server, "blind@example.com", &json!([entry(&own, &["manage"])]));
    is(&create(&blind, &own, &["read"]), 403, "repo_access_denied");
    is(&rotate(&blind, &reads), 403, "role_mismatch");
    blind.call("DELETE", &format!("/v1/tokens/{reads}")).expect(204);
}

#[test]
fn a_manager_manages_trusted_publishers_of_its_repository() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let (own, other) = (owner.create_maven("own", &json!({})), owner.create_maven("other", &json!({})));
    let body = |repository: &str| {
        json!({"repository": repository, "provider": "github", "packages": ["*"], "scope": ["write"],
            "claims": {"repository_owner": "o", "repository": "r", "workflow": "w.yml"}})
    };
    let publishers = "/v1/trusted-publishers";
    let make = |api: &Api, repository: &str| api.post(publishers, &body(repository));
    let ids = [&own, &other].map(|repository| make(&owner, repository).expect(201).field("id"));
    let manager = signed_in(&server, MANAGER, &json!([entry(&own, &["manage"]), entry(&other, &["read"])]));
    let listed = manager.call("GET", publishers).expect(200).json();
    let found: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(found, [&json!(ids[0])]);
    manager.call("GET", &format!("{publishers}/{}", ids[0])).expect(200);
    for id in [ids[1].as_str(), "12345"] {
        is(&manager.call("GET", &format!("{publishers}/{id}")), 404, "not_found");
        is(&manager.call("DELETE", &format!("{publishers}/{id}")), 404, "not_found");
    }
    // Making one also needs the rights of its tokens.
    is(&make(&manager, &own), 403, "role_mismatch");
    is(&make(&manager, &other), 403, "insufficient_permissions");
    manager.call("DELETE", &format!("{publishers}/{}", ids[0])).expect(204);
    let entries = json!([entry(&own, &["manage", "publish", "delete"])]);
    make(&signed_in(&server, "both@example.com", &entries), &own).expect(201);
}

#[test]
fn a_manager_manages_retention_policies_of_its_repositories_alone() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "own");
    maven.put(FILE, "hello").expect(201);
    let (second, other) = (owner.create_maven("second", &json!({})), owner.create_maven("other", &json!({})));
    let policies = "/v1/retention-policies";
    let make = |api: &Api, repositories: Value| {
        let body = json!({"name": "old", "repositories": repositories, "match": {}, "keep": {},
            "delete": {"published_before_days": 0}, "max_deletes": 10});
        api.post(policies, &body)
    };
    let of_all = make(&owner, json!("*")).expect(201).field("id");
    let of_both = make(&owner, json!([maven.id, other])).expect(201).field("id");
    let entries = json!([entry(&maven.id, &["manage", "read"]), entry(&second, &["manage"])]);
    let manager = signed_in(&server, MANAGER, &entries);
    let own = make(&manager, json!([maven.id, second])).expect(201).field("id");
    for repositories in [json!("*"), json!([other]), json!([maven.id, other]), json!([maven.id, "12345"])] {
        is(&make(&manager, repositories.clone()), 403, "insufficient_permissions");
        let change = json!({"repositories": repositories});
        is(&manager.patch(&format!("{policies}/{own}"), &change), 403, "insufficient_permissions");
    }
    let listed = manager.call("GET", policies).expect(200).json();
    let found: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
    assert_eq!(found, [&json!(own)]);
    for id in [of_all.as_str(), &of_both, "12345"] {
        is(&manager.call("GET", &format!("{policies}/{id}")), 404, "not_found");
        is(&manager.call("POST", &format!("{policies}/{id}/preview")), 404, "not_found");
        is(&manager.call("DELETE", &format!("{policies}/{id}")), 404, "not_found");
    }
    let preview = manager.call("POST", &format!("{policies}/{own}/preview")).expect(200).json();
    assert_eq!(preview["items"][0]["package"], "org.example:a");
    manager.patch(&format!("{policies}/{own}"), &json!({"mode": "enforced"})).expect(200);
    manager.call("DELETE", &format!("{policies}/{own}")).expect(204);
    let reader = signed_in(&server, "reader@example.com", &json!([entry("*", &["read"])]));
    is(&reader.call("GET", policies), 403, "insufficient_permissions");
}

#[test]
fn a_manager_restores_from_the_trash() {
    let server = Server::start();
    let maven = MavenRepository::create(&server, "own");
    maven.put(FILE, "hello").expect(201);
    let version = format!("{}/packages/org.example%3Aa/versions/1.0", path(&maven.id));
    Api::sign_in(&server).call("DELETE", &version).expect(204);
    let manager = signed_in(&server, MANAGER, &json!([entry(&maven.id, &["manage"])]));
    let trash = format!("{}/trash", path(&maven.id));
    let entry = manager.call("GET", &trash).expect(200).json()["items"][0].clone();
    manager.call("POST", &format!("{trash}/{}/restore", entry["id"].as_str().unwrap())).expect(200);
    assert_eq!(maven.get(FILE).expect(200).text(), "hello");
    // Deleting needs the right to delete.
    is(&manager.call("DELETE", &version), 404, "not_found");
}
