//! Changes of a format's component without a restart: install, activate, pin and roll back, on
//! every server of a database. The server refuses impossible and forbidden changes with a reason.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use packhouse_tests::cli::packhouse;
use packhouse_tests::database::Postgres;
use packhouse_tests::person::Person;
use packhouse_tests::race::SetOnDrop;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::eventually;
use packhouse_tests::{Api, Client, Request, Response, Server, checkout, long};
use serde_json::{Value, json};

/// The error text of the guest `raw` for a missing file.
const OLD: &str = "There is no such file";
/// The error text of another edition of `raw`, of equal length.
const NEW: &str = "No file is there here";

fn guest(name: &str) -> Vec<u8> {
    let file = checkout().join(format!("target/release/guests/{name}.wasm"));
    std::fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}; run `just guests`", file.display()))
}

/// Returns the plugin `raw` with another text of the same length. The result is another component,
/// and clients can tell the two apart by the text.
fn edition(words: &str) -> Vec<u8> {
    assert_eq!(words.len(), OLD.len());
    let mut bytes = guest("raw");
    let at: Vec<usize> =
        (0..bytes.len() - OLD.len()).filter(|at| bytes[*at..].starts_with(OLD.as_bytes())).collect();
    assert_eq!(at.len(), 1, "the text occurs once in the component");
    bytes[at[0]..at[0] + OLD.len()].copy_from_slice(words.as_bytes());
    bytes
}

fn send(api: &Api, bytes: Vec<u8>) -> Response {
    let request = Request::new("POST", "/v1/plugins").header("Content-Type", "application/wasm");
    api.request(request.body(bytes))
}

/// Installs a component and returns its digest.
fn install(api: &Api, bytes: Vec<u8>) -> String {
    let answer = send(api, bytes).expect(201);
    assert_eq!(answer.field("format"), "raw");
    answer.field("digest")
}

fn activate(api: &Api, digest: &str, expected: Option<&str>) -> Response {
    let body = json!({"digest": digest, "expected_active": expected, "accept_changes": false});
    api.post("/v1/plugins/raw/activate", &body)
}

#[track_caller]
fn is(answer: &Response, status: u16, code: &str, words: &str) {
    assert_eq!((answer.status, answer.field("error").as_str()), (status, code), "{}", answer.text());
    assert!(answer.text().contains(words), "{words:?}: {}", answer.text());
}

fn states(api: &Api) -> BTreeSet<(String, String)> {
    let items = api.call("GET", "/v1/plugins").expect(200).json()["items"].as_array().unwrap().clone();
    let of_raw = items.iter().filter(|item| item["format"] == "raw");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    of_raw.map(|item| (text(&item["digest"]), text(&item["state"]))).collect()
}

fn missing(repository: &FormatRepository) -> String {
    let answer = repository.get("nothing").expect(404);
    let text = answer.text();
    [OLD, NEW].into_iter().find(|words| text.contains(words)).unwrap_or_else(|| panic!("{text}")).to_owned()
}

