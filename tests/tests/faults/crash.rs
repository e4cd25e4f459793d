//! kill -9 in the middle of publishing. After the restart the server has every acknowledged file,
//! and shows no incomplete one.

use packhouse_tests::{MavenRepository, Server, database, payload};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const PUBLISHES: usize = 200;
const WRITERS: usize = 4;

/// Lengths from 10 bytes to 3 MB: some files are stored in the database, some on disk, and some are
/// incomplete at the kill.
fn length(number: usize) -> usize {
    [10, 4_000, 40_000, 300_000, 3_000_000][number % 5]
}

fn file(round: usize, number: usize) -> String {
    format!("org/example/crash/{round}.{number}/crash-{round}.{number}.jar")
}

fn body(round: usize, number: usize) -> Vec<u8> {
    payload::bytes((round * PUBLISHES + number) as u64, length(number))
}

/// Publishes files until all are published or the server has ended. Kills the server after `after`
/// acknowledgements. Returns the acknowledged files.
fn publish_and_kill(
    server: &mut Server,
    repository: &MavenRepository,
    round: usize,
    after: usize,
) -> Vec<usize> {
    let next = AtomicUsize::new(0);
    let acknowledged = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= PUBLISHES {
                        return;
                    }
                    let body = body(round, number);
                    let path = repository.path(&file(round, number));
                    match repository.client.put_from(&path, &mut body.as_slice(), body.len() as u64) {
                        Ok(answer) if answer.status == 201 => acknowledged.lock().unwrap().push(number),
                        Ok(answer) => panic!("{path}: {} {}", answer.status, answer.text()),
                        Err(_) => return,
                    }
                }
            });
        }
        packhouse_tests::server::eventually("enough publishes", || {
            (acknowledged.lock().unwrap().len() >= after).then_some(())
        });
        server.kill9();
    });
    acknowledged.into_inner().unwrap()
}

#[test]
fn acknowledged_files_survive_kill_9_and_nothing_else_is_visible() {
    let mut server = Server::start();
    let repository = MavenRepository::create(&server, "crash");
    let mut there = BTreeMap::new();
    for (round, after) in [20, 50, 90, 130, 170].into_iter().enumerate() {
        for number in publish_and_kill(&mut server, &repository, round, after) {
            there.insert((round, number), ());
        }
        server.restart();
        check(&server, &repository, round, &mut there);
    }
    // Files that a crash left behind do not prevent a publish.
    repository.put("org/example/crash/9.9/crash-9.9.jar", payload::bytes(99, 1_000_000)).expect(201);
}

fn check(
    server: &Server,
    repository: &MavenRepository,
    round: usize,
    there: &mut BTreeMap<(usize, usize), ()>,
) {
    let metadata = repository.get("org/example/crash/maven-metadata.xml").expect(200).text();
    for number in 0..PUBLISHES {
        let answer = repository.get(&file(round, number));
        let listed = metadata.contains(&format!("<version>{round}.{number}</version>"));
        match (there.contains_key(&(round, number)), answer.status) {
            (_, 200) => {
                // A file without an acknowledgement may exist; then it must be complete.
                assert!(answer.body == body(round, number), "{round}.{number} came back with other bytes");
                assert!(listed, "{round}.{number} is there and not listed");
                there.insert((round, number), ());
            }
            (true, status) => panic!("{round}.{number} was acknowledged and answers {status}"),
            (false, 404) => assert!(!listed, "{round}.{number} is listed and not there"),
            (false, status) => panic!("{round}.{number} was never acknowledged and answers {status}"),
        }
    }
    let mut staged = Vec::new();
    database::list(&server.data().join("staging"), &mut staged);
    // The staging folder may contain only the running server's lock.
    staged.retain(|file| !file.contains(".lock "));
    assert!(staged.is_empty(), "left over from the crash: {staged:?}");
    for &(earlier, number) in there.keys().filter(|(earlier, _)| *earlier != round) {
        repository.get(&file(earlier, number)).expect(200);
    }
}
