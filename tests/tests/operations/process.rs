//! The program as its operator meets it: health, metrics, stopping, configuration, and what it says when something is wrong.

use packhouse_tests::clients::{self, run};
use packhouse_tests::server::{self, eventually};
use packhouse_tests::{Client, Connection, MavenRepository, Request, Server};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

#[test]
fn a_start_on_defaults_warns_of_nothing() {
    let server = Server::start();
    let log = server.log();
    let warnings: Vec<&str> =
        log.lines().filter(|line| line.contains("\"WARN\"") || line.contains("\"ERROR\"")).collect();
    assert!(log.contains("\"INFO\"") && warnings.is_empty(), "{warnings:#?}");
}

#[test]
fn both_hosts_answer_their_fixed_addresses() {
    let server = Server::start();
    let api = Client::new(server.api());
    api.get("/livez").expect(200);
    api.get("/readyz").expect(200);
    api.get("/metrics").expect(200);
    let unknown = api.get("/nowhere").expect(404);
    assert_eq!(unknown.field("error"), "not_found");

    // R2: the bare host checks no credential. R1: what is not below /repositories/ is an address not served.
    server.anonymous().get("/").expect(200);
    server.anonymous().basic("nobody", "wrong").get("/").expect(200);
    let nowhere = server.anonymous().get("/nowhere/org/example").expect(401);
    let challenge = nowhere.header("www-authenticate").unwrap_or_default();
    assert_eq!(challenge, "Basic realm=\"127.0.0.1\"", "sbt and Ivy send nothing when the realm is another");
    assert_eq!(nowhere.field("error"), "unauthorized");
    let repository = MavenRepository::create(&server, "fixed");
    repository.client.get("/elsewhere/fixed/org/example").expect(401);
    repository.client.get("/repositories/fixed").expect(404);
    repository.client.get("/repositories/fixed/").expect(404);
}

#[test]
fn every_answer_has_a_request_id_that_the_log_knows() {
    let server = Server::start();
    let answer = server.anonymous().get("/repositories/absent/x").expect(401);
    let id = answer.header("x-request-id").unwrap_or_default().to_owned();
    assert!(!id.is_empty(), "{:?}", answer.headers);
    assert_eq!(answer.field("request_id"), id);
    eventually("the request is logged", || server.log().contains(&id).then_some(()));
    let line = server.log().lines().find(|line| line.contains(&id)).unwrap_or_default().to_owned();
    let line: serde_json::Value = serde_json::from_str(&line).expect("off a terminal, each line is JSON");
    assert!(line.is_object());
    let mine = server.anonymous().with("X-Request-Id", "mine").get("/").expect(200);
    assert_ne!(mine.header("x-request-id"), Some("mine"), "a client does not choose what the log says");
}

#[test]
fn no_secret_is_ever_logged() {
    // All but what the compiler says of its own work, which is hundreds of megabytes.
    let all = "trace,cranelift_codegen=off,cranelift_frontend=off,wasmtime_internal_cranelift=off";
    let server = Server::with().env("PACKHOUSE_LOG", all).start();
    let repository = MavenRepository::create(&server, "secrets");
    repository.put(FILE, "hello").expect(201);
    repository.get(FILE).expect(200);
    server
        .anonymous()
        .with("Cookie", "canary=cookie-canary")
        .basic("canary", "password-canary")
        .get("/x")
        .expect(401);
    let basic = packhouse_tests::http::basic(server::OWNER, &repository.token.secret);
    for secret in [
        &repository.token.secret,
        server::PASSWORD,
        "cookie-canary",
        "password-canary",
        &basic["Basic ".len()..],
    ] {
        assert!(!server.log().contains(secret), "the log holds {secret}");
    }
}

