//! A server as its operators see it: start errors, settings, missing plugins, and metrics that show
//! stuck requests.

use packhouse_tests::clients::{ProgramOutput, run};
use packhouse_tests::database::Postgres;
use packhouse_tests::server::{self, OWNER, eventually, free_port};
use packhouse_tests::{Api, Client, Connection, MavenRepository, Request, Server, checkout};
use serde_json::json;
use std::net::TcpListener;
use std::process::{Command, Stdio};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

#[track_caller]
fn refused(environment: &[(&str, &str)], words: &[&str]) -> String {
    let mut builder = Server::with();
    for (name, text) in environment {
        builder = builder.env(name, text);
    }
    let (status, output) = builder.start_refused();
    assert!(!status.success(), "{environment:?}: {output}");
    for word in words {
        assert!(output.contains(word), "{environment:?}: {word:?} is not in: {output}");
    }
    output
}

/// A folder with links to these files of `target/release`.
fn plugins(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in files {
        let from = checkout().join("target/release").join(file);
        assert!(from.is_file(), "{}; run `just plugins guests`", from.display());
        std::os::unix::fs::symlink(&from, folder.path().join(from.file_name().unwrap())).unwrap();
    }
    folder
}

const ALL: [&str; 4] = ["plugins/maven.wasm", "plugins/npm.wasm", "plugins/oci.wasm", "plugins/python.wasm"];

#[test]
fn the_reader_of_the_output_may_stop_reading() {
    let program = server::program();
    let plugin = checkout().join("target/release/plugins/maven.wasm");
    let words: [&[&str]; 3] =
        [&["plugins", "check", plugin.to_str().unwrap()], &["plugins", "list"], &["config", "show"]];
    for words in words {
        let mut child = Command::new(&program)
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // The test closes the reading end before the program writes anything, as `| head` does once
        // it has its lines.
        drop(child.stdout.take());
        let output: ProgramOutput = child.wait_with_output().unwrap().into();
        assert!(output.success && !output.text.contains("panicked"), "{words:?}: {}", output.text);
    }
    let full = Command::new(&program)
        .args(["config", "show"])
        .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&full.stderr);
    assert!(
        !full.status.success() && text.contains("standard output") && !text.contains("panicked"),
        "{text}"
    );
}

#[test]
fn invalid_settings_stop_the_start() {
    let error =
        refused(&[("PACKHOUSE_OWNER_PASSWORD", "a")], &["owner.password", "PACKHOUSE_OWNER_PASSWORD", "8"]);
    assert_eq!(error.lines().count(), 1, "{error}");
    refused(&[("PACKHOUSE_LOG", "verbose")], &["PACKHOUSE_LOG", "verbose", "debug"]);
    refused(&[("PACKHOUSE_LOG", "info,packhouse_store")], &["packhouse_store"]);
    refused(
        &[("PACKHOUSE_PACKGES_LISTEN", "127.0.0.1:1")],
        &["PACKHOUSE_PACKGES_LISTEN", "PACKHOUSE_PACKAGES_LISTEN"],
    );
    refused(&[("PACKHOUSE_PLUGINS_MAVEN_MAX_FILE_BYTE", "1")], &["PACKHOUSE_PLUGINS_MAVEN_MAX_FILE_BYTE"]);
    refused(
        &[("PACKHOUSE_PLUGINS", "/a"), ("PACKHOUSE_PLUGINS_DIR", "/b")],
        &["PACKHOUSE_PLUGINS and PACKHOUSE_PLUGINS_DIR"],
    );
}

#[test]
fn variables_of_other_programs_do_not_stop_the_start() {
    let folder = plugins(&["plugins/maven.wasm"]);
    let server = Server::with()
        .env("PACKHOUSE_PLUGINS_DIR", folder.path().to_str().unwrap())
        .env("PACKHOUSE_TEST_LONG", "0")
        .env("PACKHOUSE_PORT", "tcp://10.0.0.1:8080")
        .env("PACKHOUSE_LOG", "info,packhouse_store=debug")
        .start();
    let formats = Api::sign_in(&server).call("GET", "/v1/formats").expect(200).json();
    assert_eq!(
        formats["items"].as_array().unwrap().len(),
        1,
        "the folder of PACKHOUSE_PLUGINS_DIR: {formats}"
    );
    assert!(server.log().contains("PACKHOUSE_PORT is not a setting"), "{}", server.log());
}

