//! Runs schemathesis with the OpenAPI document against a server: as the owner, as a read-only
//! member, and without a credential. No request may cause a 5xx response, an undescribed status or
//! an undescribed body.

use std::path::PathBuf;
use std::process::Command;

use packhouse_tests::clients::run;
use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::{Api, MavenRepository, Server, checkout, long, skip};
use serde_json::{Value, json};

const READER: &str = "reader@example.com";
/// A check that the test leaves out. The server may refuse a valid request because of stored data:
/// 400 for a missing repository, 409 for a name in use.
const LEFT_OUT: &str = "positive_data_acceptance";

fn program() -> Option<PathBuf> {
    let program = checkout().join(".tools/venv/bin/schemathesis");
    if program.is_file() {
        return Some(program);
    }
    skip("schemathesis", "it is not in .tools/venv: ./bootstrap test installs it");
    None
}

/// Calls every route many times, with valid and with invalid requests.
fn call(server: &Server, program: &PathBuf, who: Option<&Api>, email: &str, known: &Value) {
    let examples = if long() { "200" } else { "12" };
    let url = format!("http://{}", server.api());
    let mut command = Command::new(program);
    let home = tempfile::tempdir().unwrap();
    command.current_dir(home.path()).env("HOME", home.path()).env("NO_COLOR", "1");
    command.env("SCHEMATHESIS_HOOKS", checkout().join("tests/schemathesis/hooks.py"));
    command.env("PACKHOUSE_API", &url).env("PACKHOUSE_KNOWN", known.to_string());
    command.args(["run", &format!("{url}/v1/openapi.json"), "--url", &url, "--checks", "all"]);
    command.args(["--exclude-checks", LEFT_OUT, "--phases", "examples,coverage,fuzzing"]);
    command.args(["--max-examples", examples, "--seed", "1", "--generation-database", "none"]);
    command.args(["--generation-with-security-parameters", "false"]);
    command.args(["--continue-on-failure", "--suppress-health-check", "all"]);
    if let Some(api) = who {
        command.env("PACKHOUSE_EMAIL", email).env("PACKHOUSE_PASSWORD", PASSWORD);
        command.env("PACKHOUSE_SESSION", &api.session);
    }
    let output = run(&mut command);
    assert!(output.success, "as {email}:\n{}\nthe server's log:\n{}", output.text, errors(server));
}

/// Starts a server that trusts the client's statement of its own address.
fn server() -> Server {
    Server::with().env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8").start()
}

fn errors(server: &Server) -> String {
    let log = server.log();
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains("ERROR") || line.contains("panicked")).collect();
    lines.join("\n")
}

fn known(server: &Server) -> Value {
    let api = Api::sign_in(server);
    let repository = MavenRepository::create(server, "libs");
    repository.put("org/example/a/1.0/a-1.0.jar", "hello").expect(201);
    let reads = json!({"organization": [], "repositories": [{"repository": "*", "actions": ["read"]}]});
    let new = json!({"email": READER, "password": PASSWORD, "permissions": reads});
    let reader = api.post("/v1/members", &new).expect(201).field("id");
    json!({"/v1/repositories/": [repository.id], "/v1/tokens/": [repository.token.id], "/v1/members/": [reader]})
}

#[test]
fn as_the_owner() {
    let Some(program) = program() else { return };
    let server = server();
    let mut known = known(&server);
    // The owner's requests do not get the reader's id, because they could delete the reader or
    // change the reader's rights.
    known.as_object_mut().unwrap().remove("/v1/members/");
    call(&server, &program, Some(&Api::sign_in(&server)), OWNER, &known);
}

#[test]
fn as_a_member_who_may_only_read() {
    if !long() {
        return;
    }
    let Some(program) = program() else { return };
    let server = server();
    let known = known(&server);
    call(&server, &program, Some(&Api::sign_in_as(&server, READER, PASSWORD)), READER, &known);
}

#[test]
fn as_nobody() {
    if !long() {
        return;
    }
    let Some(program) = program() else { return };
    let server = server();
    let known = known(&server);
    call(&server, &program, None, "nobody", &known);
}
