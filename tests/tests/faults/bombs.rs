//! Limits on the disk space that unpublished bytes take: archives that unpack to very many bytes,
//! concurrent bodies and uploads, a nearly full disk.

use crate::release;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use packhouse_tests::images::ImageRepository;
use packhouse_tests::npm::NpmRepository;
use packhouse_tests::proxy::{METADATA, World};
use packhouse_tests::python::PythonRepository;
use packhouse_tests::race::{SetOnDrop, at_once};
use packhouse_tests::upstream::Answer;
use packhouse_tests::{Connection, MavenRepository, Request, Response, Server, payload};
use release::Release;
use serde_json::json;

const MIB: u64 = 1 << 20;

/// 2 MB of gzip that unpack to 2 GB: many gzip members, each full of zeros.
fn bomb() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::copy(&mut std::io::Read::take(std::io::repeat(0), 64 * MIB), &mut encoder).unwrap();
    let member = encoder.finish().unwrap();
    member.repeat(2_000_000 / member.len())
}

/// Size of all files below a folder, without files that other servers share.
fn taken(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(data) if data.is_dir() => taken(&entry.path()),
            Ok(data) if data.is_file() => data.len(),
            _ => 0,
        })
        .sum()
}

fn staged(server: &Server) -> u64 {
    taken(&server.data().join("staging")) + taken(&server.data().join("uploads"))
}

/// Runs `work` and samples the size of the staged bytes meanwhile; returns the result and the
/// largest size.
fn watched<T>(server: &Server, work: impl FnOnce() -> T) -> (T, u64) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = 0;
            while !done.load(Ordering::Relaxed) {
                most = most.max(staged(server));
                std::thread::yield_now();
            }
            most
        });
        let ended = SetOnDrop(&done);
        let result = work();
        drop(ended);
        (result, watcher.join().unwrap())
    })
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[track_caller]
fn full(answer: Response) {
    let answer = answer.expect(503);
    assert_eq!((answer.field("error").as_str(), answer.header("retry-after")), ("staging_full", Some("5")));
}

#[test]
fn archives_that_unpack_out_of_all_proportion_do_not_fill_the_disk() {
    let server = Server::start();
    let (npm, python) = (NpmRepository::create(&server, "npm"), PythonRepository::create(&server, "python"));
    let bomb = bomb();
    let document = |number: usize| Release::new("lib", &format!("1.0.{number}")).raw(&bomb).document();
    let documents: Vec<_> = (0..4).map(document).collect();
    let publish = |number: usize| npm.put("lib", &documents[number]).status;
    let ((statuses, most), memory) = server.watched(|| watched(&server, || at_once(4, publish)));
    println!("npm: at most {} MB staged, {} MB of memory", most / 1_000_000, memory / 1_000_000);
    assert_eq!(statuses, [400; 4]);
    // 2 MB may unpack to 200 MB, and only one archive at a time may take that much. The test in
    // `resource_bounds.rs` has stricter limits.
    assert!(most < 1_000_000_000, "{most} bytes were staged");
    assert!(memory < 600_000_000, "{memory} bytes of memory");
    eventually("the staged bytes are removed with their call", || staged(&server) == 0);

    let upload = |number: usize| {
        let version = format!("1.{number}");
        python.publish("lib", &version, &format!("lib-{version}.tar.gz"), &bomb).status
    };
    let (statuses, most) = watched(&server, || at_once(4, upload));
    assert_eq!(statuses, [400; 4]);
    assert!(most < 1_000_000_000, "{most} bytes were staged");
    eventually("the staged bytes are removed with their call", || staged(&server) == 0);
}

#[test]
fn an_upstreams_answer_grows_no_more_than_an_archive() {
    let world = World::new(&json!({}));
    let coded = Answer::ok(bomb()).header("Content-Encoding", "gzip");
    world.upstream.on(&format!("/{METADATA}"), coded);
    let (answer, most) = watched(&world.server, || world.get(METADATA).status);
    assert_eq!(answer, 502);
    assert!(most < 300 * MIB, "{most} bytes were staged");
    eventually("the staged bytes are removed", || staged(&world.server) == 0);
}

/// Begins a PUT of a file and sends all bytes but the last.
fn unfinished(repository: &MavenRepository, file: &str, bytes: u64) -> Connection {
    let mut connection = Connection::open(repository.client.address()).unwrap();
    let request =
        Request::new("PUT", &repository.path(file)).header("Content-Length", &(bytes + 1).to_string());
    connection.send(&repository.client.head_bytes(request)).unwrap();
    connection.send_from(&mut payload::Payload::new(7), bytes).unwrap();
    connection
}

#[test]
fn staged_bytes_of_a_repository_are_bounded_and_freed() {
    let server = Server::with().env("PACKHOUSE_STAGING_REPOSITORY_BYTES", "8 MiB").start();
    let (one, two) = (MavenRepository::create(&server, "one"), MavenRepository::create(&server, "two"));
    let file = |number: u32| format!("org/example/a/{number}/a-{number}.jar");
    let bytes = |mib: u64| payload::bytes(1, usize::try_from(mib * MIB).unwrap());
    one.put(&file(1), bytes(4)).expect(201);
    full(one.put(&file(2), bytes(10)));
    eventually("the refused bytes are removed", || staged(&server) == 0);

    let open = unfinished(&one, &file(3), 6 * MIB);
    eventually("six MiB are there", || staged(&server) >= 5 * MIB);
    full(one.put(&file(4), bytes(4)));
    two.put(&file(4), bytes(4)).expect(201);
    drop(open);
    eventually("a broken body frees its bytes", || one.put(&file(5), bytes(4)).status == 201);
    assert_eq!(one.get(&file(1)).expect(200).body.len() as u64, 4 * MIB, "published bytes are not staged");
}

/// The path of an answer's `Location`.
fn location(answer: &Response) -> String {
    let location = answer.header("location").unwrap();
    match location.strip_prefix("http://") {
        Some(rest) => format!("/{}", rest.split_once('/').unwrap().1),
        None => location.to_owned(),
    }
}

#[test]
fn open_uploads_count_and_free_their_bytes_at_the_end() {
    let server = Server::with().env("PACKHOUSE_STAGING_SERVER_BYTES", "8 MiB").start();
    let images = ImageRepository::create(&server, "images", &json!({}));
    let begun = images.ask("POST", "app/blobs/uploads/").expect(202);
    let path = location(&begun);
    let layer = payload::bytes(2, usize::try_from(6 * MIB).unwrap());
    let added = images.client.send(Request::new("PATCH", &path).body(layer)).expect(202);
    let refused = images.push_blob("app", &payload::bytes(3, usize::try_from(4 * MIB).unwrap())).expect(503);
    assert!(refused.text().contains("staging_full"), "{}", refused.text());
    let path = location(&added);
    images.client.send(Request::new("DELETE", &path)).expect(204);
    images.push_blob("app", &payload::bytes(3, usize::try_from(4 * MIB).unwrap())).expect(201);
}

#[test]
fn a_nearly_full_disk_refuses_publishes_and_serves_reads() {
    let server = Server::with().env("PACKHOUSE_STAGING_KEEP_FREE_BYTES", "9000000 GB").start();
    let repository = MavenRepository::create(&server, "one");
    repository.put("org/example/a/1/a-1.jar", "small").expect(201);
    full(repository.put("org/example/a/2/a-2.jar", payload::bytes(1, 1_000_000)));
    assert_eq!(repository.get("org/example/a/1/a-1.jar").expect(200).text(), "small");
}