#[test]
fn a_password_is_printed_once_the_ports_are_bound() {
    let home = tempfile::tempdir().unwrap();
    server::share_compiled(home.path());
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let serve = |packages: &str| {
        let mut command = Command::new(server::program());
        command.args(["serve", "--packages-listen", packages, "--data"]).arg(home.path());
        command.args(["--api-listen", &format!("127.0.0.1:{}", free_port())]);
        command.env_remove("PACKHOUSE_OWNER_PASSWORD").env("PACKHOUSE_LOG", "error");
        command
    };
    let result = run(&mut serve(&taken.local_addr().unwrap().to_string()));
    assert!(
        !result.success && result.text.contains("in use") && !result.text.contains("password"),
        "{}",
        result.text
    );

    let log = home.path().join("out");
    let output = std::fs::File::create(&log).unwrap();
    let mut child = serve(&format!("127.0.0.1:{}", free_port())).stdout(output).spawn().unwrap();
    let password = eventually("the password is printed", || {
        let text = std::fs::read_to_string(&log).unwrap();
        Some(text.split_once("the password ")?.1.split_once('\n')?.0.to_owned())
    });
    assert!(password.len() > 20, "{password}");
    let _ = child.kill();
    let _ = child.wait();
}

/// Checks that an error does not repeat a sentence.
#[track_caller]
fn assert_no_repetition(error: &str) {
    let parts: Vec<&str> = error.trim().split(": ").collect();
    for (at, part) in parts.iter().enumerate() {
        assert!(!parts[at + 1..].contains(part), "{part:?} occurs twice in: {error}");
    }
}

#[test]
fn a_database_that_refuses_is_quoted() {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let away = format!("postgres://packhouse@127.0.0.1:{}/packhouse", free_port());
    let text = refused(&[("PACKHOUSE_DATABASE_URL", &away)], &["refused"]);
    assert!(!text.contains("pool timed out"), "{text}");
    assert_no_repetition(&text);

    // A role without a free connection makes the pool wait. The error must still contain
    // PostgreSQL's own message.
    let plain = postgres.url_of_a_plain_role();
    postgres.sql("alter role plain connection limit 0");
    let text = refused(&[("PACKHOUSE_DATABASE_URL", &plain)], &["too many connections"]);
    assert!(!text.contains("pool timed out"), "{text}");
    assert_no_repetition(&text);

    postgres.sql("alter role plain connection limit -1");
    let server = Server::with().env("PACKHOUSE_DATABASE_URL", &plain).start();
    let repository = MavenRepository::create(&server, "limited");
    repository.put(FILE, "hello").expect(201);
    postgres.sql("alter role plain connection limit 0");
    postgres.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'plain'");
    eventually("requests fail, and the log names the reason", || {
        repository.get(FILE).expect(503);
        server.log().contains("too many connections").then_some(())
    });
    postgres.sql("alter role plain connection limit -1");
    eventually("it works again", || (repository.get(FILE).status == 200).then_some(()));
}

#[test]
fn a_plugin_whose_file_is_missing_is_not_called_switched_off() {
    let folder = plugins(&ALL);
    let path = folder.path().to_str().unwrap().to_owned();
    let mut server = Server::with().arg("--plugins").arg(&path).start();
    let api = Api::sign_in(&server);
    let new = json!({"name": "wheels", "format": "python", "kind": "hosted"});
    let id = api.post("/v1/repositories", &new).expect(201).field("id");
    let token = api.create_token(&[&id], &["read"], None);
    std::fs::remove_file(folder.path().join("python.wasm")).unwrap();
    server.restart();

    let log = server.log();
    let line = log.lines().find(|line| line.contains("\"WARN\"") && line.contains("python"));
    assert!(line.is_some_and(|line| line.contains(&path)), "{log}");
    let report = Client::new(server.api()).get("/readyz").expect(200).json();
    assert_eq!((&report["status"], &report["degraded"][0]["what"]), (&json!("degraded"), &json!("plugin")));
    let detail = report["degraded"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("python") && detail.contains(&path), "{report}");
    let formats = Api::sign_in(&server).call("GET", "/v1/formats").expect(200).json();
    let items = formats["items"].as_array().unwrap();
    let of = |name: &str| items.iter().find(|item| item["format"] == name).unwrap();
    assert_eq!((&of("maven")["loaded"], &of("maven")["problem"]), (&json!(true), &json!(null)));
    assert_eq!((&of("python")["loaded"], &of("python")["enabled"]), (&json!(false), &json!(false)));
    assert!(of("python")["problem"].as_str().unwrap().contains(&path), "{formats}");
    let answer =
        server.anonymous().basic(OWNER, &token.secret).get("/repositories/wheels/simple/").expect(503);
    assert_eq!(
        (answer.field("error").as_str(), answer.header("retry-after")),
        ("format_disabled", Some("5"))
    );
    let sentence = answer.field("message");
    assert!(sentence.contains("loaded") && !sentence.contains("disabled"), "{sentence}");
    assert!(!sentence.contains(&path), "clients see no paths");
}

