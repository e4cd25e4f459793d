//! Changes through the API: deleting packages and versions, and marking a version as deprecated or
//! yanked. The calls are the same for every format whose plugin supports them.

use crate::release;

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, Client, MavenRepository, Request, Response, Server, checkout};
use release::Release;
use serde_json::{Value, json};

const ONE: &str = "org/example/a/1.0/a-1.0.jar";
const TWO: &str = "org/example/a/2.0/a-2.0.jar";

#[test]
fn versions_and_packages_are_deleted() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "files");
    for file in [ONE, TWO] {
        repository.put(file, "x").expect(201);
    }
    let api = Api::sign_in(&server);
    let package = format!("/v1/repositories/{}/packages/org.example%3Aa", repository.id);
    api.call("DELETE", &format!("{package}/versions/9.9")).expect(404);
    api.call("DELETE", &format!("{package}/versions/1.0")).expect(204);
    repository.get(ONE).expect(404);
    repository.get(TWO).expect(200);
    repository.put(ONE, "another").expect(201);
    assert_eq!(repository.get(ONE).expect(200).text(), "another");
    let state = json!({"state": "yanked"});
    let refused = api.send("PUT", &format!("{package}/versions/1.0/state"), &state).expect(405);
    assert_eq!(refused.field("error"), "not_supported");
    api.call("DELETE", &format!("{package}/versions/1.0")).expect(204);
    api.call("DELETE", &format!("{package}/versions/1.0")).expect(404);
    api.call("DELETE", &package).expect(204);
    repository.get(TWO).expect(404);
    api.call("DELETE", &package).expect(404);
    let events = api.call("GET", "/v1/audit-events?limit=10").expect(200).text();
    assert!(events.contains("delete_version") && events.contains("org.example:a 2.0"), "{events}");
}

#[test]
fn rights_are_checked_and_unknown_states_refused() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "files");
    repository.put(ONE, "x").expect(201);
    let api = Api::sign_in(&server);
    let permissions =
        json!({"organization": [], "repositories": [{"repository": repository.id, "actions": ["read"]}]});
    let member = json!({"email": "reader@example.com", "password": PASSWORD, "permissions": permissions});
    api.post("/v1/members", &member).expect(201);
    let client = Client::new(server.api());
    let body = json!({"email": "reader@example.com", "password": PASSWORD}).to_string();
    let request = Request::new("POST", "/v1/sessions").header("Content-Type", "application/json").body(body);
    let session = client.send(request).expect(201).field("session");
    let reader = client.with("Authorization", &format!("Bearer {session}"));
    let version = format!("/v1/repositories/{}/packages/org.example%3Aa/versions/1.0", repository.id);
    assert_eq!(reader.send(Request::new("DELETE", &version)).expect(403).field("error"), "role_mismatch");
    let state = format!("{version}/state");
    assert_eq!(
        api.send("PUT", &state, &json!({"state": "gone"})).expect(400).field("error"),
        "invalid_request"
    );
    repository.get(ONE).expect(200);
}

/// A hosted npm repository with these settings and a way to publish into it.
struct Npm {
    api: Api,
    client: Client,
    name: &'static str,
    id: String,
}

impl Npm {
    fn create(server: &Server, name: &'static str, settings: &Value) -> Self {
        let api = Api::sign_in(server);
        let body = json!({"name": name, "format": "npm", "kind": "hosted", "settings": settings});
        let id = api.post("/v1/repositories", &body).expect(201).field("id");
        let token = api.create_token(&[&id], &["read", "write"], None);
        let client = server.anonymous().with("Authorization", &format!("Bearer {}", token.secret));
        Self { api, client, name, id }
    }

    fn publish(&self, release: &Release) -> Response {
        let path = format!("/repositories/{}{}", self.name, release.path());
        let request = Request::new("PUT", &path).header("Content-Type", "application/json");
        self.client.send(request.body(release.document().to_string()))
    }

    /// A version, as clients see it in the packument.
    fn version(&self, package: &str, version: &str) -> Value {
        let packument = self.client.get(&format!("/repositories/{}/{package}", self.name)).expect(200);
        packument.json()["versions"][version].clone()
    }

    fn address(&self, version: &str) -> String {
        format!("/v1/repositories/{}/packages/%40acme%2Flib/versions/{version}", self.id)
    }
}

#[test]
fn a_version_is_deprecated_and_clients_see_it() {
    let server = Server::start();
    let npm = Npm::create(&server, "js", &json!({}));
    npm.publish(&Release::new("@acme/lib", "1.0.0")).expect(201);
    let mark = |state: Value, status| {
        npm.api.send("PUT", &format!("{}/state", npm.address("1.0.0")), &state).expect(status)
    };
    let marked = mark(json!({"state": "deprecated", "reason": "use 2"}), 200).json();
    assert_eq!((&marked["state"], &marked["reason"]), (&json!("deprecated"), &json!("use 2")));
    assert_eq!(npm.version("@acme%2flib", "1.0.0")["deprecated"], "use 2");
    let listed = npm.api.call("GET", npm.address("").trim_end_matches('/')).expect(200).json();
    assert_eq!(listed["items"][0], marked);
    assert_eq!(mark(json!({"state": "yanked"}), 405).field("error"), "not_supported");
    assert_eq!(mark(json!({"state": ""}), 200).json()["state"], "");
    assert_eq!(npm.version("@acme%2flib", "1.0.0")["deprecated"], Value::Null);
}