/// Tokens that were brought in from another server look as that server made them.
#[test]
fn a_credential_in_a_path_is_not_logged() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "secrets");
    let imported = "brought-in-canary";
    let random = "glpat-x7Qm2Zt9Lk4Rp8Vn3Ws6";
    let bearer = server.anonymous().with("Authorization", &format!("Bearer {imported}"));
    for (client, secret) in [(&bearer, imported), (&repository.client, random)] {
        let path = format!("/repositories/secrets/-/token/{secret}/{secret}?token={secret}");
        let answer = client.get(&path);
        let id = answer.header("x-request-id").unwrap_or_default().to_owned();
        let is_mine = |line: &&str| line.contains(&id) && line.contains("/repositories/secrets/");
        let line =
            eventually("the request is logged", || server.log().lines().find(is_mine).map(str::to_owned));
        assert!(line.contains("\"/repositories/secrets/-/token/***/***\""), "{line}");
        assert!(!server.log().contains(secret), "the log holds {secret}");
    }
}

#[test]
fn metrics_count_what_was_served() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "counted");
    repository.put(FILE, "hello").expect(201);
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    assert!(text.contains("# TYPE") && text.contains("packhouse_"), "{text}");
}

#[test]
fn a_stop_finishes_what_is_in_flight() {
    let mut server = Server::start();
    let repository = MavenRepository::create(&server, "stopped");
    let head = Request::new("PUT", &repository.path(FILE))
        .header("Content-Length", "10")
        .header("Expect", "100-continue");
    let mut connection = Connection::open(server.packages()).unwrap();
    connection.send(&repository.client.head_bytes(head)).unwrap();
    assert_eq!(connection.read_head().unwrap().status, 100, "the request is in flight");

    server.terminate();
    let address = server.packages();
    eventually("nothing new is accepted", || Connection::open(address).is_err().then_some(()));
    connection.send(b"0123456789").unwrap();
    connection.read_response(false).unwrap().expect(201);
    drop(connection);
    assert!(server.wait().success(), "{}", server.log());

    server.restart();
    assert_eq!(repository.get(FILE).expect(200).text(), "0123456789");
}

/// The store closes while requests still come in, because there is next to no time for those in flight: who cannot be looked up is told
/// that the storage is away, and never that the credential does not count. Connections are kept, so that whoever answers is this server.
#[test]
fn no_credential_is_refused_while_the_server_stops() {
    let mut server = Server::with().env("PACKHOUSE_LIMITS_SHUTDOWN_MS", "1").start();
    let repository = MavenRepository::create(&server, "stopping");
    repository.put(FILE, "hello").expect(201);
    let token = repository.client.head_bytes(kept_open(&repository.path(FILE)));
    let password = server.anonymous().basic(server::OWNER, server::PASSWORD);
    let password = password.head_bytes(kept_open(&repository.path(FILE)));
    let rounds = if packhouse_tests::long() { 50 } else { 3 };
    for _ in 0..rounds {
        let (stopping, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for head in [&token, &password].into_iter().cycle().take(8) {
                let (address, answered, stopping) = (server.packages(), &answered, &stopping);
                scope.spawn(move || {
                    let mut connection = Connection::open(address).unwrap();
                    while let Ok(answer) =
                        connection.send(head).and_then(|()| connection.read_response(false))
                    {
                        match answer.status {
                            200 => drop(answered.fetch_add(1, Ordering::Relaxed)),
                            503 if stopping.load(Ordering::Relaxed) => (),
                            _ => panic!("{}: {}", answer.status, answer.text()),
                        }
                    }
                });
            }
            eventually("all are at work", || (answered.load(Ordering::Relaxed) >= 200).then_some(()));
            stopping.store(true, Ordering::Relaxed);
            server.terminate();
            assert!(server.wait().success(), "{}", server.log());
        });
        server.restart();
    }
}

fn kept_open(path: &str) -> Request {
    Request::new("GET", path).header("Connection", "keep-alive")
}

