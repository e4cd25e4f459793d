//! Storage that is unreachable, hangs, fails, lacks an object or is full, under two servers on one
//! PostgreSQL and one S3. The servers still serve files in the database. For an unavailable file
//! they answer with an error, not with the beginning of a file. No acknowledged file is lost, and
//! the servers recover.

use packhouse_tests::database::{self, Postgres};
use packhouse_tests::fault_proxy::{FaultProxy, Mode};
use packhouse_tests::s3::{self, S3};
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::{
    Api, Client, Connection, MavenRepository, Request, Response, Server, digests, payload, skip,
};
use std::cell::RefCell;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit of the servers for the next byte from S3. Writing a part may take twice as long.
const IDLE: Duration = Duration::from_secs(1);
/// Extra time for a busy machine.
const SLACK: Duration = Duration::from_secs(8);
const SMALL: usize = 2_000;
const LARGE: usize = 1_000_000;

/// Two servers, their database and S3, and all files that they acknowledged.
struct Pair {
    postgres: Postgres,
    s3: S3,
    proxy: FaultProxy,
    servers: [Server; 2],
    clients: [Client; 2],
    repository: MavenRepository,
    /// Path and SHA-256.
    acknowledged: RefCell<Vec<(String, String)>>,
    _data: tempfile::TempDir,
}

impl Pair {
    fn start() -> Option<Self> {
        let Some(s3) = S3::start() else {
            skip("S3 that is away", "no weed");
            return None;
        };
        let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
        let proxy = FaultProxy::start(s3.endpoint());
        let data = tempfile::tempdir().unwrap();
        let start = || {
            Server::with()
                .data(data.path())
                .env("PACKHOUSE_DATABASE_URL", &postgres.url())
                .env("PACKHOUSE_BLOBS", &s3::address(proxy.address(), "any", "any"))
                .env("PACKHOUSE_BLOBS_IDLE_MS", &IDLE.as_millis().to_string())
                .env("PACKHOUSE_READINESS_INTERVAL_MS", "300")
                .start()
        };
        let servers = [start(), start()];
        let repository = MavenRepository::create(&servers[0], "away");
        let clients = [0, 1]
            .map(|at: usize| Client::new(servers[at].packages()).basic(OWNER, &repository.token.secret));
        let acknowledged = RefCell::default();
        Some(Self { postgres, s3, proxy, servers, clients, repository, acknowledged, _data: data })
    }

    fn path(&self, name: &str) -> String {
        self.repository.path(&format!("org/example/{name}/1.0/{name}-1.0.jar"))
    }

    /// Publishes this many bytes under a name; records the file if the server acknowledged it.
    fn publish(&self, server: usize, name: &str, length: usize) -> Response {
        let body = payload::bytes(length as u64 + server as u64, length);
        let sha256 = digests::sha256(&body);
        let answer = self.clients[server].put(&self.path(name), body);
        if answer.status == 201 {
            self.acknowledged.borrow_mut().push((self.path(name), sha256));
        }
        answer
    }

    /// Asserts that all acknowledged files can be read from both servers with their published
    /// digest.
    fn verify(&self) {
        for (path, sha256) in self.acknowledged.borrow().iter() {
            for (client, server) in self.clients.iter().zip(&self.servers) {
                let answer = client.get(path);
                assert_eq!(answer.status, 200, "{path}: {}\n{}", answer.text(), server.log());
                assert_eq!(&digests::sha256(&answer.body), sha256, "{path}");
            }
        }
    }

    /// Requests `/readyz` from both servers. Returns the longer duration, or `None` if an answer
    /// has another status or word. Each server must answer within a second even if something hangs.
    fn readiness(&self, status: u16, word: &str) -> Option<Duration> {
        let mut longest = Duration::ZERO;
        for server in &self.servers {
            for address in [server.api(), server.packages()] {
                let began = Instant::now();
                let answer = Client::new(address).get("/readyz");
                longest = longest.max(began.elapsed());
                assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
                if answer.status != status || answer.field("status") != word {
                    return None;
                }
                assert_eq!(answer.header("retry-after"), (status == 503).then_some("5"));
                if address == server.packages() {
                    assert_eq!(answer.json().as_object().unwrap().len(), 1, "{}", answer.text());
                }
            }
            Client::new(server.packages()).get("/livez").expect(200);
        }
        Some(longest)
    }

