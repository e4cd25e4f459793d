//! Servers on one PostgreSQL that answer from memory. No server accepts a token that another server
//! revoked. This also holds for a server that was stopped, was cut off or received no notices. No
//! server queries the database while nothing changes (docs/explanation/leases.md).

use std::io::BufRead as _;
use std::process::Command;
use std::time::{Duration, Instant};

use packhouse_store::{NewToken, Scope, Store, StoreConfig, TokenRow};
use packhouse_tests::database::Postgres;
use packhouse_tests::deaf_wire::DeafWire;
use packhouse_tests::fault_proxy::{FaultProxy, Mode};
use packhouse_tests::http::{Connection, basic};
use packhouse_tests::proxy::METADATA;
use packhouse_tests::repository::FormatRepository;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, MavenRepository, Request, Server, ServerBuilder, digests};
use serde_json::json;
use sha2::{Digest as _, Sha256};

const FILE: &str = "org/example/a/1.0/a-1.0.jar";
/// Number of tokens that one server revokes while the other server is stopped. The test tries each
/// token once afterwards.
const TOKENS: usize = 40;
const TRIES: usize = 5;
const LEASE: Duration = Duration::from_secs(1);
/// Extra time for a machine that has other work.
const SLACK: Duration = Duration::from_secs(5);

struct World {
    postgres: Postgres,
    data: tempfile::TempDir,
    /// The server that revokes and publishes.
    one: Server,
    repository: MavenRepository,
}

impl World {
    fn new() -> World {
        let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
        let data = tempfile::tempdir().unwrap();
        let one = start(data.path(), &postgres.url());
        let repository = MavenRepository::create(&one, "shared");
        repository.put(FILE, "hello").expect(201);
        World { postgres, data, one, repository }
    }

    /// Starts another server, which connects to the database by this URL.
    fn another(&self, url: &str) -> Server {
        start(self.data.path(), url)
    }

    /// Tokens made directly in the database, each with its secret.
    fn tokens(&self, name: &str, count: usize) -> Vec<(TokenRow, String)> {
        let secrets: Vec<String> = (0..count).map(|number| format!("secret {name} {number}")).collect();
        let mut config = StoreConfig::new(self.data.path());
        config.database_url = self.postgres.url();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let store = Store::open(config).await.unwrap();
            let owner = store.members_by_email(OWNER).await.unwrap().remove(0);
            let repository = store.list_repositories(owner.organization, None, 1).await.unwrap().remove(0);
            let mut made = Vec::new();
            for secret in secrets {
                let token = NewToken {
                    secret_sha256: Sha256::digest(secret.as_bytes()).into(),
                    name: name.to_owned(),
                    scope: Scope { read: true, write: false },
                    format: "generic".to_owned(),
                    owner: Some(owner.id),
                    created_by: OWNER.to_owned(),
                    backing: None,
                    backing_repository: None,
                    repositories: vec![repository.id],
                    expires_at: None,
                    packages: None,
                };
                made.push((store.create_token(owner.organization, token, None).await.unwrap(), secret));
            }
            store.close().await;
            made
        })
    }

    /// Sends two requests with each token, so that the server then answers from memory.
    fn remember(&self, server: &Server, tokens: &[(TokenRow, String)]) {
        for _ in 0..2 {
            for (_, secret) in tokens {
                self.ask(server, secret).unwrap().expect(200);
            }
        }
    }

    fn ask(&self, server: &Server, secret: &str) -> std::io::Result<packhouse_tests::http::Response> {
        let request = Request::new("GET", &self.repository.path(FILE));
        Client::new(server.packages()).basic(OWNER, secret).try_send(request)
    }

    /// Revokes all tokens, several at a time; returns the time of the slowest call.
    fn revoke(&self, tokens: &[(TokenRow, String)]) -> Duration {
        let api = Api::sign_in(&self.one);
        let slowest = std::sync::Mutex::new(Duration::ZERO);
        std::thread::scope(|scope| {
            for some in tokens.chunks(tokens.len().div_ceil(8)) {
                let (api, slowest) = (&api, &slowest);
                scope.spawn(move || {
                    for (token, _) in some {
                        let begun = Instant::now();
                        api.call("DELETE", &format!("/v1/tokens/{}", token.id)).expect(204);
                        let mut slowest = slowest.lock().unwrap();
                        *slowest = (*slowest).max(begun.elapsed());
                    }
                });
            }
        });
        slowest.into_inner().unwrap()
    }

    fn statements(&self, server: &Server) -> u64 {
        metric(server, "packhouse_store_statements_total")
    }
}

fn start(data: &std::path::Path, url: &str) -> Server {
    builder(data, url).start()
}

