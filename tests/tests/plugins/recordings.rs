//! Recordings of plugin calls. The API and the command line request them, every server of a
//! database makes them, and the program replays them.

use std::path::Path;
use std::process::{Command, Output};

use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{self, PASSWORD, eventually};
use packhouse_tests::{Api, Request, Server, checkout, cli};
use serde_json::{Value, json};
use tempfile::TempDir;

const RECORDINGS: &str = "/v1/plugins/ledger/recordings";

/// Creates a plugin folder with a guest that has a bug.
fn plugins() -> TempDir {
    let folder = TempDir::new().unwrap();
    let from = checkout().join("target/release/guests/ledger.wasm");
    std::fs::copy(&from, folder.path().join("ledger.wasm")).expect("the guest is built: `just guests`");
    folder
}

/// Writes a copy of the component without the bug.
fn without_bug(plugins: &TempDir, to: &Path) {
    let mut bytes = std::fs::read(plugins.path().join("ledger.wasm")).unwrap();
    let mark = b"ledger variant 0";
    let place = bytes.windows(mark.len()).position(|at| at == mark).unwrap();
    bytes[place + mark.len() - 1] = b'1';
    std::fs::write(to, bytes).unwrap();
}

fn serve(plugins: &TempDir) -> Server {
    Server::with().arg("--plugins").arg(plugins.path().to_str().unwrap()).start()
}

fn replay(data: &Path, plugins: &Path, file: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(server::program());
    command.args(["plugins", "replay"]).arg(file).arg("--data").arg(data).arg("--plugins").arg(plugins);
    let Output { status, stdout, stderr } =
        command.args(more).env("PACKHOUSE_LOG", "error").output().unwrap();
    let output = [stdout, stderr].map(|output| String::from_utf8(output).unwrap()).concat();
    (status.code(), output)
}

/// Waits until the list has at least this many items. Returns the items.
fn listed(api: &Api, query: &str, minimum: usize) -> Vec<Value> {
    eventually("the calls are recorded", || {
        let items = api.call("GET", &format!("{RECORDINGS}{query}")).expect(200).json()["items"].clone();
        let items = items.as_array().unwrap().clone();
        (items.len() >= minimum).then_some(items)
    })
}

