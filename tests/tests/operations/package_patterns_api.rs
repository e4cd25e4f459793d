//! Patterns of packages in permissions, tokens, service keys and trusted publishers, over the API:
//! their form, and the limits of what a limited member makes, deletes and marks.

use packhouse_tests::server::PASSWORD;
use packhouse_tests::{Api, MavenRepository, Request, Response, Server, days_ahead};
use serde_json::{Value, json};

const DEV: &str = "dev@example.com";
/// Files of two packages.
const FILES: [&str; 2] = ["org/example/a/1.0/a-1.0.jar", "org/other/b/1.0/b-1.0.jar"];

#[track_caller]
fn is(answer: &Response, status: u16, code: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (status, code), "{}", answer.text());
}

/// Permissions to publish and delete packages of these patterns in one repository, and to read it.
fn limited(repository: &str, packages: &[&str]) -> Value {
    json!({"organization": [], "repositories": [
        {"repository": repository, "actions": ["read", "publish", "delete"], "packages": packages}]})
}

/// Creates a member with these permissions, as the owner, and signs the member in.
#[track_caller]
fn signed_in(server: &Server, permissions: &Value) -> Api {
    let new = json!({"email": DEV, "password": PASSWORD, "permissions": permissions});
    Api::sign_in(server).post("/v1/members", &new).expect(201);
    Api::sign_in_as(server, DEV, PASSWORD)
}

/// Requests a service key of a repository that reads and writes, with these packages.
fn key(api: &Api, repository: &str, packages: &Value) -> Response {
    let body = json!({"name": "ci", "scope": ["read", "write"], "format": "generic",
        "repositories": [repository], "expires_at": days_ahead(30), "packages": packages,
        "backing": {"kind": "repo", "id": repository}, "confirmation_token": api.confirm("create_token")});
    api.post("/v1/tokens", &body)
}

fn rotate(api: &Api, id: &str) -> Response {
    let body = json!({"confirmation_token": api.confirm("rotate_token")});
    api.post(&format!("/v1/tokens/{id}/rotation"), &body)
}

#[test]
fn permissions_keep_their_patterns_and_invalid_ones_are_refused() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let repository = owner.create_maven("lib", &json!({}));
    let publish =
        |packages: &[&str]| json!({"repository": repository, "actions": ["publish"], "packages": packages});
    // Entries for one repository merge only if their patterns are equal.
    let given = json!({"repositories": [publish(&["a"]), publish(&["b"]),
        {"repository": repository, "actions": ["delete"], "packages": ["a"]},
        {"repository_name": "team-*", "actions": ["read", "manage"]}]});
    let merged = json!({"organization": [], "repositories": [
        {"repository": repository, "actions": ["publish", "delete"], "packages": ["a"]}, publish(&["b"]),
        {"repository_name": "team-*", "actions": ["read", "manage"]}]});
    let dev = signed_in(&server, &given);
    let me = dev.call("GET", "/v1/me").expect(200).json();
    assert_eq!((&me["permissions"], &me["effective_permissions"]), (&merged, &merged));
    let path = format!("/v1/members/{}/permissions", me["id"].as_str().unwrap());
    for wrong in [
        json!({"actions": ["read"]}),
        json!({"repository": repository, "repository_name": "lib", "actions": ["read"]}),
        json!({"repository_name": "", "actions": ["read"]}),
        json!({"repository_name": "a".repeat(257), "actions": ["read"]}),
        json!({"repository": repository, "actions": ["write"]}),
        publish(&[]),
        publish(&[""]),
        publish(&["a".repeat(257).as_str()]),
        publish(&["a"; 101]),
        json!({"repository": repository, "actions": ["publish"], "packages": "a"}),
    ] {
        let body = json!({"permissions": {"repositories": [wrong]}});
        is(&owner.send("PUT", &path, &body), 400, "invalid_request");
    }
    let invited = json!({"email": "a@example.com", "permissions": {"repositories": [publish(&[])]}});
    is(&owner.post("/v1/invitations", &invited), 400, "invalid_request");
}

