//! Durable publishes of 4 KiB by eight concurrent writers: into an empty store, and into a large
//! store.

use crate::options::Options;
use crate::table::{Goal, ResultRow, ResultTable, Unit};
use packhouse_benches::median;
use packhouse_tests::http::{self, Connection};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Client, MavenRepository, Request, Server, payload};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const WRITERS: u32 = 8;
/// Number of timed publishes.
const COUNT: u32 = 10_000;
/// Number of turns that each of the two stores takes. A turn has a quarter of the publishes.
const TURNS: usize = 8;

/// A client that publishes over keep-alive connections.
#[derive(Clone, Debug)]
pub(crate) struct Publisher {
    address: SocketAddr,
    client: Client,
}

impl Publisher {
    /// Creates a client with this password of the owner.
    pub(crate) fn new(address: SocketAddr, secret: &str) -> Self {
        let client = Client::new(address).with("Authorization", &http::basic(OWNER, secret));
        Self { address, client: client.with("Connection", "keep-alive") }
    }

    /// Opens a connection.
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

/// Publishes `count` files over `writers` concurrent connections.
pub(crate) fn publish_all(
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

/// A server with a repository that grows.
struct Grown {
    publisher: Publisher,
    repository: MavenRepository,
    artifacts: u32,
    _server: Server,
}

impl Grown {
    /// Starts a server with a thousand artifacts, so that the cost of the first requests is not
    /// measured.
    fn start() -> Self {
        let server = Server::start();
        let repository = MavenRepository::create(&server, "files");
        let publisher = Publisher::new(server.packages(), &repository.token.secret);
        let mut grown = Self { publisher, repository, artifacts: 0, _server: server };
        grown.grow(1_000);
        grown
    }

    /// Publishes `count` more artifacts. Returns the publishes per second.
    fn grow(&mut self, count: u32) -> f64 {
        let start = Instant::now();
        publish_all(WRITERS, count, &self.publisher, |number| {
            let number = self.artifacts + number;
            let path = format!("com/grown/a{number}/1.0/a{number}-1.0.jar");
            (self.repository.path(&path), payload::bytes(u64::from(number), 4096))
        });
        self.artifacts += count;
        f64::from(count) / start.elapsed().as_secs_f64()
    }
}

/// Measures both stores. The large store takes turns with a nearly empty one, because figures that
/// are measured minutes apart differ by more than the cost of growth.
pub(crate) fn measure(options: &Options, table: &mut ResultTable) {
    let mut large = Grown::start();
    let row = |name: String, ours, peer, goal| ResultRow { name, unit: Unit::Rate, ours, peer, goal };
    let name = format!("durable publishes, {WRITERS} writers, empty");
    table.add(row(name, large.grow(COUNT), None, Goal::AtLeast(3_000.0)));
    large.grow(options.grown.saturating_sub(large.artifacts));
    let mut small = Grown::start();
    let turns = (0..TURNS).map(|_| (large.grow(COUNT / 4), small.grow(COUNT / 4)));
    let (of_large, of_small): (Vec<f64>, Vec<f64>) = turns.unzip();
    let name = format!("durable publishes, {WRITERS} writers, at {}", options.grown);
    table.add(row(name, median(of_large), Some(median(of_small)), Goal::Ratio(0.95)));
}
