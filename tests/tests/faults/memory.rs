//! Memory use that does not grow with the size of stored files.

use packhouse_tests::images::{ImageRepository, MANIFEST};
use packhouse_tests::payload::Payload;
use packhouse_tests::{Connection, MavenRepository, Request, Server, long};
use serde_json::json;
use sha2::Digest as _;
use std::io::Read;

/// Memory limit in bytes; the program and the code of ten plugins take up to 95 MB.
const LIMIT: u64 = 125 * 1000 * 1000;
const LIMIT_OF_MANY: u64 = 300 * 1000 * 1000;

/// A reader that passes bytes on and hashes them.
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
fn a_large_file_needs_little_memory() {
    let size: u64 = if long() { 2_000_000_000 } else { 300_000_000 };
    let mut server = Server::start();
    let repository = MavenRepository::create(&server, "large");
    // The first start compiles the plugins. The test restarts the server so that it does not
    // measure that memory.
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

/// Simulates a cluster that starts the same image on all its nodes.
#[test]
fn many_pulls_of_one_layer_at_a_time_take_little_memory() {
    let (pulls, size): (usize, u64) = if long() { (100, 1_000_000_000) } else { (30, 64_000_000) };
    let mut server = Server::start();
    let repository = ImageRepository::create(&server, "pulled", &json!({}));
    server.restart();
    let mut layer = Hashing { inner: Payload::new(2).take(size), hash: sha2::Sha256::new() };
    std::io::copy(&mut layer, &mut std::io::sink()).unwrap();
    let digest = hex::encode(layer.hash.finalize());
    let begun = repository.ask("POST", "app/blobs/uploads/").expect(202);
    let end = format!("{}?digest=sha256:{digest}", begun.header("location").unwrap());
    repository.client.put_from(&end, &mut Payload::new(2), size).unwrap().expect(201);

    let path = repository.path(&format!("app/blobs/sha256:{digest}"));
    let ((), most) = server.watched(|| {
        std::thread::scope(|scope| {
            for _ in 0..pulls {
                scope.spawn(|| {
                    let mut hash = sha2::Sha256::new();
                    let pulled = repository.client.get_to(&path, &mut |bytes| hash.update(bytes));
                    pulled.unwrap().expect(200);
                    assert_eq!(hex::encode(hash.finalize()), digest);
                });
            }
        });
    });
    eprintln!("{pulls} pulls of {size} bytes: {most} bytes resident at most");
    assert!(most < LIMIT_OF_MANY, "{pulls} pulls of {size} bytes: {most} bytes resident");
}

/// The server refuses a large manifest by its stated length, or during the upload if it has none.
/// It never holds the manifest in memory.
#[test]
fn a_manifest_of_100_mb_costs_no_memory() {
    let size: u64 = 100_000_000;
    let mut server = Server::start();
    let repository = ImageRepository::create(&server, "manifests", &json!({}));
    server.restart();
    let target = repository.path("app/manifests/large");
    let client = repository.client.clone().with("Content-Type", MANIFEST);
    client.put(&target, "{").expect(400);
    let before = server.rss();
    let (declared, most) = server.watched(|| client.put_from(&target, &mut Payload::new(4), size));
    // A client that continues to send after the answer may fail to read it.
    if let Ok(answer) = declared {
        answer.expect(400);
    }
    let head = Request::new("PUT", &target).header("Transfer-Encoding", "chunked");
    let (streamed, also) = server.watched(|| {
        let mut connection = Connection::open(server.packages()).unwrap();
        connection.send(&client.head_bytes(head)).unwrap();
        connection.send(format!("{size:x}\r\n").as_bytes()).unwrap();
        let sent = connection.send_from(&mut Payload::new(5), size);
        connection.read_response(false).map_err(|error| sent.err().unwrap_or(error))
    });
    if let Ok(answer) = streamed {
        answer.expect(400);
    }
    repository.get("app/manifests/large").expect(404);
    let grown = most.max(also).saturating_sub(before);
    eprintln!("two manifests of {size} bytes: {grown} bytes more resident at most");
    assert!(grown < 40_000_000, "two manifests of {size} bytes: {grown} bytes more resident");
}