#[test]
fn a_format_is_installed_upgraded_and_rolled_back_without_a_restart() {
    let mut server = Server::start();
    let api = Api::sign_in(&server);
    let unknown = api.post("/v1/repositories", &json!({"name": "a", "format": "raw", "kind": "hosted"}));
    is(&unknown, 400, "invalid_format", "must be one of");
    let first = install(&api, guest("raw"));
    assert_eq!(install(&api, guest("raw")), first, "installing again gives the same digest");
    assert_eq!(states(&api), BTreeSet::from([(first.clone(), "candidate".to_owned())]));
    is(
        &activate(&api, &first, Some(&first)),
        409,
        "conflict",
        "The format raw runs no component, but the activation expected the component sha256:",
    );
    let active = activate(&api, &first, None).expect(200).json();
    assert_eq!((&active["state"], &active["source"]), (&json!("active"), &json!("upload")));
    assert!(active["installed_at"].is_i64() && active["contract"] == "0.1.0", "{active}");

    let repository = FormatRepository::hosted(&server, "raw", "files", &json!({}));
    repository.put("a.txt", "hello").expect(201);
    assert_eq!(repository.get("a.txt").expect(200).text(), "hello");
    assert_eq!(missing(&repository), OLD);

    let second = send(&api, edition(NEW)).expect(201).json();
    assert_eq!(
        second["changes"],
        json!({"imports": [], "claims": [], "settings": [], "limits": [], "permissions": []})
    );
    let second = second["digest"].as_str().unwrap().to_owned();
    is(&activate(&api, &second, None), 409, "conflict", &first);
    activate(&api, &second, Some(&first)).expect(200);
    assert_eq!(missing(&repository), NEW);
    assert_eq!(repository.get("a.txt").expect(200).text(), "hello");
    let expected = [(first.clone(), "retired".to_owned()), (second.clone(), "active".to_owned())];
    assert_eq!(states(&api), BTreeSet::from(expected));

    // The metrics include a format that an operator installed after the start.
    let counted = Client::new(server.api()).get("/metrics").expect(200).text();
    let of_format = r#"packhouse_requests_total{host="packages",format="raw",method="GET",status="2xx"} "#;
    let count = counted.lines().find_map(|line| line.strip_prefix(of_format)).map(str::parse::<u64>);
    assert!(count.is_some_and(|count| count.is_ok_and(|count| count > 0)), "{counted}");

    // A pin replaces the format's active component in one repository only.
    let other = FormatRepository::hosted(&server, "raw", "others", &json!({}));
    let pin = format!("/v1/repositories/{}/plugin", other.id);
    api.send("PUT", &pin, &json!({"digest": first})).expect(200);
    assert_eq!((missing(&repository), missing(&other)), (NEW.to_owned(), OLD.to_owned()));

    server.kill9();
    server.restart();
    let api = Api::sign_in(&server);
    let [repository, other] = [repository, other].map(|repository| repository.on(&server));
    assert_eq!((missing(&repository), missing(&other)), (NEW.to_owned(), OLD.to_owned()), "the pin stays");
    let back = api.call("POST", "/v1/plugins/raw/rollback").expect(200);
    assert_eq!(back.field("digest"), first);
    assert_eq!(missing(&repository), OLD);
    is(&api.call("POST", "/v1/plugins/raw/rollback"), 409, "conflict", "has no earlier component");
    api.send("PUT", &pin, &json!({"digest": second})).expect(200);
    assert_eq!((missing(&repository), missing(&other)), (OLD.to_owned(), NEW.to_owned()));
    api.send("PUT", &pin, &json!({"digest": null})).expect(200);
    assert_eq!(missing(&other), OLD);

    let events = api.call("GET", "/v1/audit-events?limit=50").expect(200).text();
    for action in ["install_plugin", "activate_plugin", "roll_back_plugin", "pin_plugin"] {
        assert!(events.contains(action), "{action}: {events}");
    }
}

#[test]
fn a_component_that_requests_more_needs_acceptance() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let first = install(&api, guest("raw"));
    activate(&api, &first, None).expect(200);
    let repository = FormatRepository::hosted(&server, "raw", "files", &json!({}));
    repository.put("a.txt", "hello").expect(201);
    let more = send(&api, guest("raw-more")).expect(201).json();
    let changes = &more["changes"];
    assert_eq!(changes["claims"], json!(["/raw/{repository}/"]), "{changes}");
    assert_eq!(
        (&changes["settings"], &changes["permissions"]),
        (&json!(["greeting"]), &json!(["request_headers x-more"]))
    );
    let digest = more["digest"].as_str().unwrap();
    is(&activate(&api, digest, Some(&first)), 409, "capabilities_changed", "claims: /raw/{repository}/");
    assert!(repository.get("a.txt").expect(200).header("x-edition").is_none(), "nothing was changed");
    let accepted = json!({"digest": digest, "expected_active": first, "accept_changes": true});
    api.post("/v1/plugins/raw/activate", &accepted).expect(200);
    assert_eq!(repository.get("a.txt").expect(200).header("x-edition"), Some("more"));
    let claimed =
        server.anonymous().with("Authorization", &repository.authorization()).get("/raw/files/a.txt");
    assert_eq!(claimed.expect(200).text(), "hello", "the claimed path is served");
}