fn builder(data: &std::path::Path, url: &str) -> ServerBuilder {
    Server::with().data(data).arg("--database-url").arg(url)
}

fn metric(server: &Server, name: &str) -> u64 {
    let text = Client::new(server.api()).get("/metrics").expect(200).body;
    let line = text.lines().map(Result::unwrap).find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("no {name}"));
    line.rsplit(' ').next().unwrap().parse::<f64>().unwrap() as u64
}

fn signal(server: &Server, name: &str) {
    assert!(Command::new("kill").args([name, &server.pid().to_string()]).status().unwrap().success());
}

fn wait_for_lease(world: &World, server: &Server) {
    eventually("a lease", || {
        let _ = world.ask(server, &world.repository.token.secret);
        (metric(server, "packhouse_lease_held") == 1).then_some(())
    });
}

/// Number of rounds: few by default, many with `PACKHOUSE_TEST_LONG`.
fn rounds() -> usize {
    if packhouse_tests::long() { 60 } else { 3 }
}

#[test]
fn a_stopped_server_accepts_no_token_that_was_revoked_meanwhile() {
    let world = &World::new();
    let two = world.another(&world.postgres.url());
    let mut tried = 0;
    for round in 0..rounds() {
        wait_for_lease(world, &two);
        let tokens = world.tokens(&format!("round {round}"), TOKENS);
        world.remember(&two, &tokens);
        signal(&two, "-STOP");
        let slowest = world.revoke(&tokens);
        // The test sends these requests while the server is stopped, so that they wait in the
        // server's socket.
        let mut sent: Vec<Connection> = tokens
            .iter()
            .map(|(_, secret)| {
                let mut connection = Connection::open(two.packages()).unwrap();
                let request = Request::new("GET", &world.repository.path(FILE));
                let request = request.header("Authorization", &basic(OWNER, secret));
                connection.send(&request.head("localhost")).unwrap();
                connection
            })
            .collect();
        signal(&two, "-CONT");
        for connection in &mut sent {
            connection.read_response(false).unwrap().expect(401);
        }
        for (_, secret) in &tokens {
            for _ in 1..TRIES {
                world.ask(&two, secret).unwrap().expect(401);
            }
        }
        tried += TOKENS * TRIES;
        assert!(slowest < LEASE * 2 + SLACK, "{slowest:?}");
    }
    println!("{tried} attempts with credentials that were revoked while the server was stopped, 0 accepted");
}

#[test]
fn a_disconnected_server_accepts_no_token_that_was_revoked_meanwhile() {
    let world = &World::new();
    let proxy = FaultProxy::start(([127, 0, 0, 1], world.postgres.port()).into());
    let two = world.another(&world.postgres.url_through(proxy.address().port()));
    let modes = [Mode::Hang, Mode::CutAfter(0)].into_iter().cycle();
    for (round, mode) in modes.take(if packhouse_tests::long() { 20 } else { 2 }).enumerate() {
        wait_for_lease(world, &two);
        let tokens = world.tokens(&format!("cut {round}"), TOKENS);
        world.remember(&two, &tokens);
        proxy.set(mode);
        let slowest = world.revoke(&tokens);
        // A server that cannot query the database answers with an error. Each request waits for a
        // database connection, so the test sends a few at a time.
        std::thread::scope(|scope| {
            for (_, secret) in &tokens[..3] {
                let two = &two;
                scope.spawn(move || world.ask(two, secret).unwrap().expect(503));
            }
        });
        proxy.set(Mode::Pass);
        eventually("it answers again", || {
            let status = world.ask(&two, &world.repository.token.secret).ok()?.status;
            (status == 200).then_some(())
        });
        for (_, secret) in &tokens {
            world.ask(&two, secret).unwrap().expect(401);
        }
        assert!(slowest < LEASE * 2 + SLACK, "{slowest:?}");
    }
}

#[test]
fn a_server_without_notices_accepts_no_revoked_token() {
    let world = &World::new();
    let wire = DeafWire::to(world.postgres.port());
    let two = world.another(&format!("{}?sslmode=disable", world.postgres.url_through(wire.port())));
    for round in 0..rounds() {
        wait_for_lease(world, &two);
        let tokens = world.tokens(&format!("deaf {round}"), TOKENS);
        world.remember(&two, &tokens);
        wire.set(true);
        let slowest = world.revoke(&tokens);
        for (_, secret) in &tokens {
            world.ask(&two, secret).unwrap().expect(401);
        }
        wire.set(false);
        assert!(slowest < LEASE * 2 + SLACK, "{slowest:?}");
    }
    assert!(wire.dropped() > 0, "no notice was dropped");
}