#[test]
fn a_grant_of_packages_that_the_actor_does_not_hold_is_refused() {
    let server = Server::start();
    let repository = Api::sign_in(&server).create_maven("lib", &json!({}));
    let mut held = limited(&repository, &["org.example:*", "lib"]);
    held["organization"] = json!(["manage-members"]);
    let manager = signed_in(&server, &held);
    let reads = json!({"repositories": [{"repository": repository, "actions": ["read"]}]});
    let all = json!({"repositories": [{"repository": repository, "actions": ["publish"]}]});
    for (wanted, granted) in [
        (reads, true),
        (limited(&repository, &["org.example:a-*"]), true),
        (limited(&repository, &["org.example:*", "lib"]), true),
        (limited(&repository, &["lib"]), true),
        (limited(&repository, &["org.*"]), false),
        (limited(&repository, &["lib*"]), false),
        (limited(&repository, &["lib", "other"]), false),
        (all, false),
    ] {
        let invited = json!({"email": "friend@example.com", "permissions": wanted});
        let answer = manager.post("/v1/invitations", &invited);
        match granted {
            true => drop(answer.expect(201)),
            false => is(&answer, 403, "role_mismatch"),
        }
    }
}

#[test]
fn a_token_keeps_its_packages_in_lists_and_rotations() {
    let server = Server::start();
    let repository = Api::sign_in(&server).create_maven("lib", &json!({}));
    let dev = signed_in(&server, &limited(&repository, &["org.example:*"]));
    let make = |scope: &[&str], packages: Value| {
        let body = json!({"name": "ci", "scope": scope, "format": "generic", "repositories": [repository],
            "expires_at": null, "packages": packages, "confirmation_token": dev.confirm("create_token")});
        dev.post("/v1/tokens", &body)
    };
    // An entry that is limited to packages is enough to write. The token stays within the rights of
    // its owner, whatever it lists.
    assert_eq!(make(&["write"], Value::Null).expect(201).json()["packages"], Value::Null);
    let made = make(&["read", "write"], json!(["org.example:a", "*", "*"])).expect(201).json();
    let packages = json!(["org.example:a", "*"]);
    assert_eq!(made["packages"], packages);
    let rotated = rotate(&dev, made["id"].as_str().unwrap()).expect(201).json();
    assert_eq!(rotated["packages"], packages);
    let listed = dev.call("GET", "/v1/tokens").expect(200).json();
    let found: Vec<&Value> =
        listed["items"].as_array().unwrap().iter().map(|token| &token["packages"]).collect();
    assert_eq!(found, [&Value::Null, &packages, &packages]);
    let many: Vec<String> = (0..101).map(|at| format!("a{at}")).collect();
    for (scope, packages) in [
        (&["read"][..], json!(["a"])),
        (&["write"], json!([])),
        (&["write"], json!([""])),
        (&["write"], json!("a")),
        (&["write"], json!(many)),
    ] {
        is(&make(scope, packages), 400, "invalid_request");
    }
}

#[test]
fn a_service_key_of_a_limited_member_has_at_most_that_members_packages() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "lib");
    let dev = signed_in(&server, &limited(&maven.id, &["org.example:*"]));
    let made = key(&dev, &maven.id, &Value::Null).expect(201).json();
    assert_eq!(made["packages"], json!(["org.example:*"]));
    let narrow = key(&dev, &maven.id, &json!(["org.example:a"])).expect(201).json();
    assert_eq!(narrow["packages"], json!(["org.example:a"]));
    for wider in [json!(["*"]), json!(["org.example:a", "org.other:b"]), json!(["org.*"])] {
        is(&key(&dev, &maven.id, &wider), 403, "role_mismatch");
    }
    let client = server.anonymous().basic("__token__", made["secret"].as_str().unwrap());
    client.put(&maven.path(FILES[0]), "hello").expect(201);
    let refused = client.put(&maven.path(FILES[1]), "hello").expect(403);
    assert_eq!(refused.field("reason_code"), "scope_mismatch_package");
    // The limit stays when the member gets more, because a key has no owner.
    let id = dev.call("GET", "/v1/me").expect(200).field("id");
    let more = json!({"permissions": limited(&maven.id, &["*"])});
    owner.send("PUT", &format!("/v1/members/{id}/permissions"), &more).expect(200);
    client.put(&maven.path(FILES[1]), "hello").expect(403);
    assert_eq!(key(&dev, &maven.id, &Value::Null).expect(201).json()["packages"], Value::Null);
}

