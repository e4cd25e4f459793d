//! A component is tried beside what a format runs, from outside: a shadow finds what it would answer otherwise and harms nobody, a canary
//! answers a share of the clients and is taken back when it fails, on every server of a database.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test code: to fail is how it speaks"
)]

mod canary;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use packhouse_tests::database::Postgres;
use packhouse_tests::digests::sha256;
use packhouse_tests::person::Person;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{self, eventually};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Request, Response, Server, ServerBuilder, checkout, cli, long};
use serde_json::{Value, json};
use tempfile::TempDir;

const TRIAL: &str = "/v1/plugins/ledger/candidate";

/// The guest, of which one digit says what it does; see `tests/guests/ledger`.
fn component(variant: u8) -> Vec<u8> {
    let file = checkout().join("target/release/guests/ledger.wasm");
    let mut bytes = std::fs::read(file).expect("the guest is built: `just guests`");
    let mark = b"ledger variant 0";
    let place = bytes.windows(mark.len()).position(|at| at == mark).unwrap();
    bytes[place + mark.len() - 1] = variant;
    bytes
}

/// A folder with the component that runs.
fn plugins() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("ledger.wasm"), component(b'0')).unwrap();
    folder
}

fn with(plugins: &TempDir) -> ServerBuilder {
    let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*");
    server.arg("--plugins").arg(plugins.path().to_str().unwrap())
}

fn install(api: &Api, variant: u8) -> String {
    let request = Request::new("POST", "/v1/plugins").header("Content-Type", "application/wasm");
    api.request(request.body(component(variant))).expect(201).field("digest")
}

fn try_out(api: &Api, body: &Value) -> Response {
    api.send("PUT", TRIAL, body)
}

fn shadow(api: &Api, digest: &str, repository: &FormatRepository) {
    let body = json!({"digest": digest, "mode": "shadow", "repositories": [repository.id]});
    let begun = try_out(api, &body).expect(200).json();
    assert_eq!((&begun["state"], &begun["calls"]), (&json!("running"), &json!(0)), "{begun}");
}

fn state(api: &Api) -> Value {
    api.call("GET", TRIAL).expect(200).json()
}

/// The trial, once so much was counted.
#[track_caller]
fn counted(api: &Api, field: &str, least: u64) -> Value {
    eventually(field, || {
        let state = state(api);
        let of = &state[field];
        (of.as_u64().or_else(|| of["count"].as_u64()).unwrap() >= least).then_some(state)
    })
}

fn replay(server: &Server, plugins: &Path, file: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(server::program());
    command
        .args(["plugins", "replay"])
        .arg(file)
        .arg("--data")
        .arg(server.data())
        .arg("--plugins")
        .arg(plugins);
    let output = command.args(more).env("PACKHOUSE_LOG", "error").output().unwrap();
    let said = [output.stdout, output.stderr].map(|said| String::from_utf8(said).unwrap()).concat();
    (output.status.code(), said)
}

/// What this field of the components is where another is so.
fn of_components(api: &Api, known: (&str, &str), wanted: &str) -> String {
    let items = api.call("GET", "/v1/plugins").expect(200).json()["items"].as_array().unwrap().clone();
    let item = items.iter().find(|item| item["format"] == "ledger" && item[known.0] == known.1).unwrap();
    item[wanted].as_str().unwrap().to_owned()
}

/// What the metrics say of a trial's requests of this outcome; none where they do not say it.
fn measured(server: &Server, mode: &str, outcome: &str) -> Option<u64> {
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    let is_it = |line: &&str| {
        let labels = [("plugin", "ledger"), ("mode", mode), ("outcome", outcome)];
        line.starts_with("packhouse_plugin_trial_requests_total{")
            && labels.iter().all(|(name, value)| line.contains(&format!("{name}=\"{value}\"")))
    };
    text.lines().find(is_it)?.rsplit_once(' ')?.1.parse().ok()
}

