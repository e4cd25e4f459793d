//! The commands for first set-up and rescue, as an operator runs them: while a server runs, and
//! while none runs.

use packhouse_tests::cli::{json, packhouse, packhouse_with};
use packhouse_tests::digests::sha256;
use packhouse_tests::server::{self, OWNER, PASSWORD};
use packhouse_tests::{Api, MavenRepository, Server};
use serde_json::json;

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

#[test]
fn a_lost_owners_password_is_set_beside_the_server() {
    let server = Server::start();
    let before = Api::sign_in(&server);
    let words = ["member", "set-password", OWNER, "--password-stdin"];
    packhouse(server.data(), &words, "a new password\n").success();
    before.call("GET", "/v1/me").expect(401);
    let api = Api::sign_in_as(&server, OWNER, "a new password");
    assert_eq!(before.post("/v1/sessions", &json!({"email": OWNER, "password": PASSWORD})).status, 401);

    let random = json(server.data(), &["member", "set-password", OWNER]);
    let password = random["password"].as_str().unwrap();
    api.call("GET", "/v1/me").expect(401);
    let api = Api::sign_in_as(&server, OWNER, password);
    let events = api.call("GET", "/v1/audit-events?actor=command%20line").expect(200).json();
    assert_eq!(events["items"].as_array().unwrap().len(), 2, "{events}");
    assert!(!events.to_string().contains(password));
    packhouse(server.data(), &["member", "set-password", OWNER, "--password-stdin"], "\n").refused("blank");
    packhouse(server.data(), &["member", "set-password", "nobody@example.com"], "")
        .refused("is not a member");
}

#[test]
fn members_repositories_and_tokens_are_created_without_a_server() {
    let mut server = Server::start();
    server.terminate();
    server.wait();
    let data = server.data().to_owned();
    let repository = json(&data, &["repo", "create", "libs", "--format", "maven"]);
    assert_eq!(repository["kind"], "hosted");
    packhouse(&data, &["repo", "create", "libs", "--format", "maven"], "").refused("already");
    packhouse(&data, &["repo", "create", "Libs", "--format", "maven"], "").refused("name");
    packhouse(&data, &["repo", "create", "x", "--format", "absent"], "").refused("maven");
    let member = json(&data, &["member", "create", "dev@example.com", "--repository", "libs=read"]);
    let password = member["password"].as_str().unwrap().to_owned();
    packhouse(&data, &["member", "create", "dev@example.com"], "").refused("already");
    packhouse(&data, &["member", "grant", "dev@example.com", "--permission", "everything"], "")
        .refused("is not a permission");
    let granted = json(&data, &["member", "grant", "dev@example.com", "--repository", "libs=publish,delete"]);
    assert_eq!(granted["permissions"]["repositories"][1]["actions"], json!(["publish", "delete"]));
    let new =
        ["token", "create", "--name", "ci", "--member", "dev@example.com", "--repository", "libs", "--scope"];
    let token = json(&data, &[&new[..], &["read,write", "--expires-in", "30d"]].concat());
    packhouse(&data, &[&new[..], &["admin", "--never"]].concat(), "").refused("scope");
    packhouse(&data, &[&new[..], &["read", "--never", "--service-key", "org"]].concat(), "")
        .refused("90 days");
    let key = json(&data, &[&new[..], &["read", "--expires-in", "7", "--service-key", "repo"]].concat());
    assert_eq!((&key["backing"], &key["owner"]), (&json!("repo"), &json!(null)));

    server.restart();
    let client = server.anonymous().basic("dev@example.com", token["secret"].as_str().unwrap());
    client.put(&format!("/repositories/libs/{FILE}"), "hello").expect(201);
    Api::sign_in_as(&server, "dev@example.com", &password).call("GET", "/v1/me").expect(200);

    // A server runs from here on. It applies the changes of each command at its next request.
    let listed = json(&data, &["token", "list"]);
    assert_eq!(listed[0]["repositories"], json!(["libs"]));
    assert_eq!(listed.as_array().unwrap().len(), 2);
    let revoked = json(&data, &["token", "revoke", token["id"].as_str().unwrap()]);
    assert_eq!(revoked["state"], "revoked");
    client.get(&format!("/repositories/libs/{FILE}")).expect(401);
    assert_eq!(json(&data, &["token", "purge"])["purged"], 0);
    assert_eq!(json(&data, &["token", "purge", "--older-than", "0d"])["purged"], 1);
    assert_eq!(json(&data, &["member", "list"]).as_array().unwrap().len(), 2);
    let text = packhouse(&data, &["repo", "list"], "").success().text;
    assert!(text.contains("libs\tmaven\thosted"), "{text}");
    json(&data, &["repo", "delete", "libs"]);
    assert_eq!(json(&data, &["repo", "list"]), json!([]));
    server.anonymous().basic(OWNER, PASSWORD).get("/repositories/libs/").expect(404);
}