    /// Checks the guarantees while the servers cannot use S3, for whatever reason.
    fn check_without_s3(&self, round: &str) {
        eventually("both are degraded", || self.readiness(200, "degraded"));
        let report = Client::new(self.servers[0].api()).get("/readyz").expect(200).json();
        let problem = &report["degraded"][0];
        assert_eq!(problem["what"], "blobs", "{report}");
        assert!(problem["since"].as_i64().unwrap() > 0 && !problem["detail"].as_str().unwrap().is_empty());
        assert!(!report.to_string().contains("bucket"), "it names no addresses: {report}");

        let mut times = Vec::new();
        for server in [0, 1] {
            let client = &self.clients[server];
            assert_eq!(client.get(&self.path("small")).expect(200).body.len(), SMALL);
            let began = Instant::now();
            unavailable(&client.get(&self.path("large")));
            times.push(("read", began.elapsed()));
            client.send(Request::new("HEAD", &self.path("large"))).expect(200);
            let range = Request::new("GET", &self.path("large")).header("Range", "bytes=5-500000");
            unavailable(&client.send(range));

            let began = Instant::now();
            unavailable(&self.publish(server, &format!("refused-{round}-{server}"), LARGE));
            times.push(("publish", began.elapsed()));
            self.publish(server, &format!("meanwhile-{round}-{server}"), SMALL).expect(201);
            let metrics = Client::new(self.servers[server].api()).get("/metrics").expect(200).text();
            assert!(metrics.contains("packhouse_degraded{what=\"blobs\"} 1"), "{metrics}");
            assert!(metrics.contains("packhouse_ready 1"), "{metrics}");
        }
        for (what, took) in &times {
            let limit = if *what == "read" { IDLE } else { 2 * IDLE } + SLACK;
            assert!(*took < limit, "a {what} took {took:?}");
        }
        println!("{round}: {times:?}, readyz {:?}", self.readiness(200, "degraded"));
    }

    fn check_recovered(&self, round: &str) {
        eventually("both are ready", || self.readiness(200, "ready"));
        for server in [0, 1] {
            self.publish(server, &format!("after-{round}-{server}"), LARGE).expect(201);
            // A refused publish left nothing behind, so the same name is still free.
            self.publish(server, &format!("refused-{round}-{server}"), LARGE).expect(201);
        }
        self.verify();
    }
}

#[track_caller]
fn unavailable(answer: &Response) {
    assert_eq!(answer.status, 503, "{:?}\n{}", answer.headers, answer.text());
    assert_eq!(answer.header("retry-after"), Some("5"));
    assert_eq!(answer.field("error"), "ddb_unavailable");
}

#[test]
fn files_in_the_database_are_served_while_s3_fails() {
    let Some(mut pair) = Pair::start() else { return };
    assert!(pair.readiness(200, "ready").is_some());
    pair.publish(0, "small", SMALL).expect(201);
    pair.publish(1, "large", LARGE).expect(201);
    pair.verify();

    pair.s3.stop();
    pair.check_without_s3("killed");
    pair.s3.resume();
    pair.check_recovered("killed");

    pair.s3.freeze();
    pair.check_without_s3("frozen");
    pair.s3.thaw();
    pair.check_recovered("frozen");

    for (round, mode) in [("hanging", Mode::Hang), ("erring", Mode::Err)] {
        pair.proxy.set(mode);
        pair.check_without_s3(round);
        pair.proxy.set(Mode::Pass);
        pair.check_recovered(round);
    }
}

#[test]
fn an_answer_that_s3_cuts_short_is_incomplete() {
    let Some(pair) = Pair::start() else { return };
    pair.publish(0, "large", 4 * LARGE).expect(201);
    for mode in [Mode::CutAfter(700_000), Mode::HangAfter(700_000)] {
        pair.proxy.set(mode);
        let began = Instant::now();
        let mut received = 0;
        let request = Request::new("GET", &pair.path("large"));
        let mut connection = Connection::open(pair.servers[1].packages()).unwrap();
        connection.send(&pair.clients[1].head_bytes(request)).unwrap();
        let answer = connection.read_streaming(false, &mut |bytes| received += bytes.len());
        assert!(answer.is_err(), "{mode:?}: {answer:?}");
        assert!(
            received > 0 && received < 4 * LARGE,
            "{mode:?}: the head was right, the rest was broken off"
        );
        assert!(began.elapsed() < IDLE + SLACK, "{mode:?}: {:?}", began.elapsed());
        println!("{mode:?}: broken off after {received} bytes and {:?}", began.elapsed());
        pair.proxy.set(Mode::Pass);
        eventually("it can be read completely again", || {
            (pair.clients[1].get(&pair.path("large")).status == 200).then_some(())
        });
    }
    pair.verify();
}

#[test]
fn a_missing_object_is_500_before_any_head() {
    let Some(pair) = Pair::start() else { return };
    pair.publish(0, "small", SMALL).expect(201);
    pair.publish(0, "large", LARGE).expect(201);
    let lost = pair.s3.keys().into_iter().filter(|key| !key.contains("canary")).collect::<Vec<_>>();
    assert_eq!(lost.len(), 1, "{lost:?}");
    pair.s3.remove(&lost[0]);
    for (client, server) in pair.clients.iter().zip(&pair.servers) {
        let answer = client.get(&pair.path("large")).expect(500);
        assert_eq!(
            (answer.field("error").as_str(), answer.header("retry-after")),
            ("stored_data_damaged", None)
        );
        client.get(&pair.path("small")).expect(200);
        let metrics = Client::new(server.api()).get("/metrics").expect(200).text();
        assert!(!metrics.contains("packhouse_blobs_corrupt_total 0"), "{metrics}");
    }
    assert!(pair.readiness(200, "ready").is_some(), "one lost object does not make a server unready");
    pair.acknowledged.borrow_mut().retain(|(path, _)| *path != pair.path("large"));
    pair.verify();
}