/// What a component is to its format.
fn listed(api: &Api, digest: &str) -> String {
    of_components(api, ("digest", digest), "state")
}

/// The component that the format runs.
fn active(api: &Api) -> String {
    of_components(api, ("state", "active"), "digest")
}

#[test]
fn a_shadow_finds_a_difference_names_it_and_harms_nobody() {
    let (plugins, home) = (plugins(), TempDir::new().unwrap());
    let server = with(&plugins).start();
    let api = Api::sign_in(&server);
    api.call("GET", TRIAL).expect(404);
    let repository = FormatRepository::hosted(&server, "ledger", "accounts", &json!({}));
    let other = FormatRepository::hosted(&server, "ledger", "others", &json!({}));
    for at in [&repository, &other] {
        at.put("lunch", "12").expect(201);
        at.put("dinner", "20").expect(201);
        // Kept from now on.
        assert_eq!(at.get("lunch").expect(200).text(), "lunch: 12");
    }
    let other_word = install(&api, b'6');
    assert_eq!(measured(&server, "shadow", "different"), None, "nothing is tried yet");
    shadow(&api, &other_word, &repository);
    assert_eq!(listed(&api, &other_word), "candidate");
    assert_eq!(measured(&server, "shadow", "different"), Some(0), "known before the first");
    // A kept answer is compared once.
    for _ in 0..3 {
        assert_eq!(repository.get("lunch").expect(200).text(), "lunch: 12");
        other.get("dinner").expect(200);
    }
    counted(&api, "equal", 1);
    for _ in 0..3 {
        assert_eq!(repository.get("dinner").expect(200).text(), "dinner: 20", "no client sees it");
    }
    assert_eq!(repository.get("nobody").expect(404).field("error"), "no_account");
    let found = counted(&api, "equal", 2);
    assert_eq!(
        (&found["calls"], &found["equal"], &found["failed"]),
        (&json!(3), &json!(2), &json!(0)),
        "{found}"
    );
    assert_eq!(found["different"]["count"], 1, "the other repository is not compared: {found}");
    eventually("the metrics say the same", || {
        let counted = ["equal", "different", "failed"].map(|outcome| measured(&server, "shadow", outcome));
        (counted == [Some(2), Some(1), Some(0)]).then_some(())
    });
    assert!(found["times"]["candidate"]["mean_ms"].as_f64().unwrap() > 0.0, "{found}");
    let recordings = found["different"]["recordings"].as_array().unwrap().clone();
    let [id] = recordings.as_slice() else { panic!("{found}") };

    // The recording is of what was answered; the candidate does something else with it.
    let text = api
        .call("GET", &format!("/v1/plugins/ledger/recordings/{}", id.as_str().unwrap()))
        .expect(200)
        .text();
    assert!(text.contains("dinner") && !text.contains(&repository.token.secret), "{text}");
    let (file, candidate) = (home.path().join("recording.json"), home.path().join("candidate.wasm"));
    std::fs::write(&file, &text).unwrap();
    std::fs::write(&candidate, component(b'6')).unwrap();
    let (code, said) = replay(&server, plugins.path(), &file, &[]);
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = replay(&server, plugins.path(), &file, &["--component", candidate.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("about 20"), "{said}");

    // One that traps: its calls are failures, and no client's.
    shadow(&api, &install(&api, b'3'), &repository);
    for number in 0..3 {
        assert_eq!(repository.get(&format!("dinner?trap={number}")).expect(200).text(), "dinner: 20");
    }
    let found = counted(&api, "failed", 3);
    assert_eq!(found["different"], json!({"count": 0, "recordings": []}), "those of before are gone");
    let failed = found["failed_recordings"].as_array().unwrap();
    assert_eq!(failed.len(), 3, "{found}");
    std::fs::write(&candidate, component(b'3')).unwrap();
    let id = failed[0].as_str().unwrap();
    let text = api.call("GET", &format!("/v1/plugins/ledger/recordings/{id}")).expect(200).text();
    std::fs::write(&file, &text).unwrap();
    let (code, said) = replay(&server, plugins.path(), &file, &["--component", candidate.to_str().unwrap()]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("it was to come to this"), "{said}");
    // Nothing of it is told as a failure of the format.
    assert!(!server.log().contains("it was to come to this"), "{}", server.log());

    // The same by the command line, and its end.
    let words = ["plugins", "trial", "ledger"];
    let shown = cli::json(server.data(), &words);
    assert_eq!((&shown["mode"], &shown["failed"]), (&json!("shadow"), &json!(3)), "{shown}");
    let folder = ["--plugins", plugins.path().to_str().unwrap()];
    let begin = ["plugins", "shadow", "ledger", &other_word, "--repository", "accounts"];
    cli::json(server.data(), &[&begin[..], &folder].concat());
    eventually("the server follows", || {
        repository.get("dinner?cli").expect(200);
        (state(&api)["different"]["count"] != 0).then_some(())
    });
    cli::json(server.data(), &[&words[..], &["--end"]].concat());
    api.call("GET", TRIAL).expect(404);
    api.call("DELETE", TRIAL).expect(404);
    let events = api.call("GET", "/v1/audit-events?limit=100").expect(200).text();
    assert!(events.contains("try_plugin") && events.contains("end_plugin_trial"), "{events}");
}

/// It has the time of a call for each request; what comes meanwhile is dropped, and clients do not wait.
#[test]
fn a_shadow_that_never_ends_holds_up_no_client() {
    let plugins = plugins();
    let server = with(&plugins).env("PACKHOUSE_PLUGINS_LEDGER_CONCURRENCY", "1").start();
    let api = Api::sign_in(&server);
    let repository = FormatRepository::hosted(&server, "ledger", "accounts", &json!({}));
    repository.put("lunch", "12").expect(201);
    shadow(&api, &install(&api, b'4'), &repository);
    let since = Instant::now();
    for number in 0..100 {
        assert_eq!(repository.get(&format!("lunch?{number}")).expect(200).text(), "lunch: 12");
    }
    // Its first call has ten seconds, and holds the only place that there is for such.
    assert!(since.elapsed() < Duration::from_secs(9), "{:?}", since.elapsed());
    let found = counted(&api, "dropped", 30);
    assert_eq!((&found["equal"], &found["different"]["count"]), (&json!(0), &json!(0)), "{found}");
    // Its end does not wait for it either.
    api.call("DELETE", TRIAL).expect(204);
}

fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort();
    let at = |part: usize| times[(times.len() - 1) * part / 100];
    format!("p50 {:?}, p90 {:?}, p99 {:?}", at(50), at(90), at(99))
}