#[test]
fn http_2_without_tls_serves_the_same() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "h2c");
    let url = format!("{}/{FILE}", repository.url(&server));
    let user = format!("{}:{}", server::OWNER, repository.token.secret);
    let curl = |arguments: &[&str]| {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--http2-prior-knowledge", "--user", &user]);
        run(command.args(["--write-out", " %{http_version} %{http_code}"]).args(arguments).arg(&url))
    };
    let file = packhouse_tests::checkout().join("LICENSE");
    let file = file.to_string_lossy().into_owned();
    assert!(curl(&["--upload-file", &file]).well().text.ends_with("2 201"));
    assert!(curl(&["--upload-file", &file]).well().text.ends_with("2 409"));
    let got = curl(&[]).well().text;
    assert!(got.contains("Apache License") && got.ends_with("2 200"), "{got}");
    assert!(curl(&["--range", "0-9"]).well().text.ends_with("2 206"));
    assert!(curl(&["--head"]).well().text.ends_with("2 200"));
}

#[test]
fn a_configuration_that_is_wrong_is_refused_with_what_to_do() {
    let home = tempfile::TempDir::new().unwrap();
    let refused = |text: &str, words: &[&str]| {
        let file = home.path().join("packhouse.toml");
        std::fs::write(&file, text).unwrap();
        let (status, said) = Server::with().arg("--config").arg(&file.to_string_lossy()).start_refused();
        assert!(!status.success());
        for word in words {
            assert!(said.contains(word), "{word:?} is not in: {said}");
        }
    };
    refused("packges_listen = \"127.0.0.1:1\"", &["packges_listen", "packages_listen"]);
    refused("[limits]\nbody_idle_ms = \"soon\"", &["body_idle_ms", "soon"]);
    refused("this is no TOML", &["TOML"]);
}

#[test]
fn each_setting_is_shown_with_where_it_came_from() {
    let mut command = Command::new(server::program());
    command
        .args(["config", "show"])
        .env("PACKHOUSE_LOG", "debug")
        .env("PACKHOUSE_OWNER_PASSWORD", "canary-password");
    let said = run(&mut command).well().text;
    let line = |name: &str| said.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("log ").contains("debug") && line("log ").contains("PACKHOUSE_LOG"), "{said}");
    assert!(
        line("packages_listen").contains("127.0.0.1:8080") && line("packages_listen").contains("default"),
        "{said}"
    );
    assert!(!said.contains("canary-password"), "a secret is shown");
}

#[test]
fn plugins_are_listed_and_checked() {
    let said = run(Command::new(server::program()).args(["plugins", "list"])).well().text;
    assert!(said.contains("maven"), "{said}");
    let file = packhouse_tests::checkout().join("target/release/plugins/maven.wasm");
    let said = run(Command::new(server::program()).args(["plugins", "check"]).arg(&file)).well().text;
    assert!(said.contains("maven"), "{said}");
    let licence = packhouse_tests::checkout().join("LICENSE");
    let said: clients::Said = run(Command::new(server::program()).args(["plugins", "check"]).arg(licence));
    assert!(!said.success && !said.text.is_empty(), "{}", said.text);
}

#[test]
fn a_port_in_use_is_said_plainly() {
    let server = Server::start();
    let taken = server.packages().to_string();
    let home = tempfile::TempDir::new().unwrap();
    let mut command = Command::new(server::program());
    command
        .args(["serve", "--packages-listen", &taken, "--api-listen", "127.0.0.1:0", "--data"])
        .arg(home.path());
    let said = run(&mut command);
    assert!(!said.success && said.text.contains(&taken), "{}", said.text);
}

/// A program that starts a server for itself may be killed: its server is not left.
#[test]
fn a_server_that_hangs_on_its_input_ends_with_it() {
    let data = tempfile::TempDir::new().unwrap();
    server::share_compiled(data.path());
    let log = data.path().join("log");
    let mut command = Command::new(server::program());
    command.args(["serve", "--until-stdin-ends", "--data"]).arg(data.path());
    command.args(["--packages-listen", "127.0.0.1:0", "--api-listen", "127.0.0.1:0"]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut child = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let serves = || std::fs::read_to_string(&log).unwrap().contains("\"serving\"").then_some(());
    eventually("it serves", serves);
    assert!(child.try_wait().unwrap().is_none(), "it runs as long as its input is open");
    drop(child.stdin.take());
    assert!(eventually("it ends", || child.try_wait().unwrap()).success());
}