/// Size of a file that is too large for the server to cache its bytes in memory with the record.
const LARGE: usize = 100_000;

#[test]
fn a_read_before_the_notice_of_a_deletion_is_complete_or_404() {
    let world = &World::new();
    let wire = DeafWire::to(world.postgres.port());
    let url = format!("{}?sslmode=disable", world.postgres.url_through(wire.port()));
    // One server caches its answers; the second server calls the plugin for each request.
    let deaf = [
        world.another(&url),
        builder(world.data.path(), &url).env("PACKHOUSE_RESPONSES_CACHE_BYTES", "0").start(),
    ];
    let api = Api::sign_in(&world.one);
    for round in 0..rounds() {
        deaf.iter().for_each(|server| wait_for_lease(world, server));
        let file = format!("org/example/gone/{round}/gone-{round}.jar");
        world.repository.put(&file, vec![7; LARGE]).expect(201);
        let clients = deaf
            .each_ref()
            .map(|server| Client::new(server.packages()).basic(OWNER, &world.repository.token.secret));
        let read = |client: &Client| client.get(&world.repository.path(&file));
        clients.iter().for_each(|client| drop(read(client).expect(200)));
        wire.set(true);
        let version =
            format!("/v1/repositories/{}/packages/org.example%3Agone/versions/{round}", world.repository.id);
        std::thread::scope(|scope| {
            // The deletion waits for the leases of the servers that receive no notices.
            let deleting = scope.spawn(|| api.call("DELETE", &version).expect(204));
            let mut ended = false;
            while !ended {
                ended = deleting.is_finished();
                for found in clients.iter().map(read) {
                    assert!([200, 404].contains(&found.status), "{}: {}", found.status, found.text());
                    if ended {
                        found.expect(404);
                    }
                }
            }
        });
        wire.set(false);
    }
    assert!(wire.dropped() > 0, "no notice was dropped");
}

/// Two clients publish the same file through two servers. A server that finds the file already
/// published may answer only when every server has it, because its client also relies on the
/// answer.
#[test]
fn a_repeated_publish_is_answered_once_a_server_without_notices_has_it() {
    let world = &World::new();
    let wire = DeafWire::to(world.postgres.port());
    let deaf = world.another(&format!("{}?sslmode=disable", world.postgres.url_through(wire.port())));
    let third = world.another(&world.postgres.url());
    let settings = json!({"redeploy": "identical"});
    let repository = FormatRepository::hosted(&world.one, "maven", "twice", &settings);
    let [reader, other] = [&deaf, &third].map(|server| repository.on(server));
    for round in 0..rounds() {
        wait_for_lease(world, &deaf);
        let file = &format!("org/example/twice/{round}/twice-{round}.jar");
        // The reader's server has the 404 in its cache now.
        reader.get(file).expect(404);
        reader.get(file).expect(404);
        wire.set(true);
        std::thread::scope(|scope| {
            for publisher in [&repository, &other] {
                let reader = &reader;
                scope.spawn(move || {
                    publisher.put(file, "the same").expect(201);
                    reader.get(file).expect(200);
                });
            }
        });
        wire.set(false);
    }
    assert!(wire.dropped() > 0, "no notice was dropped");
}

/// A publish that changes nothing needs no further notice to the other servers.
#[test]
fn a_publish_without_a_change_is_not_announced() {
    let world = &World::new();
    let two = world.another(&world.postgres.url());
    wait_for_lease(world, &two);
    wait_for_lease(world, &world.one);
    let sent_notices = || metric(&world.one, "packhouse_lease_notices_total{kind=\"sent\"}");
    for number in 0..5 {
        let before = sent_notices();
        let file = format!("org/example/summed/{number}/summed-{number}.jar");
        let sum = digests::sha1(b"summed");
        let put_sum = || world.repository.put(&format!("{file}.sha1"), sum.clone()).expect(201);
        world.repository.put(&file, "summed").expect(201);
        put_sum();
        let published = sent_notices();
        assert!(published > before, "{before}, {published}");
        put_sum();
        world.repository.put("org/example/summed/maven-metadata.xml.sha1", sum.clone()).expect(201);
        assert_eq!(sent_notices(), published, "{number}");
    }
}