#[test]
fn a_plugin_that_cannot_be_loaded_disables_only_its_format() {
    let folder = plugins(&["plugins/maven.wasm"]);
    let file = |name: &str| folder.path().join(name);
    std::fs::copy(checkout().join("target/release/plugins/python.wasm"), file("python.wasm")).unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    // The server starts even if a setting belongs to a plugin that it cannot load.
    let mut server =
        Server::with().arg("--plugins").arg(&path).env("PACKHOUSE_PLUGINS_PYTHON_CONCURRENCY", "9").start();
    let api = Api::sign_in(&server);
    let wheels = json!({"name": "wheels", "format": "python", "kind": "hosted"});
    let id = api.post("/v1/repositories", &wheels).expect(201).field("id");
    let token = api.create_token(&[&id], &["read"], None);
    std::fs::write(file("python.wasm"), "no component").unwrap();
    std::fs::copy(checkout().join("target/release/plugins/maven.wasm"), file("second.wasm")).unwrap();
    server.restart();
    let log = server.log();
    for name in ["python.wasm", "second.wasm"] {
        let line = log.lines().find(|line| line.contains("\"ERROR\"") && line.contains(name));
        assert!(line.is_some_and(|line| line.contains("could not load a plugin")), "{name}: {log}");
    }
    let report = Client::new(server.api()).get("/readyz").expect(200).json();
    assert_eq!(report["status"], "degraded");
    let degraded = report["degraded"].to_string();
    for words in
        ["is not a WebAssembly component", "two plugins implement the format maven", "1 repositories need it"]
    {
        assert!(degraded.contains(words), "{words}: {report}");
    }
    server.anonymous().basic(OWNER, &token.secret).get("/repositories/wheels/simple/").expect(503);
    let maven = MavenRepository::create(&server, "jars");
    maven.put(FILE, "served as before").expect(201);
    maven.get(FILE).expect(200);
}

#[test]
fn a_concurrency_that_is_the_default_counts_as_set() {
    // The pool cannot give each of these plugins the default concurrency.
    let built = std::fs::read_dir(checkout().join("target/release/plugins")).unwrap();
    let built = built.map(|entry| format!("plugins/{}", entry.unwrap().file_name().to_string_lossy()));
    let mut files: Vec<String> = built.filter(|file| file.ends_with(".wasm")).collect();
    files.extend(["depot", "odd", "raw"].map(|guest| format!("guests/{guest}.wasm")));
    assert_eq!(files.len(), 13);
    let folder = plugins(&files.iter().map(String::as_str).collect::<Vec<_>>());
    let start = |concurrency: Option<&str>| {
        let mut builder = Server::with().arg("--plugins").arg(folder.path().to_str().unwrap());
        if let Some(concurrency) = concurrency {
            builder = builder.env("PACKHOUSE_PLUGINS_MAVEN_CONCURRENCY", concurrency);
        }
        builder.start()
    };
    let warns = |server: &Server| server.log().contains("must fit into the pool");
    assert!(!warns(&start(None)), "the default needs no warning");
    let server = start(Some("250"));
    assert!(warns(&server), "{}", server.log());
    let formats = Api::sign_in(&server).call("GET", "/v1/formats").expect(200).json();
    let maven = formats["items"].as_array().unwrap().iter().find(|item| item["format"] == "maven").unwrap();
    assert_eq!(maven["limits"]["concurrency"], 230, "the effective value is shown, not the configured one");
}

struct Metrics(String);

impl Metrics {
    fn of(server: &Server) -> Self {
        Self(Client::new(server.api()).get("/metrics").expect(200).text())
    }