#[test]
fn a_hanging_database_is_503_within_a_second() {
    let Some(pair) = Pair::start() else { return };
    pair.publish(0, "small", SMALL).expect(201);
    let before = pair.proxy.requests();
    for _ in 0..200 {
        assert!(pair.readiness(200, "ready").is_some());
    }
    let requests = pair.proxy.requests() - before;
    assert!(requests < 100, "800 probes made {requests} requests to S3");
    pair.postgres.freeze();
    let longest = eventually("both are out of service", || pair.readiness(503, "unavailable"));
    println!("readyz with a hanging database: {longest:?}");
    let report = Client::new(pair.servers[0].api()).get("/readyz").expect(503);
    assert_eq!(
        (report.field("error").as_str(), report.field("status").as_str()),
        ("ddb_unavailable", "unavailable")
    );
    assert_eq!(report.json()["degraded"][0]["what"], "database", "{}", report.text());
    pair.postgres.thaw();
    eventually("both are ready", || pair.readiness(200, "ready"));
    pair.verify();
}

/// A test's own disk in memory. Dropping it unmounts the disk.
struct Disk {
    folder: tempfile::TempDir,
}

impl Disk {
    fn new(size: &str) -> Result<Self, String> {
        if !database::is_root() {
            return Err("mounting needs root".to_owned());
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(folder.path());
        match mount.output() {
            Ok(output) if output.status.success() => Ok(Self { folder }),
            Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Writes until the disk is full.
    fn fill(&self) {
        let zeros = vec![0; 1 << 20];
        let mut file = std::fs::File::create(self.folder.path().join("filler")).unwrap();
        while std::io::Write::write_all(&mut file, &zeros).is_ok() {}
    }

    fn empty(&self) {
        std::fs::remove_file(self.folder.path().join("filler")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.folder.path()).output();
    }
}

#[test]
fn a_full_disk_refuses_publishes_and_serves_reads() {
    let disk = match Disk::new("256m") {
        Ok(disk) => disk,
        Err(reason) => return skip("a full disk", &reason),
    };
    let server = Server::with()
        .data(&disk.folder.path().join("data"))
        .env("PACKHOUSE_READINESS_INTERVAL_MS", "300")
        .start();
    let repository = MavenRepository::create(&server, "full");
    let file = |name: &str| format!("org/example/{name}/1.0/{name}-1.0.jar");
    let large = payload::bytes(1, LARGE);
    repository.put(&file("small"), "small").expect(201);
    repository.put(&file("large"), large.clone()).expect(201);
    let api = Client::new(server.api());

    disk.fill();
    let report = eventually("it is degraded", || {
        let began = Instant::now();
        let answer = api.get("/readyz").expect(200);
        assert!(began.elapsed() < Duration::from_secs(1));
        (answer.field("status") == "degraded").then(|| answer.json())
    });
    assert!(report.to_string().contains("\"disk\""), "{report}");
    assert_eq!(repository.get(&file("small")).expect(200).text(), "small");
    assert_eq!(digests::sha256(&repository.get(&file("large")).expect(200).body), digests::sha256(&large));
    unavailable(&repository.put(&file("refused"), large.clone()));
    let metrics = api.get("/metrics").expect(200).text();
    assert!(metrics.contains("packhouse_degraded{what=\"disk\"} 1"), "{metrics}");

    disk.empty();
    eventually("it is ready again", || (api.get("/readyz").field("status") == "ready").then_some(()));
    repository.put(&file("refused"), large.clone()).expect(201);
    for name in ["large", "refused"] {
        assert_eq!(digests::sha256(&repository.get(&file(name)).expect(200).body), digests::sha256(&large));
    }
}

/// The server checks the credentials of S3 at its start, not in the middle of the first large
/// publish.
#[test]
fn the_start_fails_if_s3_refuses_the_credentials() {
    let Some(mut s3) = S3::start() else { return skip("S3 with credentials", "no weed") };
    s3.stop();
    s3.require("packhouse", "right-secret");
    s3.resume();
    let endpoint = s3.endpoint();
    let with =
        |secret: &str| Server::with().env("PACKHOUSE_BLOBS", &s3::address(endpoint, "packhouse", secret));
    let (status, message) = with("wrong-secret").start_refused();
    assert!(!status.success() && message.contains("S3 refuses the credentials"), "{message}");
    assert!(!message.contains("wrong-secret"), "{message}");
    let server = with("right-secret").start();
    MavenRepository::create(&server, "right")
        .put("org/example/a/1.0/a-1.0.jar", payload::bytes(1, LARGE))
        .expect(201);
    drop(server);
    s3.stop();
    // An unreachable S3 does not prevent the start, because the server can serve files in the
    // database.
    let server = with("right-secret").start();
    let report = Client::new(server.api()).get("/readyz").expect(200);
    assert_eq!(report.json()["degraded"][0]["what"], "blobs", "{}", report.text());
    Api::sign_in(&server);
}