#[test]
fn a_publish_is_visible_on_all_servers_and_reads_run_no_statement() {
    let world = &World::new();
    let others = [world.another(&world.postgres.url()), world.another(&world.postgres.url())];
    let secret = &world.repository.token.secret;
    for server in others.iter().chain([&world.one]) {
        wait_for_lease(world, server);
        world.ask(server, secret).unwrap().expect(200);
    }
    for number in 0..30 {
        let path = format!("org/example/a/{number}/a-{number}.jar");
        world.repository.put(&path, number.to_string()).expect(201);
        for server in &others {
            let client = Client::new(server.packages()).basic(OWNER, secret);
            let found = client.get(&world.repository.path(&path)).expect(200);
            assert_eq!(found.text(), number.to_string());
        }
    }
    for server in others.iter().chain([&world.one]) {
        world.ask(server, secret).unwrap().expect(200);
        let (before, begun) = (world.statements(server), Instant::now());
        for _ in 0..500 {
            world.ask(server, secret).unwrap().expect(200);
        }
        let ran = world.statements(server) - before;
        // The server reads the list of organizations once a second; the limit allows for these
        // statements.
        let own = begun.elapsed().as_secs() + 20;
        assert!(ran <= own, "{ran} statements for 500 requests");
    }
}

#[test]
fn a_dead_server_is_waited_for_once() {
    let world = &World::new();
    let mut two = world.another(&world.postgres.url());
    wait_for_lease(world, &two);
    two.kill9();
    let begun = Instant::now();
    world.repository.put("org/example/a/2.0/a-2.0.jar", "x").expect(201);
    let first = begun.elapsed();
    assert!(first < LEASE * 2 + SLACK, "{first:?}");
    eventually("its row is gone", || {
        wait_for_lease(world, &world.one);
        (metric(&world.one, "packhouse_lease_holders") == 1).then_some(())
    });
}

/// Clients of two servers request the same new files of an upstream at the same time. The upstream
/// answers quickly and gets one request for each file.
#[test]
fn a_proxy_fetches_once_for_all_servers() {
    const FILES: usize = 12;
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let (data, upstream) = (tempfile::tempdir().unwrap(), Upstream::start());
    let start = || {
        let builder = Server::with().data(data.path()).arg("--database-url").arg(&postgres.url());
        builder.env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
    };
    let servers = [start(), start()];
    let api = Api::sign_in(&servers[0]);
    let id = api.create_proxy("proxy", "maven", &upstream.url(), &json!({}));
    let token = api.create_token(&[&id], &["read"], None);
    let client = |server: &Server| Client::new(server.packages()).basic(OWNER, &token.secret);
    eventually("two servers that know of one another", || {
        let two = |server: &Server| {
            let _ = client(server).get("/repositories/proxy/nothing");
            metric(server, "packhouse_lease_holders") == 2
        };
        // Each attempt queries both servers.
        let known: Vec<bool> = servers.iter().map(two).collect();
        known.iter().all(|known| *known).then_some(())
    });
    for number in 0..FILES {
        let (path, text) = (format!("org/example/n{number}/1/n{number}-1.jar"), format!("file {number}"));
        upstream.on(&format!("/{path}"), Answer::ok(text.clone()));
        upstream.on(&format!("/{path}.sha1"), Answer::ok(digests::sha1(text.as_bytes())));
        std::thread::scope(|scope| {
            for attempt in 0..8 {
                let (client, path, text) = (client(&servers[attempt % 2]), &path, &text);
                scope.spawn(move || {
                    assert_eq!(client.get(&format!("/repositories/proxy/{path}")).expect(200).text(), *text);
                });
            }
        });
    }
    let counts: Vec<usize> = (0..FILES)
        .map(|number| upstream.count(&format!("/org/example/n{number}/1/n{number}-1.jar")))
        .collect();
    assert!(counts.iter().all(|count| *count >= 1), "{counts:?}");
    // Two servers that begin in the same millisecond may both query the upstream.
    assert!(counts.iter().sum::<usize>() <= FILES + 2, "{counts:?}");
}

/// An upstream asks for a pause. During the pause the server sends it no requests and serves cached
/// files.
#[test]
fn cached_files_are_served_while_the_upstream_asks_for_a_pause() {
    let settings = json!({"metadata_ttl_s": 0});
    let world = packhouse_tests::proxy::World::new(&settings);
    world.offer_metadata(&["1"], |answer| answer);
    let first = world.get(METADATA).expect(200).text();
    let target = format!("/{METADATA}");
    world.upstream.on(&target, Answer::new(429, "slowly").header("Retry-After", "60"));
    let before = world.upstream.count(&target);
    for _ in 0..5 {
        assert_eq!(world.get(METADATA).expect(200).text(), first);
    }
    assert_eq!(world.upstream.count(&target), before + 1, "no request before the pause ends");
    assert!(metric(&world.server, "packhouse_upstream_throttled_total") >= 1);
    assert!(world.server.log().contains("the upstream asks to wait"));
}
