//! Durable publishes of 4 KiB by eight writers at a time: into an empty store, and into one that has grown.

use crate::options::Options;
use crate::table::{Goal, Row, Table, Unit};
use packhouse_tests::http::{self, Connection};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Client, MavenRepository, Request, Server, payload};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

const WRITERS: u32 = 8;
/// Publishes that are timed.
const COUNT: u32 = 10_000;

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

/// Measures both.
pub(crate) fn measure(options: &Options, table: &mut Table) {
    let server = Server::start();
    let repository = MavenRepository::create(&server, "files");
    let publisher = Publisher::of(server.packages(), &repository.token.secret);
    let mut from = 0;
    let mut round = |count: u32| {
        let start = Instant::now();
        each(WRITERS, count, &publisher, |number| {
            let number = from + number;
            let path = format!("com/grown/a{number}/1.0/a{number}-1.0.jar");
            (repository.path(&path), payload::bytes(u64::from(number), 4096))
        });
        from += count;
        f64::from(count) / start.elapsed().as_secs_f64()
    };
    let row = |name: String, ours, peer, goal| Row { name, unit: Unit::Rate, ours, peer, goal };
    round(1_000);
    let empty = round(COUNT);
    let name = format!("durable publishes, {WRITERS} writers, empty");
    table.add(row(name, empty, None, Goal::AtLeast(3_000.0)));
    round(options.grown.saturating_sub(COUNT));
    let grown = round(COUNT);
    let name = format!("durable publishes, {WRITERS} writers, at {}", options.grown);
    table.add(row(name, grown, Some(empty), Goal::Ratio(0.95)));
}