#[test]
fn the_same_component_differs_nowhere() {
    let plugins = plugins();
    let server = with(&plugins).start();
    let api = Api::sign_in(&server);
    let repository = FormatRepository::hosted(&server, "ledger", "accounts", &json!({}));
    for account in 0..10 {
        repository.put(&account.to_string(), "12").expect(201);
    }
    let reads: u64 = if long() { 10_000 } else { 300 };
    let mut asked = 0_u64;
    let mut ask = || {
        asked += 1;
        let since = Instant::now();
        // Each is asked of the plugin, and half of them are refused.
        let (account, status) = if asked.is_multiple_of(2) { (100, 404) } else { (asked % 10, 200) };
        repository.get(&format!("{account}?{asked}")).expect(status);
        since.elapsed()
    };
    let without: Vec<Duration> = (0..reads).map(|_| ask()).collect();
    let own = active(&api);
    shadow(&api, &own, &repository);
    assert_eq!(listed(&api, &own), "active");
    let (mut beside, mut sent) = (Vec::new(), 0);
    let found = loop {
        for _ in 0..100 {
            beside.push(ask());
            sent += 1;
        }
        let found = state(&api);
        if found["equal"].as_u64().unwrap() >= reads {
            break found;
        }
        assert!(sent < reads * 100, "{found}");
    };
    println!("{reads} reads without a shadow: {}", percentiles(without));
    println!("{sent} reads beside a shadow: {}", percentiles(beside));
    println!("{found}");
    let of = |field: &str| found[field].as_u64().unwrap();
    assert_eq!(found["different"]["count"], 0, "{found}");
    assert_eq!((of("failed"), of("unanswered"), of("changed")), (0, 0, 0), "{found}");
    eventually("all are counted", || {
        let found = state(&api);
        (found["equal"].as_u64().unwrap() + found["dropped"].as_u64().unwrap() == sent).then_some(())
    });
}

