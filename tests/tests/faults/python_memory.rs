//! Memory use for a large wheel: checking, publishing and fetching the wheel must not need memory
//! for the whole of it.

use crate::wheel;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use packhouse_tests::payload::Blocks;
use packhouse_tests::python::PythonRepository;
use packhouse_tests::{Server, long};
use sha2::{Digest as _, Sha256};
use std::io::Read;
use std::time::Instant;

const LIMIT: u64 = 200 * 1000 * 1000;
const NAME: &str = "large-1.0-py3-none-any.whl";

/// A zip of uncompressed files. The first file is large, so readers generate its content as they
/// read.
struct Wheel {
    head: Vec<u8>,
    size: u32,
    tail: Vec<u8>,
}

impl Wheel {
    fn new(size: u32) -> Self {
        let crc = crc_of(size);
        let mut files = wheel::wheel_files("large", "1.0", "");
        let line = format!("large/data.bin,sha256={},\n", sha256_of(size));
        files.last_mut().unwrap().1.extend_from_slice(line.as_bytes());
        let head = local("large/data.bin", crc, size);
        let (mut tail, mut directory) = (Vec::new(), central("large/data.bin", crc, size, 0));
        let offset = |tail: &Vec<u8>| head.len() as u32 + size + tail.len() as u32;
        for (name, content) in &files {
            let (crc, length) = (crc32fast::hash(content), content.len() as u32);
            directory.extend(central(name, crc, length, offset(&tail)));
            tail.extend(local(name, crc, length));
            tail.extend(content);
        }
        let (start, count) = (offset(&tail), (files.len() as u16 + 1).to_le_bytes());
        tail.extend(&directory);
        tail.extend(b"PK\x05\x06\0\0\0\0");
        tail.extend([count, count].concat());
        tail.extend((directory.len() as u32).to_le_bytes());
        tail.extend(start.to_le_bytes());
        tail.extend([0, 0]);
        Self { head, size, tail }
    }

    fn length(&self) -> u64 {
        (self.head.len() + self.tail.len()) as u64 + u64::from(self.size)
    }

    fn read(&self) -> impl Read {
        self.head.as_slice().chain(data(self.size)).chain(self.tail.as_slice())
    }
}

/// The content of the large file.
fn data(size: u32) -> impl Read {
    Blocks::new(7).take(u64::from(size))
}

/// The common part of a file's two headers.
fn shared(name: &str, crc: u32, size: u32) -> Vec<u8> {
    let mut bytes = vec![0, 8, 0, 0, 0, 0, 0x21, 0x5a];
    bytes.extend([crc.to_le_bytes(), size.to_le_bytes(), size.to_le_bytes()].concat());
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend([0, 0]);
    bytes
}

fn local(name: &str, crc: u32, size: u32) -> Vec<u8> {
    [b"PK\x03\x04\x14\0", &shared(name, crc, size)[..], name.as_bytes()].concat()
}

fn central(name: &str, crc: u32, size: u32, offset: u32) -> Vec<u8> {
    let end = [&[0; 10], &offset.to_le_bytes()[..], name.as_bytes()].concat();
    [b"PK\x01\x02\x14\x03\x14\0", &shared(name, crc, size)[..], &end].concat()
}

fn crc_of(size: u32) -> u32 {
    let (mut hasher, mut source, mut buffer) = (crc32fast::Hasher::new(), data(size), vec![0; 1 << 16]);
    loop {
        match source.read(&mut buffer).unwrap() {
            0 => return hasher.finalize(),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// The digest as a RECORD states it.
fn sha256_of(size: u32) -> String {
    let (mut hasher, mut source, mut buffer) = (Sha256::new(), data(size), vec![0; 1 << 16]);
    loop {
        match source.read(&mut buffer).unwrap() {
            0 => return URL_SAFE_NO_PAD.encode(hasher.finalize()),
            read => hasher.update(&buffer[..read]),
        }
    }
}

#[test]
fn a_large_wheel_needs_little_memory() {
    let mut server = Server::start();
    // The first start compiles the plugins. The test restarts the server so that it does not
    // measure that memory.
    server.restart();
    let repository = PythonRepository::create(&server, "py");
    let wheel = Wheel::new(if long() { 1_000_000_000 } else { 200_000_000 });
    let length = wheel.length();

    let started = Instant::now();
    let (answer, put) =
        server.watched(|| repository.publish_from("large", "1.0", NAME, &mut wheel.read(), length));
    answer.expect(200);
    let (uploaded, started) = (started.elapsed(), Instant::now());

    let file = &repository.page("large")["files"][0];
    assert_eq!(file["size"], length);
    let (mut fetched, mut hash) = (0, Sha256::new());
    let path = repository.path(&format!("packages/large/1.0/{NAME}"));
    let (answer, get) = server.watched(|| {
        repository.client.get_to(&path, &mut |piece| {
            fetched += piece.len() as u64;
            hash.update(piece);
        })
    });
    answer.unwrap().expect(200);
    assert_eq!(fetched, length);
    assert_eq!(file["hashes"]["sha256"], hex::encode(hash.finalize()));

    eprintln!("a wheel of {length} bytes: uploaded in {uploaded:?}, downloaded in {:?}", started.elapsed());
    for (what, most) in [("upload", put), ("download", get), ("all", server.peak_rss())] {
        eprintln!("{what} of {length} bytes: {most} bytes resident at most");
        assert!(most < LIMIT, "{what} of {length} bytes: {most} bytes resident");
    }
}
