//! A PostgreSQL that stops answering, for all repositories or for one. Publishes stop for no longer
//! than the configured timeouts. If one repository is locked, publishes in other repositories go
//! on. No acknowledged file is lost.

use packhouse_tests::database::Postgres;
use packhouse_tests::race::SetOnDrop;
use packhouse_tests::s3::S3;
use packhouse_tests::server::eventually;
use packhouse_tests::wire::Wire;
use packhouse_tests::{Client, MavenRepository, Request, Server, digests, payload};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const WRITERS: usize = 40;
const REPOSITORIES: usize = 4;
/// The servers' timeouts for a statement and for a lock.
const STATEMENT: Duration = Duration::from_millis(3000);
const LOCK: Duration = Duration::from_millis(1000);
/// Extra time for a machine that has other work.
const SLACK: Duration = Duration::from_secs(5);

/// Two servers on one PostgreSQL, each through its own proxy, and one bucket.
struct World {
    servers: Vec<Server>,
    wires: Vec<Wire>,
    repositories: Vec<MavenRepository>,
    postgres: Postgres,
    _data: tempfile::TempDir,
    _s3: S3,
}

fn world() -> World {
    let postgres = Postgres::start().expect("PostgreSQL, which ./bootstrap test installs");
    let s3 = S3::start().expect("seaweedfs, which ./bootstrap test installs");
    let data = tempfile::tempdir().unwrap();
    let wires: Vec<Wire> = (0..2).map(|_| Wire::to(postgres.port())).collect();
    let start = |(number, wire): (usize, &Wire)| {
        Server::with()
            .data(&data.path().join(number.to_string()))
            .arg("--database-url")
            .arg(&postgres.url_through(wire.port()))
            .env("PACKHOUSE_BLOBS", &s3.address())
            .env("PACKHOUSE_SEALING_KEY", "one key for both of the servers")
            .env("PACKHOUSE_DATABASE_STATEMENT_TIMEOUT_MS", &STATEMENT.as_millis().to_string())
            .env("PACKHOUSE_DATABASE_LOCK_TIMEOUT_MS", &LOCK.as_millis().to_string())
            .start()
    };
    let servers: Vec<Server> = wires.iter().enumerate().map(start).collect();
    let repositories = (0..=REPOSITORIES)
        .map(|number| MavenRepository::create(&servers[0], &format!("r{number}")))
        .collect();
    World { servers, wires, repositories, postgres, _data: data, _s3: s3 }
}

/// The acknowledged publishes and their times.
#[derive(Default)]
struct Journal {
    /// SHA-256 of the published bytes, by repository and file.
    acknowledged: BTreeMap<(usize, String), String>,
    /// The time of each acknowledgement, with its repository.
    times: Vec<(usize, Instant)>,
    refused: usize,
    slowest: Duration,
}

impl Journal {
    /// The longest time without an acknowledgement in the repositories that `among` selects.
    fn longest_gap(&self, among: impl Fn(usize) -> bool, since: Instant) -> Duration {
        let mut times: Vec<Instant> = self
            .times
            .iter()
            .filter(|(at, time)| among(*at) && *time >= since)
            .map(|(_, time)| *time)
            .collect();
        times.insert(0, since);
        times.push(Instant::now());
        times.sort();
        times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
    }
}