#[test]
fn a_shadow_asks_no_upstream_and_changes_nothing() {
    let (plugins, upstream) = (plugins(), Upstream::start());
    upstream.on("/rates", Answer::ok("seven"));
    let server = with(&plugins).start();
    let api = Api::sign_in(&server);
    let proxy = FormatRepository::proxy(&server, "ledger", "far", &upstream.url(), &json!({}));
    let mut asked = 0;
    let mut read = || {
        asked += 1;
        assert_eq!(proxy.get(&format!("-/far/rates?{asked}")).expect(200).text(), "seven");
    };
    read();
    for (variant, field) in [(b'1', "equal"), (b'5', "unanswered"), (b'7', "equal")] {
        let digest = install(&api, variant);
        shadow(&api, &digest, &proxy);
        read();
        let found = counted(&api, field, 1);
        assert_eq!(found["calls"], 1, "{found}");
    }
    assert_eq!(
        (upstream.count("/rates"), upstream.count("/more")),
        (1, 0),
        "what it is told, the call was told"
    );
    proxy.get("written").expect(404);
}

#[test]
fn two_servers_follow_and_add_up() {
    let (plugins, data) = (plugins(), TempDir::new().unwrap());
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let start = || with(&plugins).data(data.path()).arg("--database-url").arg(&postgres.url()).start();
    let servers = [start(), start()];
    let api = Api::sign_in(&servers[0]);
    let repository = FormatRepository::hosted(&servers[0], "ledger", "accounts", &json!({}));
    repository.put("lunch", "12").expect(201);
    repository.put("dinner", "20").expect(201);
    let at = servers.each_ref().map(|server| repository.on(server));
    shadow(&api, &install(&api, b'6'), &repository);
    let mut sent = 0;
    for there in &at {
        eventually("each server follows", || {
            sent += 1;
            let before = state(&api)["different"]["count"].as_u64().unwrap();
            there.get(&format!("dinner?{sent}")).expect(200);
            (state(&api)["different"]["count"].as_u64().unwrap() > before).then_some(())
        });
    }
    let before = counted(&api, "calls", 2)["calls"].as_u64().unwrap();
    // What there is no time for is dropped, so it is asked until enough was compared.
    let (other, mut number) = (Api::sign_in(&servers[1]), 0);
    let found = eventually("both are added up", || {
        for there in &at {
            number += 1;
            there.get(&format!("lunch?{number}")).expect(200);
        }
        let found = state(&other);
        (found["equal"].as_u64()? >= 20).then_some(found)
    });
    assert!(found["calls"].as_u64().unwrap() >= before + 20, "{found}");

    let trap = install(&api, b'3');
    let body = json!({"digest": trap, "mode": "canary", "repositories": "*", "max_failures": 5});
    try_out(&api, &body).expect(200);
    let mut failures = 0_u64;
    for (number, there) in at.iter().enumerate() {
        eventually("each server follows", || {
            failures += u64::from(there.get(&format!("lunch?trap{number}{failures}")).status == 500);
            (failures > number as u64).then_some(())
        });
    }
    // Three of each server's are more than five.
    for there in at.iter().cycle().take(4) {
        failures += u64::from(there.get("lunch?trap").status == 500);
    }
    let since = Instant::now();
    for there in &at {
        eventually("each server goes back", || {
            let answer = there.get("lunch?back");
            failures += u64::from(answer.status == 500);
            (answer.status == 200).then_some(())
        });
    }
    println!("two servers went back within {:?}, after {failures} failures", since.elapsed());
    let found = eventually("it is shown", || {
        let found = state(&api);
        (found["state"] == "taken_back").then_some(found)
    });
    let failed = found["failed"].as_u64().unwrap();
    assert!((6..=failures).contains(&failed), "{failures}: {found}");
}

