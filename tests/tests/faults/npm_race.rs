//! Publishes of a package at the same moment, a publish of a large package, and a package with many
//! versions.

use crate::release;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::race::{at_once, winner};
use packhouse_tests::{Server, long, payload};
use release::Release;
use serde_json::{Value, json};
use std::io::{Cursor, Read};
use std::time::Instant;

#[test]
fn one_of_eight_publishes_of_one_version_wins() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "race");
    for round in 0..5 {
        let version = format!("1.{round}.0");
        let release = |number: usize| Release::new("race", &version).file("who", &number.to_string());
        let answers = at_once(8, |number| repository.put("race", &release(number).document()).status);
        let won = winner(&answers, 201, 409);
        let served = repository.get(&format!("race/-/race-{version}.tgz")).expect(200).body;
        assert_eq!(served, release(won).tarball(), "the winner's bytes are served");
        let manifest = repository.get(&format!("race/{version}")).expect(200).json();
        assert_eq!(manifest["dist"]["integrity"], release(won).integrity());
    }
}

#[test]
fn eight_concurrent_versions_are_all_stored_with_their_tags() {
    let server = Server::start();
    let repository = NpmRepository::create(&server, "many");
    for round in 0..3 {
        let release = |number: usize| {
            Release::new("many", &format!("{round}.{number}.0")).tag(&format!("t{round}-{number}"))
        };
        for status in at_once(8, |number| repository.put("many", &release(number).document()).status) {
            assert_eq!(status, 201);
        }
    }
    let document = repository.get("many").expect(200).json();
    let tags = document["dist-tags"].as_object().unwrap();
    assert_eq!((document["versions"].as_object().unwrap().len(), tags.len()), (24, 25));
    for (tag, version) in tags.iter().filter(|(tag, _)| *tag != "latest") {
        let (round, number) = tag[1..].split_once('-').unwrap();
        assert_eq!(*version, format!("{round}.{number}.0"), "{tag}");
    }
    assert!(document["versions"][tags["latest"].as_str().unwrap()].is_object());
}

/// Memory limit of the server while a package of 200 MB is published and fetched.
const MEMORY: u64 = 200 * 1000 * 1000;

/// A tarball of this many bytes: an archive with one uncompressed file of random bytes.
fn tarball(version: &str, bytes: usize) -> Vec<u8> {
    let block = payload::bytes(1, 1 << 20);
    let content = block.repeat(bytes.div_ceil(block.len()));
    let package = package_json(version);
    let files = [("package/package.json", package.as_bytes()), ("package/data", &content[..bytes])];
    release::stored(&release::tar(&files))
}

fn package_json(version: &str) -> String {
    format!("{{\"name\":\"large\",\"version\":\"{version}\"}}")
}

/// Publishes a tarball in a document; makes the base64 while it sends the document.
fn publish(repository: &NpmRepository, version: &str, tarball: &[u8]) -> packhouse_tests::Response {
    let mut document = Release::new("large", version).package_json(&package_json(version)).document();
    document["versions"][version]["dist"] = Value::Null;
    document["_attachments"] =
        json!({format!("large-{version}.tgz"): {"data": "@", "length": tarball.len()}});
    let text = document.to_string();
    let (head, tail) = text.split_once('@').unwrap();
    let encoded = Encoded { rest: tarball, piece: Cursor::default() };
    let length = head.len() + tarball.len().div_ceil(3) * 4 + tail.len();
    let mut body = head.as_bytes().chain(encoded).chain(tail.as_bytes());
    repository.client.put_from(&repository.path("large"), &mut body, length as u64).unwrap()
}

struct Encoded<'a> {
    rest: &'a [u8],
    piece: Cursor<Vec<u8>>,
}

impl Read for Encoded<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.piece.position() == self.piece.get_ref().len() as u64 {
            let (piece, rest) = self.rest.split_at(self.rest.len().min(3 << 16));
            self.rest = rest;
            self.piece = Cursor::new(STANDARD.encode(piece).into_bytes());
        }
        self.piece.read(buffer)
    }
}

#[test]
fn a_package_of_200_mb_needs_little_memory() {
    let mut server = Server::start();
    // The first start compiles every plugin, which takes memory; the restarted server uses the
    // compiled plugins.
    server.restart();
    let repository = NpmRepository::create(&server, "large");
    let sent = tarball("1.0.0", 200_000_000 - 100_000);
    let started = Instant::now();
    let before = server.rss();
    let (answer, most) = server.watched(|| publish(&repository, "1.0.0", &sent));
    answer.expect(201);
    eprintln!(
        "{} bytes published in {:?}: {before} bytes resident before, {most} at most",
        sent.len(),
        started.elapsed()
    );
    assert!(most < MEMORY, "{most} bytes resident");
    let mut at = 0;
    let path = repository.path("large/-/large-1.0.0.tgz");
    let compare = &mut |bytes: &[u8]| {
        assert!(sent[at..].starts_with(bytes), "other bytes at {at}");
        at += bytes.len();
    };
    let (answer, most) = server.watched(|| repository.client.get_to(&path, compare).unwrap());
    answer.expect(200);
    assert_eq!(at, sent.len());
    assert!(most < MEMORY, "{most} bytes resident");
    if long() {
        let larger = tarball("1.0.1", 210_000_000);
        let (answer, most) = server.watched(|| publish(&repository, "1.0.1", &larger));
        assert_eq!(answer.expect(413).field("error"), "file_too_large");
        assert!(most < MEMORY, "{most} bytes resident");
    }
}

/// The cost of a publish must not grow with the number of versions.
#[test]
fn a_package_of_many_versions_is_published_and_read_quickly() {
    let count = if long() { 2000 } else { 200 };
    let server = Server::start();
    let repository = NpmRepository::create(&server, "versions");
    let publish = |number: usize| {
        let document = Release::new("many", &format!("1.{number}.0")).document();
        let started = Instant::now();
        repository.put("many", &document).expect(201);
        started.elapsed()
    };
    let first = (0..10).map(publish).max().unwrap();
    for number in 10..count - 10 {
        publish(number);
    }
    let last = (count - 10..count).map(publish).min().unwrap();
    for accept in ["application/json", "application/vnd.npm.install-v1+json"] {
        let client = repository.client.clone().with("Accept", accept);
        let started = Instant::now();
        let answer = client.get(&repository.path("many")).expect(200);
        eprintln!("{accept} of {count} versions: {} bytes in {:?}", answer.body.len(), started.elapsed());
        assert_eq!(answer.json()["versions"].as_object().unwrap().len(), count);
    }
    eprintln!("publish: {first:?} at first, {last:?} with {count} versions");
    assert!(last < first * 5, "{first:?} at first, {last:?} with {count} versions");
}
