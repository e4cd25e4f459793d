//! Calls of a policy that fail or refuse are recorded where somebody wants it, read by the API, a command and a page, and replayed by the
//! program without a server.

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

/// The items of the list, once there are so many.
fn listed(api: &Api, id: &str, wanted: usize) -> Vec<Value> {
    eventually("the calls are recorded", || {
        let items = api.call("GET", &recordings(id)).expect(200).json()["items"].clone();
        let items = items.as_array().unwrap().clone();
        (items.len() >= wanted).then_some(items)
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
    let said = [stdout, stderr].map(|said| String::from_utf8(said).unwrap()).concat();
    (status.code(), said)
}

#[test]
fn what_a_policy_refuses_is_recorded_and_replayed() {
    let (server, home) = (Server::start(), TempDir::new().unwrap());
    let api = Api::sign_in(&server);
    let jars = MavenRepository::create(&server, "jars");
    let id = enforced(&api, "names", json!({"publish": ["acme:*"]}), json!("*"));
    denied(&put(&jars, "0"), "may not be published here");
    assert!(listed(&api, &id, 0).is_empty(), "nobody wants a recording");
    let made = api.post(&recordings(&id), &json!({"count": 2})).expect(201).json();
    assert_eq!((&made["count"], &made["created_by"]), (&json!(2), &json!(server::OWNER)));
    // A preview refuses what nobody asked for.
    preview(&api, &id);
    let newest = |items: &[Value]| {
        let recording = items.first()?["id"].as_str().unwrap();
        api.call("GET", &format!("{}/{recording}", recordings(&id))).expect(200).json()["versions"][0]["version"]
            .as_str()
            .map(str::to_owned)
    };
    for version in ["1", "2", "3"] {
        denied(&put(&jars, version), "may not be published here");
        eventually("it is recorded", || {
            (newest(&listed(&api, &id, 1)).as_deref() == Some(version)).then_some(())
        });
    }
    let items = listed(&api, &id, 2);
    assert_eq!(items.len(), 2, "the last two are kept: {items:?}");
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
    assert!(!text.contains(&jars.token.secret), "no credential is in it");

    let file = home.path().join("recording.json");
    std::fs::write(&file, &text).unwrap();
    let (code, said) = replay(server.data(), &file, &[]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("judges as it was recorded: deny"), "{said}");
    // Another settings text is as another component: it says something else.
    let other = text.replace("acme:*", "org.example:*");
    std::fs::write(&file, other).unwrap();
    let (code, said) = replay(server.data(), &file, &[]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("org.example:a 3: recorded Deny") && said.contains("now Allow"), "{said}");
    // Where it cannot be told, that is neither.
    let none = home.path().to_str().unwrap();
    let (code, said) = replay(server.data(), &file, &["--plugins", none]);
    assert_eq!(code, Some(2), "{said}");
    std::fs::write(&file, "{}").unwrap();
    assert_eq!(replay(server.data(), &file, &[]).0, Some(2));

    // It can be removed, and then nothing is recorded any more.
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
fn what_fails_is_recorded_and_a_command_reads_it() {
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
        denied(&put(&jars, "1"), "could not be judged");
        let of = ["policies", "recordings", "--policy", "ours"];
        let items = eventually("the server records", || {
            let items = cli::json(server.data(), &of);
            (!items.as_array().unwrap().is_empty()).then_some(items)
        });
        assert_eq!(items[0]["outcome"], outcome, "{items}");
        let one = items[0]["id"].as_str().unwrap();
        let said = cli::packhouse(server.data(), &[&of[..], &[one]].concat(), "").well();
        let file = home.path().join("recording.json");
        std::fs::write(&file, &said.text).unwrap();
        // The database has the component.
        let (code, said) = replay(server.data(), &file, &[]);
        assert_eq!(code, Some(0), "{does}: {said}");
        let names = checkout().join("target/release/plugins/policies/names.wasm");
        let (code, said) = replay(server.data(), &file, &["--component", names.to_str().unwrap()]);
        assert_eq!(code, Some(1), "{does}: {said}");
        assert!(said.contains("settings cannot be read") || said.contains("now: deny"), "{does}: {said}");
        remove(&api, &id);
    }
    let words = ["policies", "record", "--policy", "nothing"];
    cli::packhouse(server.data(), &words, "").refused("there is no policy");
}

#[test]
fn only_who_may_change_a_policy_may_record_it() {
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
    let path = format!("/organization/policies/{id}");
    let deed = |person: &mut Person, name: &str| {
        let csrf = person.csrf(&path);
        person.post(&path, &[("csrf", csrf.as_str()), ("do", name)]).expect(303);
        person.get(&path).expect(200).text()
    };
    let page = deed(&mut person, "record");
    assert!(page.contains("The last 10 calls"), "{page}");
    denied(&put(&jars, "1"), "may not be published here");
    let recorded = listed(&api, &id, 1)[0]["id"].as_str().unwrap().to_owned();
    let page = person.get(&path).expect(200).text();
    assert!(page.contains(&recorded) && page.contains(">deny<"), "{page}");
    let page = deed(&mut person, "forget");
    assert!(!page.contains(&recorded) && page.contains("No call of this policy is recorded"), "{page}");
}