#[test]
fn what_is_no_trial_is_refused_in_words() {
    let plugins = plugins();
    let server = with(&plugins).start();
    let api = Api::sign_in(&server);
    let digest = install(&api, b'1');
    let refused = |body: Value, status: u16, code: &str| {
        let answer = try_out(&api, &body);
        assert_eq!(
            (answer.status, answer.field("error").as_str()),
            (status, code),
            "{body}: {}",
            answer.text()
        );
    };
    let body = |more: Value| {
        let mut body = json!({"digest": digest, "mode": "canary", "repositories": "*"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    refused(body(json!({"mode": "parrot"})), 400, "invalid_request");
    refused(body(json!({"percent": 0})), 400, "invalid_request");
    refused(body(json!({"percent": 101})), 400, "invalid_request");
    refused(body(json!({"mode": "shadow", "max_failures": 1})), 400, "invalid_request");
    refused(body(json!({"repositories": "all"})), 400, "invalid_request");
    refused(body(json!({"repositories": ["77"]})), 404, "not_found");
    refused(body(json!({"digest": format!("sha256:{}", "0".repeat(64))})), 404, "not_found");
    api.call("GET", "/v1/plugins/none/candidate").expect(404);
    let raw = |name: &str| {
        let file = checkout().join(format!("target/release/guests/{name}.wasm"));
        let request = Request::new("POST", "/v1/plugins").header("Content-Type", "application/wasm");
        api.request(request.body(std::fs::read(file).unwrap())).expect(201).field("digest")
    };
    let (first, more) = (raw("raw"), raw("raw-more"));
    refused(body(json!({"digest": first})), 422, "plugin_refused");
    // A canary serves clients, so it may not ask more than was accepted; a shadow reaches nobody.
    let trial = "/v1/plugins/raw/candidate";
    let asked = |mode: &str, accept: bool| {
        let body = json!({"digest": more, "mode": mode, "repositories": "*", "accept_changes": accept});
        let answer = api.send("PUT", trial, &body);
        (answer.status, if answer.status == 200 { String::new() } else { answer.field("error") })
    };
    assert_eq!(asked("shadow", false), (409, "conflict".to_owned()), "the format runs nothing");
    let activate = json!({"digest": first, "expected_active": null});
    api.post("/v1/plugins/raw/activate", &activate).expect(200);
    assert_eq!(asked("canary", false), (409, "capabilities_changed".to_owned()));
    assert_eq!(asked("canary", true).0, 200);
    assert_eq!(asked("shadow", false).0, 200);

    let nothing = json!({"organization": ["manage-repositories"], "repositories": []});
    let member = json!({"email": "dev@example.com", "password": "a long password", "permissions": nothing});
    api.post("/v1/members", &member).expect(201);
    let dev = Api::sign_in_as(&server, "dev@example.com", "a long password");
    for method in ["GET", "DELETE"] {
        assert_eq!(dev.call(method, trial).expect(403).field("error"), "insufficient_permissions");
    }
    assert_eq!(
        dev.send("PUT", trial, &body(json!({}))).expect(403).field("error"),
        "insufficient_permissions"
    );
    let mut person = Person::owner(&server);
    let page = person.get("/formats").expect(200).text();
    assert!(page.contains("On trial"), "{page}");
}