#[test]
fn components_that_cannot_run_are_refused_with_a_reason() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let refused = |bytes: Vec<u8>, words: &str| is(&send(&api, bytes), 422, "plugin_refused", words);
    refused(b"hello".to_vec(), "The file is not a WebAssembly component.");
    refused(b"\0asm\x01\0\0\0".to_vec(), "is a core module, not a component");
    let cut = guest("raw");
    refused(cut[..cut.len() / 2].to_vec(), "is out of bounds");
    let mut renamed = guest("raw");
    let import = b"packhouse:format/records@";
    let at = renamed.windows(import.len()).position(|bytes| bytes == import).unwrap();
    renamed[at..at + import.len()].copy_from_slice(b"packhouse:format/secrets@");
    refused(renamed, "packhouse:format/secrets");
    let request = Request::new("POST", "/v1/plugins").header("Content-Type", "application/wasm");
    let large = request.header("Content-Length", &(200 << 20).to_string()).header("Expect", "100-continue");
    is(&api.request(large), 413, "request_body_too_large", "67108864 bytes");
    let request = |media_type: &str| Request::new("POST", "/v1/plugins").header("Content-Type", media_type);
    let text = api.request(request("text/plain").body("{}"));
    is(&text, 415, "unsupported_media_type", "application/wasm");
    is(&api.request(request("application/json").body("{}")), 400, "invalid_request", "source");

    // The server refuses a component of another format and an unknown component.
    let raw = install(&api, guest("raw"));
    let body = json!({"digest": raw, "expected_active": null});
    let of_maven = api.call("GET", "/v1/plugins").json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["format"] == "maven")
        .unwrap()["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    is(&api.post("/v1/plugins/maven/activate", &body), 409, "conflict", &of_maven);
    let body = json!({"digest": raw, "expected_active": of_maven});
    is(
        &api.post("/v1/plugins/maven/activate", &body),
        422,
        "plugin_refused",
        "belongs to the format raw, not to maven",
    );
    let body = json!({"digest": format!("sha256:{}", "0".repeat(64)), "expected_active": null});
    is(&api.post("/v1/plugins/raw/activate", &body), 404, "not_found", "");
    let maven = FormatRepository::hosted(&server, "maven", "libs", &json!({}));
    let pin = format!("/v1/repositories/{}/plugin", maven.id);
    is(&api.send("PUT", &pin, &json!({"digest": raw})), 422, "plugin_refused", "not to maven");
    is(&api.send("PUT", "/v1/repositories/none/plugin", &json!({"digest": raw})), 404, "not_found", "");

    // The server refuses clients without a credential, and members who do not manage the server.
    let unauthenticated =
        Request::new("POST", "/v1/plugins").header("Content-Type", "application/wasm").body(guest("raw"));
    is(&Client::new(server.api()).send(unauthenticated), 401, "not_signed_in", "");
    let nothing = json!({"organization": ["manage-repositories"], "repositories": []});
    let member = json!({"email": "dev@example.com", "password": "a long password", "permissions": nothing});
    api.post("/v1/members", &member).expect(201);
    let dev = Api::sign_in_as(&server, "dev@example.com", "a long password");
    for (method, path) in [("GET", "/v1/plugins"), ("POST", "/v1/plugins/raw/rollback")] {
        is(&dev.call(method, path), 403, "insufficient_permissions", "manage-server");
    }
    is(&send(&dev, guest("raw")), 403, "insufficient_permissions", "manage-server");
    assert!(states(&api).iter().all(|(_, state)| state == "candidate"));
}

