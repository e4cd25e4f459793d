//! The program as its operator sees it: health, metrics, stopping, configuration, and error
//! messages.

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

    // The address `/` of the repository host checks no credential. A path outside of
    // `/repositories/` gets 401 if no format serves it, even with a valid credential.
    server.anonymous().get("/").expect(200);
    server.anonymous().basic("nobody", "wrong").get("/").expect(200);
    let nowhere = server.anonymous().get("/nowhere/org/example").expect(401);
    let challenge = nowhere.header("www-authenticate").unwrap_or_default();
    assert_eq!(challenge, "Basic realm=\"127.0.0.1\"", "sbt and Ivy send no credential for another realm");
    assert_eq!(nowhere.field("error"), "unauthorized");
    let repository = MavenRepository::create(&server, "fixed");
    repository.client.get("/elsewhere/fixed/org/example").expect(401);
    repository.client.get("/repositories/fixed").expect(404);
    repository.client.get("/repositories/fixed/").expect(404);
}

#[test]
fn every_response_has_a_request_id_that_is_in_the_log() {
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
    assert_ne!(mine.header("x-request-id"), Some("mine"), "a client cannot choose the request id in the log");
}

#[test]
fn no_secret_is_ever_logged() {
    // Logs everything except the compiler's own messages, which are hundreds of megabytes.
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
        assert!(!server.log().contains(secret), "the log contains {secret}");
    }
}

/// Tokens that an operator imported from another server have any form, so the server cannot
/// recognize them by their form.
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
        assert!(!server.log().contains(secret), "the log contains {secret}");
    }
}

#[test]
fn metrics_count_the_served_requests() {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "counted");
    repository.put(FILE, "hello").expect(201);
    let text = Client::new(server.api()).get("/metrics").expect(200).text();
    assert!(text.contains("# TYPE") && text.contains("packhouse_"), "{text}");
}

#[test]
fn a_stop_finishes_requests_in_flight() {
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
    eventually("no new connection is accepted", || Connection::open(address).is_err().then_some(()));
    connection.send(b"0123456789").unwrap();
    connection.read_response(false).unwrap().expect(201);
    drop(connection);
    assert!(server.wait().success(), "{}", server.log());

    server.restart();
    assert_eq!(repository.get(FILE).expect(200).text(), "0123456789");
}

/// The time for requests in flight is very short, so the store closes while requests still arrive.
/// The server can then look up no credential. It must answer that the storage is unavailable, never
/// that the credential is invalid. The client reuses its connections, so that every response comes
/// from this server.
#[test]
fn no_credential_is_refused_while_the_server_stops() {
    let mut server = Server::with().env("PACKHOUSE_LIMITS_SHUTDOWN_MS", "1").start();
    let repository = MavenRepository::create(&server, "stopping");
    repository.put(FILE, "hello").expect(201);
    let token = repository.client.head_bytes(over_keep_alive(&repository.path(FILE)));
    let password = server.anonymous().basic(server::OWNER, server::PASSWORD);
    let password = password.head_bytes(over_keep_alive(&repository.path(FILE)));
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
            eventually("all clients are running", || (answered.load(Ordering::Relaxed) >= 200).then_some(()));
            stopping.store(true, Ordering::Relaxed);
            server.terminate();
            assert!(server.wait().success(), "{}", server.log());
        });
        server.restart();
    }
}

fn over_keep_alive(path: &str) -> Request {
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
    assert!(curl(&["--upload-file", &file]).success().text.ends_with("2 201"));
    assert!(curl(&["--upload-file", &file]).success().text.ends_with("2 409"));
    let got = curl(&[]).success().text;
    assert!(got.contains("Apache License") && got.ends_with("2 200"), "{got}");
    assert!(curl(&["--range", "0-9"]).success().text.ends_with("2 206"));
    assert!(curl(&["--head"]).success().text.ends_with("2 200"));
}

#[test]
fn an_invalid_configuration_is_refused_with_a_remedy() {
    let home = tempfile::TempDir::new().unwrap();
    let refused = |text: &str, words: &[&str]| {
        let file = home.path().join("packhouse.toml");
        std::fs::write(&file, text).unwrap();
        let (status, output) = Server::with().arg("--config").arg(&file.to_string_lossy()).start_refused();
        assert!(!status.success());
        for word in words {
            assert!(output.contains(word), "{word:?} is not in: {output}");
        }
    };
    refused("packges_listen = \"127.0.0.1:1\"", &["packges_listen", "packages_listen"]);
    refused("[limits]\nbody_idle_ms = \"soon\"", &["body_idle_ms", "soon"]);
    refused("this is not TOML", &["TOML"]);
}

#[test]
fn each_setting_is_listed_with_its_origin() {
    let mut command = Command::new(server::program());
    command
        .args(["config", "show"])
        .env("PACKHOUSE_LOG", "debug")
        .env("PACKHOUSE_OWNER_PASSWORD", "canary-password");
    let output = run(&mut command).success().text;
    let line = |name: &str| output.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(line("log ").contains("debug") && line("log ").contains("PACKHOUSE_LOG"), "{output}");
    assert!(
        line("packages_listen").contains("127.0.0.1:8080") && line("packages_listen").contains("default"),
        "{output}"
    );
    assert!(!output.contains("canary-password"), "a secret is shown");
}

#[test]
fn plugins_are_listed_and_checked() {
    let output = run(Command::new(server::program()).args(["plugins", "list"])).success().text;
    assert!(output.contains("maven"), "{output}");
    let file = packhouse_tests::checkout().join("target/release/plugins/maven.wasm");
    let output = run(Command::new(server::program()).args(["plugins", "check"]).arg(&file)).success().text;
    assert!(output.contains("maven"), "{output}");
    let licence = packhouse_tests::checkout().join("LICENSE");
    let output: clients::ProgramOutput =
        run(Command::new(server::program()).args(["plugins", "check"]).arg(licence));
    assert!(!output.success && !output.text.is_empty(), "{}", output.text);
}

#[test]
fn a_port_in_use_is_reported() {
    let server = Server::start();
    let taken = server.packages().to_string();
    let home = tempfile::TempDir::new().unwrap();
    let mut command = Command::new(server::program());
    command
        .args(["serve", "--packages-listen", &taken, "--api-listen", "127.0.0.1:0", "--data"])
        .arg(home.path());
    let output = run(&mut command);
    assert!(!output.success && output.text.contains(&taken), "{}", output.text);
}

/// A program that starts a server of its own may be killed. The server then ends too, because its
/// standard input closes.
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
    assert!(child.try_wait().unwrap().is_none(), "the server runs as long as its input is open");
    drop(child.stdin.take());
    assert!(eventually("it ends", || child.try_wait().unwrap()).success());
}