impl World {
    /// Publishes with 40 writers through both servers while `meanwhile` runs. `to` returns the
    /// repository of each writer.
    fn publish_while<T>(
        &self,
        to: impl Fn(usize) -> usize + Sync,
        meanwhile: impl FnOnce(&Mutex<Journal>) -> T,
    ) -> (Journal, T) {
        let (journal, next, done) =
            (Mutex::new(Journal::default()), AtomicUsize::new(0), AtomicBool::new(false));
        let (journal_of, to) = (&journal, &to);
        let result = std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (next, done) = (&next, &done);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        self.publish(writer, to(writer), next.fetch_add(1, Ordering::Relaxed), journal_of);
                    }
                });
            }
            let _ended = SetOnDrop(&done);
            meanwhile(&journal)
        });
        (journal.into_inner().unwrap(), result)
    }

    fn publish(&self, writer: usize, at: usize, number: usize, journal: &Mutex<Journal>) {
        // Some files are stored in the database, some as objects in S3.
        let body = payload::bytes(number as u64, [300, 50_000][number % 2]);
        let file = format!("org/example/w{writer}/{number}/w{writer}-{number}.jar");
        let begun = Instant::now();
        let answer = self.client(writer, at).put(&self.repositories[at].path(&file), body.clone());
        let mut journal = journal.lock().unwrap();
        journal.slowest = journal.slowest.max(begun.elapsed());
        match answer.status {
            201 => {
                journal.times.push((at, Instant::now()));
                journal.acknowledged.insert((at, file), digests::sha256(&body));
            }
            503 => {
                assert_eq!(answer.header("retry-after"), Some("5"), "{}", answer.text());
                journal.refused += 1;
                drop(journal);
                std::thread::sleep(Duration::from_millis(50));
            }
            other => panic!("{other}: {}", answer.text()),
        }
    }

    fn client(&self, writer: usize, at: usize) -> Client {
        let address = self.servers[writer % self.servers.len()].packages();
        Client::new(address).basic(packhouse_tests::server::OWNER, &self.repositories[at].token.secret)
    }

    /// Asserts that every acknowledged file can be read from each server with its published bytes.
    fn verify(&self, journal: &Journal) {
        assert!(journal.acknowledged.len() > WRITERS, "hardly anything was published");
        for (number, ((at, file), sha256)) in journal.acknowledged.iter().enumerate() {
            let answer = self.client(number, *at).get(&self.repositories[*at].path(file)).expect(200);
            assert_eq!(&digests::sha256(&answer.body), sha256, "{file}");
        }
    }
}

/// Waits for this many more acknowledgements.
fn more(journal: &Mutex<Journal>, count: usize) {
    let before = journal.lock().unwrap().times.len();
    eventually("more publishes", || (journal.lock().unwrap().times.len() >= before + count).then_some(()));
}

#[test]
fn a_locked_repository_delays_no_other() {
    let world = world();
    let stuck = REPOSITORIES;
    // Every fourth writer publishes to the repository that will be locked.
    let to = |writer: usize| if writer.is_multiple_of(4) { stuck } else { writer % REPOSITORIES };
    let (journal, locked_at) = world.publish_while(to, |journal| {
        more(journal, 2 * WRITERS);
        let id = &world.repositories[stuck].id;
        let held = world.postgres.hold(&format!("select id from repositories where id = {id} for update"));
        let locked_at = Instant::now();
        let before = journal.lock().unwrap().refused;
        eventually("the locked repository's writers get 503, many times", || {
            (journal.lock().unwrap().refused >= before + WRITERS).then_some(())
        });
        for server in &world.servers {
            Client::new(server.api()).get("/readyz").expect(200);
        }
        let gap = journal.lock().unwrap().longest_gap(|at| at != stuck, locked_at);
        assert!(gap < LOCK + SLACK, "others were delayed by {gap:?}");
        drop(held);
        let since = journal.lock().unwrap().acknowledged.keys().filter(|(at, _)| *at == stuck).count();
        eventually("the locked repository works again", || {
            let journal = journal.lock().unwrap();
            (journal.acknowledged.keys().filter(|(at, _)| *at == stuck).count() > since).then_some(())
        });
        locked_at
    });
    println!("longest gap of the others: {:?}", journal.longest_gap(|at| at != stuck, locked_at));
    println!(
        "acknowledged {}, refused {}, slowest {:?}",
        journal.acknowledged.len(),
        journal.refused,
        journal.slowest
    );
    assert!(journal.slowest < STATEMENT + LOCK * 3 + SLACK, "a writer waited for {:?}", journal.slowest);
    world.verify(&journal);
}