/// The container image ships compressed plugins, so the server must load them.
#[test]
fn a_compressed_plugin_is_a_format_too() {
    let home = tempfile::TempDir::new().unwrap();
    let (data, plugins) = (home.path().join("data"), home.path().join("plugins"));
    std::fs::create_dir(&plugins).unwrap();
    let component = server::program().with_file_name("plugins").join("generic.wasm");
    let compressed = zstd::encode_all(&std::fs::read(component).unwrap()[..], 1).unwrap();
    std::fs::write(plugins.join("generic.wasm.zst"), compressed).unwrap();
    packhouse(&data, &["org", "create", "acme", "--base-url", "http://127.0.0.1:8080"], "").success();
    let plugins = [("PACKHOUSE_PLUGINS_DIR", plugins.to_str().unwrap().to_owned())];
    packhouse_with(&data, &["repo", "create", "files", "--format", "generic"], &plugins).success();
    packhouse_with(&data, &["repo", "create", "libs", "--format", "maven"], &plugins).refused("generic");
}

#[test]
fn tokens_of_another_server_work_with_any_username_and_are_not_rotated() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "libs");
    repository.put(FILE, "hello").expect(201);
    let line = |name: &str, secret: &str, scope: &[&str]| {
        json!({"name": name, "sha256": sha256(secret.as_bytes()), "scope": scope, "repositories": ["libs"],
            "expires_at": null})
        .to_string()
    };
    let file = server.data().join("legacy.jsonl");
    let lines = [
        line("old", "an old secret", &["read"]),
        String::new(),
        line("older", "an older secret", &["read", "write"]),
    ];
    std::fs::write(&file, lines.join("\n")).unwrap();
    let words = ["token", "import", "--legacy", file.to_str().unwrap()];
    assert_eq!(json(server.data(), &words), json!({"imported": 2, "known": 0}));
    assert_eq!(json(server.data(), &words), json!({"imported": 0, "known": 2}));

    let path = repository.path(FILE);
    for username in ["whoever", OWNER, ""] {
        server.anonymous().basic(username, "an old secret").get(&path).expect(200);
    }
    server
        .anonymous()
        .basic("x", "an old secret")
        .put(&repository.path("org/example/a/2/a-2.jar"), "x")
        .expect(403);
    server
        .anonymous()
        .basic("x", "an older secret")
        .put(&repository.path("org/example/a/2/a-2.jar"), "x")
        .expect(201);
    let api = Api::sign_in(&server);
    let id = json(server.data(), &["token", "list"])[1]["id"].as_str().unwrap().to_owned();
    let body = json!({"confirmation_token": api.confirm("rotate_token")});
    let answer = api.post(&format!("/v1/tokens/{id}/rotation"), &body).expect(409);
    assert_eq!(answer.field("error"), "legacy_token");

    std::fs::write(&file, "{\"name\": \"x\"}").unwrap();
    packhouse(server.data(), &words, "").refused("line 1");
    std::fs::write(&file, line("x", "y", &["read"]).replace("libs", "absent")).unwrap();
    packhouse(server.data(), &words, "").refused("absent");
}
