//! Recordings of a policy's failing and refusing calls, which the server makes on request. The API,
//! a command and a page return the recordings. The program replays them without a server.

use std::path::Path;
use std::process::{Command, Output};

use packhouse_tests::person::Person;
use packhouse_tests::server::{self, PASSWORD, eventually};
use packhouse_tests::{Api, MavenRepository, Request, Server, checkout, cli};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::hostile::outlaw;
use super::{POLICIES, denied, enforced, mode, paused, preview, remove};

fn recordings(id: &str) -> String {
    format!("{POLICIES}/{id}/recordings")
}

/// Waits until the list has at least this many items. Returns the items.
fn listed(api: &Api, id: &str, minimum: usize) -> Vec<Value> {
    eventually("the calls are recorded", || {
        let items = api.call("GET", &recordings(id)).expect(200).json()["items"].clone();
        let items = items.as_array().unwrap().clone();
        (items.len() >= minimum).then_some(items)
    })
}

fn put(maven: &MavenRepository, version: &str) -> packhouse_tests::Response {
    maven.put(&format!("org/example/a/{version}/a-{version}.jar"), version)
}

fn replay(data: &Path, file: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(server::program());
    command.args(["policies", "replay"]).arg(file).arg("--data").arg(data);
    let Output { status, stdout, stderr } =
        command.args(more).env("PACKHOUSE_LOG", "error").output().unwrap();
    let output = [stdout, stderr].map(|output| String::from_utf8(output).unwrap()).concat();
    (status.code(), output)
}

#[test]
fn a_refusal_of_a_policy_is_recorded_and_replayed() {
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    let api = Api::sign_in(&server);
    let jars = MavenRepository::create(&server, "jars");
    let id = enforced(&api, "names", json!({"publish": ["acme:*"]}), json!("*"));
    denied(&put(&jars, "0"), "may not be published here");
    assert!(listed(&api, &id, 0).is_empty(), "no recording was requested");
    let made = api.post(&recordings(&id), &json!({"count": 2})).expect(201).json();
    assert_eq!((&made["count"], &made["created_by"]), (&json!(2), &json!(server::OWNER)));
    // A preview records no refusals.
    preview(&api, &id);
    let newest = |items: &[Value]| {
        let recording = items.first()?["id"].as_str().unwrap();
        api.call("GET", &format!("{}/{recording}", recordings(&id))).expect(200).json()["versions"][0]["version"]
            .as_str()
            .map(str::to_owned)
    };
    for version in ["1", "2", "3"] {
        denied(&put(&jars, version), "may not be published here");
        eventually("the call is recorded", || {
            (newest(&listed(&api, &id, 1)).as_deref() == Some(version)).then_some(())
        });
    }
    let items = listed(&api, &id, 2);
    assert_eq!(items.len(), 2, "the last two are stored: {items:?}");
    assert_eq!(items[0]["outcome"], "deny");
    let answer = api.call("GET", &format!("{}/{}", recordings(&id), items[0]["id"].as_str().unwrap()));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let (text, recorded) = (answer.text(), answer.json());
    assert_eq!(recorded["component"], items[0]["component"]);
    assert_eq!(recorded["settings"], json!({"publish": ["acme:*"]}));
    let context = &recorded["context"];
    assert_eq!((&context["repository"], &context["purpose"]), (&json!("jars"), &json!("publish")));
    assert!(
        recorded["outcome"]["rulings"][0]["deny"].as_str().unwrap().contains("may not be published here"),
        "{text}"
    );
    assert!(!text.contains(&jars.token.secret), "the recording contains no credential");

    let file = home.path().join("recording.json");
    std::fs::write(&file, &text).unwrap();
    let (code, output) = replay(server.data(), &file, &[]);
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("judges as recorded: deny"), "{output}");
    // Changed settings lead to another result, as another component would.
    let other = text.replace("acme:*", "org.example:*");
    std::fs::write(&file, other).unwrap();
    let (code, output) = replay(server.data(), &file, &[]);
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("org.example:a 3: recorded Deny") && output.contains("now Allow"), "{output}");
    // Exit code 2 means that the replay is impossible. A replay itself ends with exit code 0 or 1.
    let none = home.path().to_str().unwrap();
    let (code, output) = replay(server.data(), &file, &["--plugins", none]);
    assert_eq!(code, Some(2), "{output}");
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(replay(server.data(), &file, &[]).0, Some(2));

    // After a caller removes the recording, the server records no further calls.
    api.call("DELETE", &recordings(&id)).expect(204);
    api.call("DELETE", &recordings(&id)).expect(404);
    denied(&put(&jars, "4"), "may not be published here");
    assert!(listed(&api, &id, 0).is_empty());
    let events = api.call("GET", "/v1/audit-events?limit=200").expect(200).text();
    for action in ["record_policy_calls", "read_policy_recording", "delete_policy_recordings"] {
        assert!(events.contains(action), "{action} is not in {events}");
    }
    remove(&api, &id);
    api.call("GET", &recordings(&id)).expect(404);
}

