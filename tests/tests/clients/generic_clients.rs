//! Tests with curl and a repository of files: curl puts, fetches, verifies, lists and deletes
//! files, and fetches parts of them. It also uses a proxy and a group.

use packhouse_tests::clients::{ProgramOutput, has, run};
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Server, payload, skip};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// curl in a home folder of its own, which contains its credential.
struct Curl(TempDir);

impl Curl {
    fn new(secret: &str) -> Option<Self> {
        if !has("curl") {
            skip("curl", "it is not on the path");
            return None;
        }
        let curl = Self(TempDir::new().unwrap());
        curl.credential(secret);
        Some(curl)
    }

    fn credential(&self, secret: &str) {
        std::fs::write(
            self.0.path().join(".netrc"),
            format!("machine 127.0.0.1\nlogin {OWNER}\npassword {secret}\n"),
        )
        .unwrap();
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder().join(name), bytes).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.folder().join(name)).unwrap()
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> ProgramOutput {
        let mut command = Command::new("curl");
        command.env("HOME", self.folder()).current_dir(self.folder());
        run(command.args(["--netrc", "--fail-with-body", "--silent", "--show-error"]).args(arguments))
    }

    #[track_caller]
    fn shell(&self, script: &str) -> ProgramOutput {
        let mut command = Command::new("bash");
        run(command
            .env("HOME", self.folder())
            .current_dir(self.folder())
            .args(["-euo", "pipefail", "-c", script]))
    }
}

/// A server that may use upstreams on this machine.
fn near() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

#[test]
fn curl_puts_fetches_verifies_lists_and_deletes() {
    let server = Server::start();
    let files = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    let Some(curl) = Curl::new(&files.token.secret) else { return };
    let bytes = payload::bytes(7, 3_000_000);
    curl.write("tool", &bytes);
    let (folder, url) = (format!("{}/tools/linux/", files.url), format!("{}/tools/linux/tool", files.url));
    curl.run(&["--upload-file", "tool", &folder]).success();
    curl.run(&["--output", "whole", &url]).success();
    assert_eq!(curl.read("whole"), bytes);
    curl.run(&["--range", "1000000-1000009", "--output", "part", &url]).success();
    assert_eq!(curl.read("part"), bytes[1_000_000..1_000_010]);
    for algorithm in ["md5", "sha1", "sha256", "sha512"] {
        curl.run(&["--remote-name", &format!("{url}.{algorithm}")]).success();
        curl.shell(&format!("{algorithm}sum --check tool.{algorithm}")).success();
    }
    let head = curl.run(&["--head", &url]).success();
    assert!(head.text.contains("accept-ranges: bytes") && head.text.contains("etag: "), "{}", head.text);

    curl.run(&["--upload-file", "tool", &folder]).refused("cannot be replaced");
    let page = curl.run(&[&folder]).success();
    assert!(page.text.contains("<a href=\"./tool\">tool</a>"), "{}", page.text);
    let list = curl.run(&["--header", "Accept: application/json", &format!("{}/", files.url)]).success();
    assert!(list.text.contains("{\"name\":\"tools\",\"kind\":\"folder\"}"), "{}", list.text);
    curl.run(&["--location", &format!("{}/tools", files.url)]).success();

    curl.run(&["--request", "DELETE", &url]).success();
    curl.run(&[&url]).refused("Nothing is stored at tools/linux/tool");
    curl.run(&["--upload-file", "tool", &folder]).refused("was deleted here");
}

#[test]
fn a_refused_curl_user_reads_the_reason() {
    let server = Server::start();
    let files = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    let Some(curl) = Curl::new("pkh_wrong") else { return };
    curl.write("tool", b"tool");
    let url = format!("{}/a/tool", files.url);
    curl.run(&["--upload-file", "tool", &url]).refused("401");
    curl.credential(&files.token_for(&server, &["read"]));
    curl.run(&["--upload-file", "tool", &url]).refused("403");
    curl.credential(&files.token.secret);
    curl.run(&["--upload-file", "tool", "--header", &format!("X-Checksum-Sha256: {}", "0".repeat(64)), &url])
        .refused("but the sha256 of the received bytes is");
    curl.run(&["--upload-file", "tool", &url]).success();
    curl.credential("pkh_wrong");
    curl.run(&[&url]).refused("401");
    curl.credential(&files.token_for(&server, &["write"]));
    curl.run(&[&url]).refused("403");
    curl.run(&["--head", &url]).refused("403");
}