#[test]
fn connections_that_fall_silent_are_replaced() {
    let world = world();
    let (journal, (frozen_at, resumed)) = world.publish_while(
        |writer| writer % REPOSITORIES,
        |journal| {
            more(journal, 2 * WRITERS);
            let opened: u64 = world.wires.iter().map(Wire::opened).sum();
            world.wires.iter().for_each(Wire::freeze);
            let frozen_at = Instant::now();
            more(journal, WRITERS);
            let resumed = frozen_at.elapsed();
            assert!(world.wires.iter().map(Wire::opened).sum::<u64>() > opened, "no new connection");
            for server in &world.servers {
                let api = Client::new(server.api());
                eventually("it is ready again", || (api.get("/readyz").status == 200).then_some(()));
            }
            (frozen_at, resumed)
        },
    );
    let gap = journal.longest_gap(|_| true, frozen_at);
    println!("silent for {gap:?}, {WRITERS} publishes within {resumed:?}");
    println!(
        "acknowledged {}, refused {}, slowest {:?}",
        journal.acknowledged.len(),
        journal.refused,
        journal.slowest
    );
    assert!(gap < STATEMENT + Duration::from_secs(2) + LOCK + SLACK, "publishes stopped for {gap:?}");
    world.verify(&journal);
}

#[test]
fn a_server_that_cannot_commit_is_not_ready() {
    let world = world();
    let [one, other] = [0, 1].map(|number| &world.repositories[number]);
    one.put("org/example/a/1/a-1.jar", "before").expect(201);
    // Reads still work.
    let held = world.postgres.hold("lock table repositories in exclusive mode");
    let api = Client::new(world.servers[0].api());
    api.get("/readyz").expect(200);
    let refused = other.put("org/example/a/1/a-1.jar", "meanwhile").expect(503);
    assert_eq!(refused.field("error"), "ddb_unavailable");
    assert_eq!(one.get("org/example/a/1/a-1.jar").expect(200).text(), "before");
    eventually("it is not ready", || (api.get("/readyz").status == 503).then_some(()));
    api.get("/livez").expect(200);
    drop(held);
    // No client publishes meanwhile, so the server must notice by itself that it can commit.
    eventually("it is ready again", || (api.get("/readyz").status == 200).then_some(()));
    one.get("org/example/a/2/a-2.jar").expect(404);
    other.put("org/example/a/1/a-1.jar", "afterwards").expect(201);
}

/// The timeouts also bound writes other than commits, such as those of an upload session. A write
/// that waits in one repository delays no other repository.
#[test]
fn upload_sessions_in_a_locked_repository_delay_no_others() {
    let world = world();
    let api = packhouse_tests::Api::sign_in(&world.servers[0]);
    let made = ["locked", "free"].map(|name| {
        let body = serde_json::json!({"name": name, "format": "docker", "kind": "hosted"});
        api.post("/v1/repositories", &body).expect(201).field("id")
    });
    let token = api.create_token(&[&made[0], &made[1]], &["read", "write"], None);
    let client =
        Client::new(world.servers[0].packages()).basic(packhouse_tests::server::OWNER, &token.secret);
    let begin = |name: &str| {
        let path = format!("/v2/repositories/{name}/image/blobs/uploads/");
        client.send(Request::new("POST", &path).body(Vec::new())).status
    };
    assert_eq!((begin("locked"), begin("free")), (202, 202));
    let held = world.postgres.hold(&format!("select id from repositories where id = {} for update", made[0]));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert_eq!(begin("locked"), 503);
                }
            });
        }
        let ended = SetOnDrop(&done);
        let mut slowest = Duration::ZERO;
        for _ in 0..20 {
            let begun = Instant::now();
            let status = begin("free");
            slowest = slowest.max(begun.elapsed());
            assert_eq!(status, 202);
        }
        drop(ended);
        println!("slowest beside a locked repository: {slowest:?}");
        assert!(slowest < LOCK + SLACK, "delayed by {slowest:?}");
    });
    drop(held);
    eventually("the locked one works again", || (begin("locked") == 202).then_some(()));
}