#[test]
fn a_failing_call_is_recorded_and_a_command_reads_it() {
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    let api = Api::sign_in(&server);
    let component = outlaw(&api);
    let jars = MavenRepository::create(&server, "jars");
    for (does, outcome) in [("trap", "trap"), ("slow", "deadline"), ("huge", "hostcall_bytes")] {
        let id = paused(&api, &component, json!({"does": does}), json!([jars.id]));
        let words = ["policies", "record", "--policy", id.as_str(), "--count", "3"];
        let made = cli::json(server.data(), &words);
        assert_eq!((&made["policy"], &made["count"]), (&json!(id), &json!(3)));
        preview(&api, &id);
        mode(&api, &id, "enforced");
        denied(&put(&jars, "1"), "failed to judge");
        let of = ["policies", "recordings", "--policy", "ours"];
        let items = eventually("the server records", || {
            let items = cli::json(server.data(), &of);
            (!items.as_array().unwrap().is_empty()).then_some(items)
        });
        assert_eq!(items[0]["outcome"], outcome, "{items}");
        let one = items[0]["id"].as_str().unwrap();
        let output = cli::packhouse(server.data(), &[&of[..], &[one]].concat(), "").success();
        let file = home.path().join("recording.json");
        std::fs::write(&file, &output.text).unwrap();
        // The folder has no such component, so the program reads the component from the database.
        let (code, output) = replay(server.data(), &file, &[]);
        assert_eq!(code, Some(0), "{does}: {output}");
        let names = checkout().join("target/release/plugins/policies/names.wasm");
        let (code, output) = replay(server.data(), &file, &["--component", names.to_str().unwrap()]);
        assert_eq!(code, Some(1), "{does}: {output}");
        assert!(
            output.contains("settings cannot be read") || output.contains("now: deny"),
            "{does}: {output}"
        );
        remove(&api, &id);
    }
    let words = ["policies", "record", "--policy", "nothing"];
    cli::packhouse(server.data(), &words, "").refused("there is no policy");
}

#[test]
fn only_a_member_who_may_change_a_policy_may_record_it() {
    let server = Server::start();
    let owner = Api::sign_in(&server);
    let id = paused(&owner, "names", json!({}), json!("*"));
    let path = recordings(&id);
    for count in [0, 51] {
        let refused = owner.post(&path, &json!({"count": count})).expect(400);
        assert!(refused.text().contains("1 to 50"), "{}", refused.text());
    }
    owner.post(&path, &json!({"count": 1})).expect(201);
    let member = json!({"email": "some@example.com", "password": PASSWORD, "permissions": {"organization": ["manage-members"]}});
    owner.post("/v1/members", &member).expect(201);
    let some = Api::sign_in_as(&server, "some@example.com", PASSWORD);
    some.post(&path, &json!({"count": 1})).expect(403);
    for (method, path) in [("GET", path.clone()), ("GET", format!("{path}/1")), ("DELETE", path.clone())] {
        some.call(method, &path).expect(403);
        packhouse_tests::Client::new(server.api()).send(Request::new(method, &path)).expect(401);
    }
    owner.call("GET", &format!("{path}/1")).expect(404);
    owner.post(&recordings("1"), &json!({"count": 1})).expect(404);
}

#[test]
fn the_page_of_a_policy_lists_its_recordings() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let jars = MavenRepository::create(&server, "jars");
    let id = enforced(&api, "names", json!({"publish": ["acme:*"]}), json!("*"));
    let mut person = Person::owner(&server);
    let path = format!("/policies/{id}");
    let submit = |person: &mut Person, name: &str| {
        let csrf = person.csrf(&path);
        person.post(&path, &[("csrf", csrf.as_str()), ("do", name)]).expect(303);
        person.get(&path).expect(200).text()
    };
    let page = submit(&mut person, "record");
    assert!(page.contains("The last 10 failing or refusing calls"), "{page}");
    denied(&put(&jars, "1"), "may not be published here");
    let recorded = listed(&api, &id, 1)[0]["id"].as_str().unwrap().to_owned();
    let page = person.get(&path).expect(200).text();
    assert!(page.contains(&recorded) && page.contains(">deny<"), "{page}");
    let page = submit(&mut person, "forget");
    assert!(
        !page.contains(&recorded) && page.contains("Calls of this policy are not being recorded"),
        "{page}"
    );
}