#[test]
fn a_limited_member_neither_sees_nor_rotates_wider_service_keys() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let repository = owner.create_maven("lib", &json!({}));
    let dev = signed_in(&server, &limited(&repository, &["org.example:*"]));
    let all = key(&owner, &repository, &Value::Null).expect(201).field("id");
    let wider = key(&owner, &repository, &json!(["org.*"])).expect(201).field("id");
    let within = key(&owner, &repository, &json!(["org.example:a"])).expect(201).field("id");
    for id in [&all, &wider] {
        is(&rotate(&dev, id), 403, "insufficient_permissions");
        is(&dev.call("DELETE", &format!("/v1/tokens/{id}")), 403, "insufficient_permissions");
    }
    let listed = dev.call("GET", "/v1/tokens?backing=repo").expect(200).json();
    let found: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|key| &key["id"]).collect();
    assert_eq!(found, [&json!(within)]);
    assert_eq!(rotate(&dev, &within).expect(201).json()["packages"], json!(["org.example:a"]));
    dev.call("DELETE", &format!("/v1/tokens/{within}")).expect(204);
}

#[test]
fn a_trusted_publisher_of_a_limited_member_names_only_that_members_packages() {
    let server = Server::start();
    let repository = Api::sign_in(&server).create_maven("lib", &json!({}));
    let mut held = limited(&repository, &["org.example:*"]);
    held["organization"] = json!(["manage-repositories"]);
    let dev = signed_in(&server, &held);
    let make = |packages: Value| {
        let body = json!({"repository": repository, "provider": "github", "packages": packages,
            "scope": ["write"], "claims": {"repository_owner": "o", "repository": "r", "workflow": "w.yml"}});
        dev.post("/v1/trusted-publishers", &body)
    };
    let made = make(json!(["org.example:a", "org.example:b-*"])).expect(201).json();
    assert_eq!(made["packages"], json!(["org.example:a", "org.example:b-*"]));
    for wider in [json!(["*"]), json!(["org.example:a", "lib"])] {
        is(&make(wider), 403, "role_mismatch");
    }
}

#[test]
fn the_api_deletes_marks_and_restores_only_packages_of_the_member() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let maven = MavenRepository::create(&server, "lib");
    for file in FILES {
        maven.put(file, "hello").expect(201);
    }
    let dev = signed_in(&server, &limited(&maven.id, &["ORG.example:a", "org.example:*"]));
    let package = |name: &str| format!("/v1/repositories/{}/packages/{name}", maven.id);
    let [own, other] = ["org.example%3Aa", "org.other%3Ab"].map(package);
    let code = "scope_mismatch_package";
    let refused = dev.call("DELETE", &format!("{other}/versions/1.0"));
    is(&refused, 403, code);
    assert_eq!(refused.field("message"), "This credential may not delete org.other:b here.");
    is(&dev.call("DELETE", &other), 403, code);
    let state = json!({"state": "deprecated", "reason": "old"});
    let marked = dev.send("PUT", &format!("{other}/versions/1.0/state"), &state);
    is(&marked, 403, code);
    assert_eq!(marked.field("message"), "This credential may not publish org.other:b here.");
    is(&dev.call("DELETE", &package("org.none%3Ac")), 404, "not_found");
    dev.call("DELETE", &format!("{own}/versions/1.0")).expect(204);
    owner.call("DELETE", &format!("{other}/versions/1.0")).expect(204);
    let trash = format!("/v1/repositories/{}/trash", maven.id);
    let entries = dev.call("GET", &trash).expect(200).json();
    let entry = |package: &str| {
        let found = entries["items"].as_array().unwrap().iter().find(|entry| entry["package"] == package);
        found.unwrap()["id"].as_str().unwrap().to_owned()
    };
    let restore = |package: &str| dev.call("POST", &format!("{trash}/{}/restore", entry(package)));
    is(&restore("org.other:b"), 403, code);
    restore("org.example:a").expect(200);
    maven.get(FILES[0]).expect(200);
    maven.get(FILES[1]).expect(404);
    // The client of the repository host is refused in the same way.
    let request = Request::new("DELETE", &maven.path("org/example/a/1.0/a-1.0.jar"));
    server.anonymous().basic(DEV, PASSWORD).send(request).expect(204);
}