#[test]
fn a_deleted_version_number_is_reusable_only_if_the_setting_allows_it() {
    let server = Server::start();
    for (name, settings, status) in
        [("once", json!({}), 409), ("again", json!({"republish_deleted": true}), 201)]
    {
        let npm = Npm::create(&server, name, &settings);
        let release = Release::new("@acme/lib", "1.0.0");
        npm.publish(&release).expect(201);
        npm.publish(&Release::new("@acme/lib", "2.0.0")).expect(201);
        npm.api.call("DELETE", &npm.address("1.0.0")).expect(204);
        assert_eq!(npm.version("@acme%2flib", "1.0.0"), Value::Null);
        npm.client.get(&format!("/repositories/{name}/@acme/lib/-/lib-1.0.0.tgz")).expect(404);
        let refused = npm.publish(&release);
        assert_eq!(refused.status, status, "{name}: {}", refused.text());
    }
}

#[test]
fn a_group_refuses_changes_of_its_members() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let create = |body: Value| api.post("/v1/repositories", &body).expect(201).field("id");
    let member = create(json!({"name": "py", "format": "python", "kind": "hosted"}));
    let group = create(json!({"name": "all", "format": "python", "kind": "group", "members": [member]}));
    let package = format!("/v1/repositories/{group}/packages/lib");
    for path in [package.clone(), format!("{package}/versions/1.0")] {
        let refused = api.call("DELETE", &path).expect(405);
        assert_eq!(refused.field("code"), "writes_not_permitted_on_group");
    }
    let state = api.send("PUT", &format!("{package}/versions/1.0/state"), &json!({"state": "yanked"}));
    assert_eq!(state.expect(405).field("code"), "writes_not_permitted_on_group");
}

#[test]
fn a_format_without_this_operation_refuses_it() {
    let plugins = tempfile::tempdir().unwrap();
    std::fs::copy(checkout().join("target/release/guests/raw.wasm"), plugins.path().join("raw.wasm"))
        .unwrap();
    let server = Server::with().arg("--plugins").arg(plugins.path().to_str().unwrap()).start();
    let api = Api::sign_in(&server);
    let body = json!({"name": "files", "format": "raw", "kind": "hosted"});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    server.anonymous().basic(OWNER, PASSWORD).put("/repositories/files/a", "x").expect(201);
    let version = format!("/v1/repositories/{id}/packages/a/versions/latest");
    assert_eq!(api.call("DELETE", &version).expect(405).field("error"), "not_supported");
    let state = json!({"state": "yanked", "reason": "broken"});
    let answer = api.send("PUT", &format!("{version}/state"), &state).expect(405);
    assert_eq!(answer.field("error"), "not_supported");
}

/// The package has more versions than one call deletes while the caller waits. The server deletes
/// the rest in the background, even after an immediate kill and restart.
#[test]
fn a_package_of_very_many_versions_is_deleted_in_pieces_that_survive_a_kill() {
    const VERSIONS: usize = 900;
    let mut server = Server::start();
    let repository = MavenRepository::create(&server, "many");
    let next = std::sync::atomic::AtomicUsize::new(0);
    packhouse_tests::race::at_once(16, |_| {
        loop {
            let number = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if number >= VERSIONS {
                return;
            }
            let file = format!("org/example/a/1.{number}/a-1.{number}.jar");
            repository.put(&file, number.to_string()).expect(201);
        }
    });
    repository.put("org/example/b/1.0/b-1.0.jar", "stays").expect(201);
    let api = Api::sign_in(&server);
    let packages = format!("/v1/repositories/{}/packages", repository.id);
    let listed = api.call("GET", &packages).expect(200).json();
    assert_eq!(listed["items"][0]["versions"], VERSIONS, "{listed}");
    let answer = api.call("DELETE", &format!("{packages}/org.example%3Aa"));
    match answer.status {
        202 => assert_eq!(answer.json(), json!({"status": "deleting", "versions": VERSIONS})),
        other => assert_eq!(other, 204, "{}", answer.text()),
    }
    server.restart();
    let api = Api::sign_in(&server);
    packhouse_tests::server::eventually("the package is gone", || {
        let left = api.call("GET", &packages).expect(200).json();
        let items = left["items"].as_array().unwrap();
        (items.len() == 1 && items[0]["name"] == "org.example:b").then_some(())
    });
    repository.get("org/example/a/1.7/a-1.7.jar").expect(404);
    assert_eq!(repository.get("org/example/b/1.0/b-1.0.jar").expect(200).text(), "stays");
    let events = api.call("GET", "/v1/audit-events?action=delete_version&limit=1").expect(200).text();
    assert!(events.contains("many/org.example:a 1."), "{events}");
}