    /// The value of the series with this name and all of these labels.
    #[track_caller]
    fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let is_it = |line: &&str| {
            let (series, _) = line.rsplit_once(' ').unwrap_or_default();
            let bare = series.split('{').next().unwrap_or_default();
            bare == name
                && labels.iter().all(|(label, value)| series.contains(&format!("{label}=\"{value}\"")))
        };
        let line =
            self.0.lines().find(is_it).unwrap_or_else(|| panic!("no {name} {labels:?} in\n{}", self.0));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    }
}

#[test]
fn counters_exist_from_the_start_and_durations_are_histograms() {
    let server = Server::start();
    let metrics = Metrics::of(&server);
    for (name, labels) in [
        ("packhouse_blobs_corrupt_total", vec![]),
        ("packhouse_blobs_collected_total", vec![]),
        ("packhouse_gc_runs_total", vec![("outcome", "failed")]),
        ("packhouse_plugin_failures_total", vec![("plugin", "npm"), ("kind", "trap")]),
        (
            "packhouse_plugin_calls_total",
            vec![("plugin", "maven"), ("function", "handle"), ("outcome", "deadline")],
        ),
        (
            "packhouse_requests_total",
            vec![("host", "packages"), ("format", "docker"), ("method", "PUT"), ("status", "5xx")],
        ),
        ("packhouse_requests_total", vec![("host", "api"), ("method", "DELETE"), ("status", "5xx")]),
        ("packhouse_api_calls_total", vec![("route", "/v1/tokens"), ("method", "POST"), ("status", "500")]),
    ] {
        assert_eq!(metrics.value(name, &labels), 0.0, "{name} {labels:?}");
    }
    let summaries: Vec<_> = metrics.0.lines().filter(|line| line.ends_with(" summary")).collect();
    assert!(summaries.is_empty(), "{summaries:?}");

    let repository = MavenRepository::create(&server, "measured");
    repository.put(FILE, "hello").expect(201);
    repository.get(FILE).expect(200);
    repository.client.send(Request::new("BREW", &repository.path(FILE)));
    server.anonymous().get("/nowhere").expect(401);
    let metrics = Metrics::of(&server);
    let requests = |format: &str, method: &str, status: &str| {
        let labels = [("host", "packages"), ("format", format), ("method", method), ("status", status)];
        metrics.value("packhouse_requests_total", &labels)
    };
    assert_eq!((requests("maven", "PUT", "2xx"), requests("maven", "GET", "2xx")), (1.0, 1.0));
    assert_eq!((requests("maven", "other", "4xx"), requests("none", "GET", "4xx")), (1.0, 1.0));
    assert!(!metrics.0.contains("BREW"), "clients cannot create labels");
    let got = [("host", "packages"), ("format", "maven"), ("method", "GET")];
    assert_eq!(metrics.value("packhouse_request_seconds_count", &got), 1.0);
    let within = [got[0], got[1], got[2], ("le", "60")];
    assert_eq!(metrics.value("packhouse_request_seconds_bucket", &within), 1.0);
    for name in
        ["packhouse_plugin_call_seconds", "packhouse_plugin_memory_bytes", "packhouse_store_batch_commits"]
    {
        assert!(metrics.0.contains(&format!("# TYPE {name} histogram")), "{name}\n{}", metrics.0);
    }
}