#[test]
fn a_failing_call_is_recorded_and_replayed() {
    let (plugins, home) = (plugins(), TempDir::new().unwrap());
    let server = serve(&plugins);
    let repository = FormatRepository::hosted(&server, "ledger", "accounts", &json!({}));
    let api = Api::sign_in(&server);
    let body = json!({"repository": repository.id, "count": 2, "only_failures": true});
    let set = api.post(RECORDINGS, &body).expect(201).json();
    assert_eq!((&set["recorded"], &set["count"], &set["format"]), (&json!(0), &json!(2), &json!("ledger")));
    repository.put("lunch", "twelve").expect(201);
    for _ in 0..3 {
        repository.get("lunch").expect(500);
    }
    let set_id = set["id"].as_str().unwrap();
    eventually("of three failures two are stored", || {
        let found = api.call("GET", &format!("{RECORDINGS}/{set_id}")).expect(200).json();
        let newest = found["recordings"].as_array().unwrap().first()?.as_str()?.to_owned();
        assert!(found["recorded"].as_u64().unwrap() <= 2);
        (found["recorded"] == 2).then_some(newest)
    });
    let items = listed(&api, &format!("?set={set_id}"), 2);
    let item = &items[0];
    assert_eq!(
        (&item["function"], &item["outcome"], &item["set"]),
        (&json!("handle"), &json!("trap"), &json!(set_id))
    );
    let id = item["id"].as_str().unwrap();
    let answer = api.call("GET", &format!("{RECORDINGS}/{id}")).expect(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let text = answer.text();
    assert!(text.contains("lunch holds no amount: invalid digit"), "{text}");
    assert!(!text.contains(&repository.token.secret), "the recording contains no credential");
    let file = home.path().join("recording.json");
    std::fs::write(&file, &text).unwrap();

    let (code, output) = replay(server.data(), plugins.path(), &file, &[]);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("behaved as recorded: it trapped"), "{output}");
    let component = home.path().join("without_bug.wasm");
    without_bug(&plugins, &component);
    let (code, output) =
        replay(server.data(), plugins.path(), &file, &["--component", component.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("lunch: twelve is not an amount"), "{output}");
    // Exit code 2 means that the replay is impossible. A replay itself ends with exit code 0 or 1.
    let (code, output) = replay(server.data(), home.path(), &file, &[]);
    assert_eq!(code, Some(2), "{output}");
    assert!(output.contains("contains the recorded component sha256:"), "{output}");
    // If the folder lacks the component, the program reads it from the database.
    let installed = plugins.path().join("ledger.wasm");
    cli::packhouse(server.data(), &["plugins", "install", installed.to_str().unwrap()], "").success();
    let (code, output) = replay(server.data(), home.path(), &file, &[]);
    assert_eq!(code, Some(0), "{output}");
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(replay(server.data(), plugins.path(), &file, &[]).0, Some(2));

    // After a caller removes the recordings, the server records no further calls.
    api.call("DELETE", &format!("{RECORDINGS}/{id}")).expect(204);
    api.call("GET", &format!("{RECORDINGS}/{id}")).expect(404);
    api.call("DELETE", &format!("{RECORDINGS}/{set_id}")).expect(204);
    assert!(listed(&api, "", 0).is_empty());
    repository.get("lunch").expect(500);
    assert!(listed(&api, "", 0).is_empty());
    let events = api.call("GET", "/v1/audit-events").expect(200).text();
    for action in ["record_plugin_calls", "read_plugin_recording", "delete_plugin_recording"] {
        assert!(events.contains(action), "{action} is not in {events}");
    }
}

#[test]
fn a_command_makes_a_running_server_record() {
    let (plugins, home) = (plugins(), TempDir::new().unwrap());
    let server = serve(&plugins);
    let repository = FormatRepository::hosted(&server, "ledger", "accounts", &json!({}));
    let other = FormatRepository::hosted(&server, "ledger", "others", &json!({}));
    let words = ["plugins", "record", "--repository", "accounts", "--count", "2"];
    let set = cli::json(server.data(), &words);
    assert_eq!((&set["format"], &set["count"]), (&json!("ledger"), &json!(2)));
    let of = ["plugins", "recordings", "--repository", "accounts"];
    let items = eventually("the server records", || {
        other.put("lunch", "1").expect(201);
        repository.put("lunch", "12").expect(201);
        let items = cli::json(server.data(), &of);
        (items.as_array().unwrap().len() == 2).then_some(items)
    });
    assert_eq!(items[0]["outcome"], "201");
    let id = items[0]["id"].as_str().unwrap();
    let output = cli::packhouse(server.data(), &[&of[..], &[id]].concat(), "").success();
    let file = home.path().join("recording.json");
    std::fs::write(&file, &output.text).unwrap();
    let (code, output) = replay(server.data(), plugins.path(), &file, &[]);
    assert_eq!(code, Some(0), "{output}");
    let words = ["plugins", "record", "--repository", "nothing"];
    cli::packhouse(server.data(), &words, "").refused("there is no repository");
    let words = ["plugins", "record", "--repository", "accounts", "--count", "51"];
    cli::packhouse(server.data(), &words, "").refused("1 to 50");
}

#[test]
fn only_operators_of_the_server_may_record() {
    let plugins = plugins();
    let server = serve(&plugins);
    let repository = FormatRepository::hosted(&server, "ledger", "accounts", &json!({}));
    let owner = Api::sign_in(&server);
    let rights = json!({"organization": ["manage-members", "manage-repositories"]});
    let member = json!({"email": "some@example.com", "password": PASSWORD, "permissions": rights});
    owner.post("/v1/members", &member).expect(201);
    let some = Api::sign_in_as(&server, "some@example.com", PASSWORD);
    let body = json!({"repository": repository.id, "count": 1, "only_failures": false});
    let set = owner.post(RECORDINGS, &body).expect(201).field("id");
    let one = format!("{RECORDINGS}/{set}");
    assert_eq!(some.post(RECORDINGS, &body).expect(403).field("error"), "insufficient_permissions");
    for (method, path) in [("GET", RECORDINGS), ("GET", &*one), ("DELETE", &*one)] {
        some.call(method, path).expect(403);
        packhouse_tests::Client::new(server.api()).send(Request::new(method, path)).expect(401);
    }
    for wrong in [
        json!({"repository": repository.id, "count": 0, "only_failures": false}),
        json!({"repository": repository.id, "count": 51, "only_failures": false}),
        json!({"repository": repository.id, "only_failures": false}),
        json!({"repository": repository.id, "count": 1, "only_failures": false, "more": 1}),
    ] {
        assert_eq!(owner.post(RECORDINGS, &wrong).expect(400).field("error"), "invalid_request", "{wrong}");
    }
    for (format, id) in [("ledger", "1"), ("ledger", "none"), ("maven", &*repository.id)] {
        let body = json!({"repository": id, "count": 1, "only_failures": false});
        let refused = owner.post(&format!("/v1/plugins/{format}/recordings"), &body).expect(404);
        assert_eq!(refused.field("error"), "not_found");
    }
    owner.call("GET", &format!("/v1/plugins/maven/recordings/{set}")).expect(404);
    owner.call("GET", &format!("{RECORDINGS}/none")).expect(404);
    owner.call("GET", &format!("{RECORDINGS}?set=none")).expect(400);
    for _ in 1..100 {
        owner.post(RECORDINGS, &body).expect(201);
    }
    assert_eq!(owner.post(RECORDINGS, &body).expect(409).field("error"), "too_many_recordings");
}