/// A rollback restores the displaced component, even if an upgrade has replaced its file in the
/// folder.
#[test]
fn a_rollback_restores_the_shipped_component() {
    let plugins = tempfile::tempdir().unwrap();
    let file = plugins.path().join("raw.wasm");
    std::fs::write(&file, guest("raw")).unwrap();
    // The operator allows less than the component requests. Another component with the same
    // requests then needs no acceptance.
    let arguments = |builder: packhouse_tests::ServerBuilder| {
        let less = builder.env("PACKHOUSE_PLUGINS_RAW_MAX_FILE_BYTES", "1000000");
        less.arg("--plugins").arg(plugins.path().to_str().unwrap())
    };
    let data = tempfile::tempdir().unwrap();
    let mut server = arguments(Server::with().data(data.path())).start();
    let api = Api::sign_in(&server);
    let repository = FormatRepository::hosted(&server, "raw", "files", &json!({}));
    let beside = states(&api).into_iter().next().unwrap().0;
    let other = install(&api, edition(NEW));
    activate(&api, &other, Some(&beside)).expect(200);
    assert_eq!(missing(&repository), NEW);

    server.kill9();
    std::fs::write(&file, edition("Nothing is there now.")).unwrap();
    server.restart();
    let (api, repository) = (Api::sign_in(&server), repository.on(&server));
    assert_eq!(missing(&repository), NEW, "the activated component survives an upgrade");
    api.call("POST", "/v1/plugins/raw/rollback").expect(200);
    assert_eq!(missing(&repository), OLD, "the file is gone, but its component is stored");
}

#[test]
fn the_command_line_does_the_same_beside_a_running_server() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: Vec<u8>| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let ok = |words: &[&str]| packhouse(server.data(), words, "").success().text;
    let refused = |words: &[&str], why: &str| packhouse(server.data(), words, "").refused(why);
    let digest = |output: &str| output.split('\t').next().unwrap().trim().to_owned();
    let first = digest(&ok(&["plugins", "install", &file("raw.wasm", guest("raw"))]));
    ok(&["plugins", "activate", "raw", &first]);
    let served = || api.call("GET", "/v1/formats").expect(200).text().contains(&first);
    eventually("the server follows", || served().then_some(()));
    let repository = FormatRepository::hosted(&server, "raw", "files", &json!({}));
    let second = digest(&ok(&["plugins", "install", &file("next.wasm", edition(NEW))]));
    ok(&["plugins", "activate", "raw", &second]);
    eventually("the server follows", || (missing(&repository) == NEW).then_some(()));
    let listed = ok(&["plugins", "list"]);
    assert!(listed.contains(&format!("next.wasm\tactive\t{second}")), "{listed}");
    assert!(listed.contains(&format!("raw.wasm\tretired\t{first}")), "{listed}");
    ok(&["plugins", "pin", "files", &first]);
    eventually("the server follows", || (missing(&repository) == OLD).then_some(()));
    ok(&["plugins", "pin", "files"]);
    ok(&["plugins", "rollback", "raw"]);
    refused(&["plugins", "rollback", "raw"], "has no earlier component");
    let more = digest(&ok(&["plugins", "install", &file("more.wasm", guest("raw-more"))]));
    refused(
        &["plugins", "activate", "raw", &more],
        "component requests more than the active one: claims: /raw/",
    );
    ok(&["plugins", "activate", "raw", &more, "--accept-changes"]);
}