#[test]
fn nightly_files_are_replaced_if_the_repository_allows_it() {
    let server = Server::start();
    let files = FormatRepository::hosted(&server, "generic", "nightly", &json!({"overwrite": true}));
    let Some(curl) = Curl::new(&files.token.secret) else { return };
    let url = format!("{}/app/latest", files.url);
    for night in ["one", "two"] {
        curl.write("latest", night.as_bytes());
        curl.run(&["--upload-file", "latest", &url]).success();
        assert_eq!(curl.run(&[&url]).success().text, night);
    }
}

#[test]
fn a_proxy_and_a_group_serve_upstream_files() {
    let (far, near) = (Server::start(), near());
    let released = FormatRepository::hosted(&far, "generic", "released", &json!({}));
    let own = FormatRepository::hosted(&near, "generic", "own", &json!({}));
    let settings = json!({"metadata_ttl_s": 0, "immutable": true});
    let mirror = FormatRepository::proxy_of(&near, "generic", "mirror", &released, &settings);
    let all = FormatRepository::group(&near, "generic", "all", &[&own, &mirror]);
    released.put("far/tool", "from far").expect(201);
    released.put("own/tool", "not this one").expect(201);
    own.put("own/tool", "from here").expect(201);
    let Some(curl) = Curl::new(&all.token.secret) else { return };
    assert_eq!(curl.run(&[&format!("{}/far/tool", all.url)]).success().text, "from far");
    assert_eq!(curl.run(&[&format!("{}/own/tool", all.url)]).success().text, "from here");
    curl.run(&["--remote-name", &format!("{}/far/tool.sha256", all.url)]).success();
    curl.write("tool", b"from far");
    curl.shell("sha256sum --check tool.sha256").success();
    let list = all.get("");
    assert!(list.expect(200).text().contains("./far/"), "the upstream's files are listed");
    all.put("x", "x").expect(405);
    mirror.put("x", "x").expect(405);

    let listed = mirror.api_get(&near, "packages/far/versions").expect(200).json();
    assert!(listed.to_string().contains("\"tool\""), "{listed}");
    drop(far);
    assert_eq!(curl.run(&[&format!("{}/far/tool", all.url)]).success().text, "from far");
    curl.credential(&mirror.token.secret);
    assert_eq!(curl.run(&[&format!("{}/far/tool", mirror.url)]).success().text, "from far");
}

#[test]
fn retention_keeps_the_newest_files_of_a_folder_and_the_api_removes_one() {
    let server = Server::start();
    let files = FormatRepository::hosted(&server, "generic", "files", &json!({}));
    for name in ["1", "2", "3"] {
        files.put(&format!("builds/app/{name}.zip"), name).expect(201);
    }
    files.put("builds/README.md", "# Builds").expect(201);
    let api = Api::sign_in(&server);
    let path = format!("/v1/repositories/{}/packages/builds%2Fapp/versions", files.id);
    let listed = api.call("GET", &path).expect(200).json();
    for name in ["1.zip", "2.zip", "3.zip"] {
        assert!(listed.to_string().contains(&format!("\"{name}\"")), "{listed}");
    }
    api.call("DELETE", &format!("{path}/2.zip")).expect(204);
    files.get("builds/app/2.zip").expect(404);
    files.get("builds/app/3.zip").expect(200);
    let policy = json!({
        "name": "newest", "repositories": [files.id], "match": {"packages": ["builds/*"]},
        "delete": {"published_before_days": 0}, "keep": {"newest": 1}, "max_deletes": 100,
    });
    let id = api.post("/v1/retention-policies", &policy).expect(201).field("id");
    let preview = api.post(&format!("/v1/retention-policies/{id}/preview"), &json!({})).expect(200).json();
    let goes: Vec<&str> =
        preview["items"].as_array().unwrap().iter().map(|one| one["version"].as_str().unwrap()).collect();
    assert_eq!(goes, ["1.zip"], "{preview}");
}
