//! Durable publishes of 4 KiB by eight writers at a time: into an empty store, and into one that has grown.

use crate::options::Options;
use crate::table::{Goal, Row, Table, Unit};
use packhouse_benches::median;
use packhouse_tests::http::{self, Connection};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Client, MavenRepository, Request, Server, payload};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const WRITERS: u32 = 8;
/// Publishes that are timed.
const COUNT: u32 = 10_000;
/// How often the two stores take turns, with a quarter as many each time.
const TURNS: usize = 8;

/// Who publishes over connections that are kept.
#[derive(Clone, Debug)]
pub(crate) struct Publisher {
    address: SocketAddr,
    client: Client,
}

impl Publisher {
    /// One with this password of the owner's.
    pub(crate) fn of(address: SocketAddr, secret: &str) -> Self {
        let client = Client::new(address).with("Authorization", &http::basic(OWNER, secret));
        Self { address, client: client.with("Connection", "keep-alive") }
    }

    /// A connection.
    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address).expect("connects")
    }

    /// Publishes a file.
    pub(crate) fn put(&self, connection: &mut Connection, path: &str, bytes: &[u8]) {
        let mut whole = self.client.head_bytes(Request::new("PUT", path).body(bytes));
        whole.extend_from_slice(bytes);
        connection.send(&whole).expect("sends");
        connection.read_response(false).expect("an answer").expect(201);
    }
}

/// Publishes `count` files from so many connections at a time.
pub(crate) fn each(
    writers: u32,
    count: u32,
    publisher: &Publisher,
    file: impl Fn(u32) -> (String, Vec<u8>) + Sync,
) {
    let next = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..writers {
            scope.spawn(|| {
                let mut connection = publisher.connect();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let (path, bytes) = file(number);
                    publisher.put(&mut connection, &path, &bytes);
                }
            });
        }
    });
}

/// A server with a repository into which more and more is published.
struct Grown {
    publisher: Publisher,
    repository: MavenRepository,
    artifacts: u32,
    _server: Server,
}

impl Grown {
    /// One with a thousand artifacts: what the first requests of a server cost is in no figure.
    fn start() -> Self {
        let server = Server::start();
        let repository = MavenRepository::create(&server, "files");
        let publisher = Publisher::of(server.packages(), &repository.token.secret);
        let mut grown = Self { publisher, repository, artifacts: 0, _server: server };
        grown.by(1_000);
        grown
    }

    /// Publishes so many more; answers how many a second.
    fn by(&mut self, count: u32) -> f64 {
        let start = Instant::now();
        each(WRITERS, count, &self.publisher, |number| {
            let number = self.artifacts + number;
            let path = format!("com/grown/a{number}/1.0/a{number}-1.0.jar");
            (self.repository.path(&path), payload::bytes(u64::from(number), 4096))
        });
        self.artifacts += count;
        f64::from(count) / start.elapsed().as_secs_f64()
    }
}

/// Measures both. What has grown is measured in turns with another that is nearly empty: what lies minutes apart on one machine differs by
/// more than what growth costs.
pub(crate) fn measure(options: &Options, table: &mut Table) {
    let mut large = Grown::start();
    let row = |name: String, ours, peer, goal| Row { name, unit: Unit::Rate, ours, peer, goal };
    let name = format!("durable publishes, {WRITERS} writers, empty");
    table.add(row(name, large.by(COUNT), None, Goal::AtLeast(3_000.0)));
    large.by(options.grown.saturating_sub(large.artifacts));
    let mut small = Grown::start();
    let turns = (0..TURNS).map(|_| (large.by(COUNT / 4), small.by(COUNT / 4)));
    let (of_large, of_small): (Vec<f64>, Vec<f64>) = turns.unzip();
    let name = format!("durable publishes, {WRITERS} writers, at {}", options.grown);
    table.add(row(name, median(of_large), Some(median(of_small)), Goal::Ratio(0.95)));
}
