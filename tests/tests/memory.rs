//! Memory that does not grow with what is stored.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test code: to fail is how it speaks"
)]

use packhouse_tests::payload::Payload;
use packhouse_tests::{MavenRepository, Server, long};
use sha2::Digest as _;
use std::io::Read;

const LIMIT: u64 = 150 * 1000 * 1000;

/// Hands on what it reads and hashes it.
struct Hashing<R> {
    inner: R,
    hash: sha2::Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hash.update(&buffer[..read]);
        Ok(read)
    }
}

#[test]
fn a_large_file_goes_in_and_out_in_little_memory() {
    let size: u64 = if long() { 2_000_000_000 } else { 300_000_000 };
    let mut server = Server::start();
    let repository = MavenRepository::create(&server, "large");
    // The first start compiles the plugins, which is not what is measured here.
    server.restart();
    let path = repository.path("org/example/large/1.0/large-1.0.jar");

    let mut source = Hashing { inner: Payload::new(1), hash: sha2::Sha256::new() };
    let (answer, put) = server.watched(|| repository.client.put_from(&path, &mut source, size));
    answer.unwrap().expect(201);
    let sent = hex::encode(source.hash.finalize());

    let mut hash = sha2::Sha256::new();
    let mut length = 0;
    let (answer, get) = server.watched(|| {
        repository.client.get_to(&path, &mut |bytes| {
            hash.update(bytes);
            length += bytes.len() as u64;
        })
    });
    answer.unwrap().expect(200);
    assert_eq!(length, size);
    assert_eq!(hex::encode(hash.finalize()), sent);
    let served = repository.get("org/example/large/1.0/large-1.0.jar.sha256").expect(200).text();
    assert_eq!(served.trim(), sent);

    for (what, most) in [("PUT", put), ("GET", get), ("all", server.peak_rss())] {
        eprintln!("{what} of {size} bytes: {most} bytes resident at most");
        assert!(most < LIMIT, "{what} of {size} bytes: {most} bytes resident");
    }
}