#[test]
fn stuck_requests_are_visible_in_the_metrics() {
    let server = Server::with().env("PACKHOUSE_GC_INTERVAL_MS", "200").start();
    let repository = MavenRepository::create(&server, "hanging");
    let packages = [("host", "packages")];
    let in_flight = || Metrics::of(&server).value("packhouse_requests_in_flight", &packages);
    eventually("no request is in flight", || (in_flight() == 0.0).then_some(()));
    let head = Request::new("PUT", &repository.path(FILE))
        .header("Content-Length", "10")
        .header("Expect", "100-continue");
    let mut connection = Connection::open(server.packages()).unwrap();
    connection.send(&repository.client.head_bytes(head)).unwrap();
    assert_eq!(connection.read_head().unwrap().status, 100);
    eventually("the stalled upload and its age are visible", || {
        let metrics = Metrics::of(&server);
        let oldest = metrics.value("packhouse_requests_oldest_seconds", &packages);
        (metrics.value("packhouse_requests_in_flight", &packages) == 1.0 && oldest > 0.5).then_some(())
    });
    connection.send(b"0123456789").unwrap();
    connection.read_response(false).unwrap().expect(201);
    eventually("the upload has ended", || (in_flight() == 0.0).then_some(()));

    eventually("garbage was collected", || {
        (Metrics::of(&server).0.contains("packhouse_gc_last_success_timestamp_seconds")).then_some(())
    });
    let metrics = Metrics::of(&server);
    assert!(metrics.value("packhouse_gc_runs_total", &[("outcome", "ok")]) >= 1.0);
    assert!(metrics.value("packhouse_gc_seconds_count", &[]) >= 1.0);
    for (name, labels) in [
        ("packhouse_ready", vec![]),
        ("packhouse_build_info", vec![("version", env!("CARGO_PKG_VERSION"))]),
        ("packhouse_plugin_calls_max", vec![("plugin", "npm")]),
        ("packhouse_database_connections", vec![("state", "idle")]),
        ("packhouse_database_connections_max", vec![]),
        ("packhouse_password_hashes_max", vec![]),
        ("packhouse_password_hashes_waiting_max", vec![]),
        ("packhouse_disk_available_bytes", vec![]),
        ("packhouse_disk_size_bytes", vec![]),
        ("process_resident_memory_bytes", vec![]),
        ("process_open_fds", vec![]),
        ("process_max_fds", vec![]),
        ("process_start_time_seconds", vec![]),
        ("process_threads", vec![]),
    ] {
        assert!(metrics.value(name, &labels) > 0.0, "{name}");
    }
    for (name, labels) in [
        ("packhouse_degraded", vec![("what", "blobs")]),
        ("packhouse_degraded", vec![("what", "database")]),
        ("packhouse_plugin_calls_in_flight", vec![("plugin", "maven")]),
        ("packhouse_plugin_calls_waiting", vec![("plugin", "maven")]),
        ("packhouse_store_commits_waiting", vec![]),
        ("packhouse_store_commits_oldest_seconds", vec![]),
        ("packhouse_password_hashes_waiting", vec![]),
    ] {
        assert_eq!(metrics.value(name, &labels), 0.0, "{name}");
    }
    assert!(metrics.value("process_cpu_seconds_total", &[]) > 0.0);
    assert!(metrics.value("packhouse_readiness_age_seconds", &[]) < 30.0);
}

#[test]
fn the_output_of_a_failing_plugin_is_in_the_log() {
    let folder = plugins(&["guests/outspoken.wasm"]);
    let server = Server::with()
        .env("PACKHOUSE_PLUGINS_DIR", folder.path().to_str().unwrap())
        .env("PACKHOUSE_PLUGINS_OUTSPOKEN_WASI", "true")
        .start();
    let api = Api::sign_in(&server);
    let made = json!({"name": "words", "format": "outspoken", "kind": "hosted"});
    let repository = api.post("/v1/repositories", &made).expect(201).field("id");
    let token = api.create_token(&[&repository], &["read"], None);
    let client = server.anonymous().basic(OWNER, &token.secret);
    let assert_logged = |path: &str, status: u16, words: &[&str], times: usize| {
        let answer = client.get(&format!("/repositories/words/{path}"));
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        let id = answer.header("x-request-id").unwrap().to_owned();
        assert!(words.iter().all(|word| !answer.text().contains(word)), "the text is only in the log");
        let log = server.log();
        let lines = log.lines().filter(|line| line.contains(&id));
        let of_it: Vec<&str> = lines.filter(|line| words.iter().all(|word| line.contains(word))).collect();
        assert_eq!(of_it.len(), times, "{path}: {words:?} under {id}: {log}");
    };
    assert_logged("panic", 500, &["outspoken/src/lib.rs", "the shelf is empty"], 1);
    // `route` has no import for logging, so the plugin's text is part of the failure. The server
    // logs the failure twice: in the runtime and for the request.
    assert_logged("route", 500, &["outspoken/src/lib.rs", "no such aisle"], 2);
    assert_logged("print/0", 204, &["plugin output", "KeyError: 'shelf'"], 1);
    assert_logged("print/10", 204, &["Traceback", "KeyError: 'shelf'"], 1);
    assert_logged("print/1000", 204, &["Traceback", "bytes more"], 1);
}
