//! Stopping. The server reports not ready before it stops listening. It stops in time even if
//! everything hangs.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use packhouse_tests::database::Postgres;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::{Answer, Gate, Upstream};
use packhouse_tests::{Api, Client, Connection, MavenRepository, Request, Server, payload};
use serde_json::json;

const FILE: &str = "org/example/a/1.0/a-1.0.jar";

#[test]
fn a_stopping_server_reports_not_ready_and_serves_until_a_second_signal() {
    let mut server = Server::with().env("PACKHOUSE_LIMITS_DRAIN_MS", "600000").start();
    let repository = MavenRepository::create(&server, "drained");
    repository.put(FILE, "here").expect(201);
    server.terminate();
    let api = Client::new(server.api());
    let answer = eventually("the server is not ready", || {
        let answer = api.get("/readyz");
        (answer.status == 503).then_some(answer)
    });
    assert_eq!(answer.field("error"), "server_stopping");
    api.get("/livez").expect(200);
    for _ in 0..10 {
        assert_eq!(repository.get(FILE).expect(200).text(), "here", "new connections are served");
    }
    let keep_alive = Request::new("GET", &repository.path(FILE)).header("Connection", "keep-alive");
    let mut connection = Connection::open(server.packages()).unwrap();
    connection.send(&repository.client.head_bytes(keep_alive)).unwrap();
    let answer = connection.read_response(false).unwrap().expect(200);
    assert_eq!(answer.header("connection"), Some("close"), "a client with keep-alive reconnects");
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
}

/// Default behaviour, without a setting. No person waits at a terminal, so the server waits for
/// load balancers.
#[test]
fn a_server_reports_not_ready_before_it_stops_by_default() {
    let unset = ["env", "-u", "PACKHOUSE_LIMITS_DRAIN_MS"];
    let mut server = Server::with().wrapped_in(&unset).start();
    server.terminate();
    assert!(server.wait().success(), "{}", server.log());
    assert!(server.log().contains("reporting not ready, still serving"), "{}", server.log());
}

/// A rolling restart behind a load balancer. The balancer checks readiness at intervals, forwards
/// requests while the server is ready, and never retries.
#[test]
fn a_balancer_without_retries_loses_nothing_in_a_rolling_restart() {
    let mut server = Server::with().env("PACKHOUSE_LIMITS_DRAIN_MS", "3000").start();
    let repository = MavenRepository::create(&server, "balanced");
    repository.put(FILE, "here").expect(201);
    let (ready, served) = (AtomicBool::new(true), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let (repository, ready, served) = (&repository, &ready, &served);
            scope.spawn(move || {
                let mut reusable: Option<Connection> = None;
                while ready.load(Ordering::SeqCst) {
                    let request =
                        Request::new("GET", &repository.path(FILE)).header("Connection", "keep-alive");
                    let head = repository.client.head_bytes(request);
                    let address = repository.client.address();
                    let mut connection =
                        reusable.take().unwrap_or_else(|| Connection::open(address).unwrap());
                    connection.send(&head).expect("the request is accepted");
                    let answer =
                        connection.read_response(false).expect("each request is answered").expect(200);
                    if answer.header("connection") != Some("close") {
                        reusable = Some(connection);
                    }
                    served.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        eventually("all clients are running", || (served.load(Ordering::Relaxed) > 200).then_some(()));
        server.terminate();
        let api = Client::new(server.api());
        loop {
            // The usual interval of a load balancer.
            std::thread::sleep(Duration::from_millis(200));
            let answer = api.try_send(Request::new("GET", "/readyz"));
            if answer.map_or(true, |answer| answer.status != 200) {
                ready.store(false, Ordering::SeqCst);
                break;
            }
        }
    });
    assert!(server.wait().success(), "{}", server.log());
}

/// Everything hangs at once: the database and an upstream do not answer, one client does not read,
/// and another does not send.
#[test]
fn a_stop_finishes_in_time_even_if_everything_hangs() {
    const SHUTDOWN: Duration = Duration::from_secs(4);
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let mut server = Server::with()
        .arg("--database-url")
        .arg(&postgres.url())
        .env("PACKHOUSE_LIMITS_SHUTDOWN_MS", &SHUTDOWN.as_millis().to_string())
        .env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8")
        .env("PACKHOUSE_UPSTREAM_IDLE_MS", "600000")
        .start();
    let repository = MavenRepository::create(&server, "hanging");
    repository.put(FILE, payload::bytes(1, 16 * 1024 * 1024)).expect(201);
    let (upstream, gate) = (Upstream::start(), Gate::new());
    upstream.on(&format!("/{FILE}"), Answer::ok("late").silent(&gate));
    let api = Api::sign_in(&server);
    let proxy = api.create_proxy("proxy", "maven", &upstream.url(), &json!({}));
    let token = api.create_token(&[&proxy], &["read"], None);
    let of_proxy = server.anonymous().basic(OWNER, &token.secret);

    let send = |client: &Client, request: Request, more: &[u8]| {
        let mut connection = Connection::open(server.packages()).unwrap();
        connection.send(&client.head_bytes(request)).unwrap();
        connection.send(more).unwrap();
        connection
    };
    let of_upstream = send(&of_proxy, Request::new("GET", &format!("/repositories/proxy/{FILE}")), b"");
    eventually("the upstream has a request", || (!upstream.requests().is_empty()).then_some(()));
    let mut takes_nothing = send(&repository.client, Request::new("GET", &repository.path(FILE)), b"");
    takes_nothing.read_head().unwrap().expect(200);
    let half =
        Request::new("PUT", &repository.path("org/example/b/1.0/b-1.0.jar")).header("Content-Length", "9");
    let sends_nothing = send(&repository.client, half, b"half");
    postgres.freeze();
    let of_database = send(&repository.client, Request::new("GET", &repository.path(FILE)), b"");
    let whole =
        Request::new("PUT", &repository.path("org/example/c/1.0/c-1.0.jar")).header("Content-Length", "5");
    let to_database = send(&repository.client, whole, b"whole");

    server.terminate();
    let start = Instant::now();
    let status = server.wait();
    let took = start.elapsed();
    println!("a stop with everything hanging took {took:?}");
    assert!(status.success(), "{}", server.log());
    assert!(took < SHUTDOWN + Duration::from_secs(1), "{took:?}\n{}", server.log());
    drop((of_upstream, takes_nothing, sends_nothing, of_database, to_database));
    postgres.thaw();
    gate.open();
    drop(postgres);
}

#[test]
fn a_stop_with_no_request_in_flight_is_quick() {
    let mut server = Server::start();
    let repository = MavenRepository::create(&server, "quick");
    repository.put(FILE, "here").expect(201);
    // One connection is idle after a request, and another never sent a request.
    let keep_alive = Request::new("GET", &repository.path(FILE)).header("Connection", "keep-alive");
    let mut idle = Connection::open(server.packages()).unwrap();
    idle.send(&repository.client.head_bytes(keep_alive)).unwrap();
    idle.read_response(false).unwrap().expect(200);
    let silent = Connection::open(server.api()).unwrap();
    server.terminate();
    let start = Instant::now();
    assert!(server.wait().success(), "{}", server.log());
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    drop((idle, silent));
}
