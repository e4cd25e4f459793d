//! Recovery point and recovery time with many artifacts. The test runs only if long tests are
//! enabled.

use std::time::{Duration, Instant};

use packhouse_tests::{digests, long, payload};
use tempfile::TempDir;

use super::world::{Published, Stand, place, run};

/// Number of artifacts, and of concurrent publishers.
const ARTIFACTS: u64 = 100_000;
const AT_ONCE: u64 = 16;

/// Returns the path of an artifact in one of a thousand packages.
fn path(seed: u64) -> String {
    let package = format!("n{}", seed % 1000);
    format!("/repositories/maven/org/example/{package}/{seed}/{package}-{seed}.jar")
}

fn figures(from: &Stand, to: &Stand, name: &str) {
    let home = TempDir::new().unwrap();
    let folder = place(&home);
    let server = from.server().start();
    let mut published = Published::some(&server);
    std::thread::scope(|scope| {
        for first in 0..AT_ONCE {
            let client = published.client(&server);
            scope.spawn(move || {
                for seed in (first..ARTIFACTS).filter(|seed| seed % AT_ONCE == first) {
                    client.put(&path(seed), payload::bytes(seed, 2000)).expect(201);
                }
            });
        }
    });
    let timed = |what: &str, work: &dyn Fn()| {
        let begun = Instant::now();
        work();
        let took: Duration = begun.elapsed();
        eprintln!("{name}: {what}: {:.1} s", took.as_secs_f64());
    };
    timed("first backup of 100,000 artifacts", &|| drop(from.run(&["backup", &folder]).success()));
    published.more(&server, ARTIFACTS, 2000);
    timed("next backup, with one more (RPO)", &|| drop(from.run(&["backup", &folder]).success()));
    timed("verify", &|| drop(run(&["backup", "verify", &folder]).success()));
    timed("restore (RTO)", &|| drop(to.run(&["restore", &folder]).success()));
    drop(server);
    let server = to.server().start();
    published.expect(&server);
    let client = published.client(&server);
    for seed in (0..ARTIFACTS).step_by(997) {
        let body = client.get(&path(seed)).expect(200).body;
        assert_eq!(digests::sha256(&body), digests::sha256(&payload::bytes(seed, 2000)));
    }
}

#[test]
fn figures_at_many_artifacts() {
    if !long() {
        return;
    }
    figures(&Stand::folder(), &Stand::shared(), "SQLite and a folder to PostgreSQL and S3");
    figures(&Stand::shared(), &Stand::folder(), "PostgreSQL and S3 to SQLite and a folder");
}