#[test]
fn a_component_is_installed_and_activated_in_the_portal() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let mut person = Person::owner(&server);
    assert!(
        !person.get("/formats").expect(200).text().contains("Components"),
        "there is no component to choose"
    );
    let first = install(&api, guest("raw"));
    let page = person.get("/formats").expect(200).text();
    assert!(page.contains("not run") && page.contains(&first), "{page}");
    let activate = |digest: &str, expected: &str, accept: &str| {
        let fields = [
            ("do", "activate"),
            ("format", "raw"),
            ("digest", digest),
            ("expected", expected),
            ("accept", accept),
        ];
        fields.map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let post = |person: &mut Person, fields: &[(String, String)]| {
        let fields: Vec<(&str, &str)> =
            fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        person.confirm_form("/formats", &fields)
    };
    post(&mut person, &activate(&first, "", "")).expect(303);
    let more = install(&api, guest("raw-more"));
    let refused = post(&mut person, &activate(&more, &first, "")).expect(409).text();
    assert!(refused.contains("requests more") && refused.contains("Accept and activate"), "{refused}");
    post(&mut person, &activate(&more, &first, "on")).expect(303);
    let expected = [(first.clone(), "retired".to_owned()), (more.clone(), "active".to_owned())];
    assert_eq!(states(&api), BTreeSet::from(expected));
    person.send_form("/formats", &[("do", "rollback"), ("format", "raw")]).expect(303);
    assert!(states(&api).contains(&(first, "active".to_owned())));
    post(&mut person, &activate(&more, &more, "on")).expect(409);
}

/// Activates and rolls back under load. No request fails, and each response comes from one of the
/// two components.
fn under_load(servers: &[&Server], rounds: usize, clients: usize) {
    let api = Api::sign_in(servers[0]);
    let first = install(&api, guest("raw"));
    activate(&api, &first, None).expect(200);
    let second = install(&api, edition(NEW));
    let repository = FormatRepository::hosted(servers[0], "raw", "files", &json!({}));
    repository.put("a.txt", "hello").expect(201);
    for server in servers {
        let there = repository.on(server);
        eventually("the other server knows the format", || (there.get("a.txt").status == 200).then_some(()));
    }
    let (stop, path) = (AtomicBool::new(false), repository.path("nothing"));
    let authorization = repository.authorization();
    let mut slowest = Duration::ZERO;
    let requests: usize = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..clients)
            .map(|number| {
                let server = servers[number % servers.len()];
                let client = Client::new(server.packages()).with("Authorization", &authorization);
                let (stop, path, file) = (&stop, &path, repository.path("a.txt"));
                scope.spawn(move || {
                    let mut requests = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let answer = client.get(path).expect(404).text();
                        assert!(answer.contains(OLD) || answer.contains(NEW), "{answer}");
                        assert_eq!(client.get(&file).expect(200).text(), "hello");
                        requests += 2;
                    }
                    requests
                })
            })
            .collect();
        let ended = SetOnDrop(&stop);
        for round in 0..rounds {
            let (words, answer) = if round % 2 == 0 {
                (NEW, activate(&api, &second, Some(&first)))
            } else {
                (OLD, api.call("POST", "/v1/plugins/raw/rollback"))
            };
            answer.expect(200);
            let changed = Instant::now();
            for server in servers {
                let there = repository.on(server);
                eventually("every server follows", || (missing(&there) == words).then_some(()));
            }
            // An unloaded machine needs one second for this change. The bound leaves time for a
            // busy machine, and still detects a hang.
            slowest = slowest.max(changed.elapsed());
            assert!(slowest < Duration::from_secs(20), "{slowest:?}");
        }
        drop(ended);
        asking.into_iter().map(|asking| asking.join().unwrap()).sum()
    });
    println!(
        "{rounds} changes on {} servers beside {requests} requests of {clients} clients, followed within {slowest:?}",
        servers.len()
    );
    assert!(requests > rounds);
}

#[test]
fn activations_under_load_on_one_server() {
    let server = Server::start();
    under_load(&[&server], if long() { 100 } else { 10 }, if long() { 64 } else { 8 });
}

#[test]
fn activations_under_load_on_two_servers() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let start = || Server::with().data(data.path()).arg("--database-url").arg(&postgres.url()).start();
    let (one, two) = (start(), start());
    under_load(&[&one, &two], if long() { 100 } else { 10 }, if long() { 64 } else { 8 });
}
