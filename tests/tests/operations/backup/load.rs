//! Backups that the program takes during publishes, deletions and garbage collection. Each backup
//! contains everything that the server acknowledged before the backup began.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use packhouse_tests::race::SetOnDrop;
use packhouse_tests::{Api, digests, payload};
use tempfile::TempDir;

use super::world::{Published, Stand, newest, place, run};

const PUBLISHERS: u64 = 4;
const BACKUPS: usize = 3;

/// Takes backups of `from` under load and restores each into `to`.
fn nothing_is_missing(from: &Stand, to: impl Fn() -> Stand) {
    let home = TempDir::new().unwrap();
    let folder = place(&home);
    // Without a grace period, only references and a running backup protect blobs from collection.
    let server = from
        .server()
        .env("PACKHOUSE_GC_GRACE_MS", "0")
        .env("PACKHOUSE_GC_LEASE_MS", "2000")
        .env("PACKHOUSE_GC_INTERVAL_MS", "100")
        .start();
    let mut published = Published::some(&server);
    // The test does not expect the last file, a layer that no manifest references. Both the server
    // and the restored server may collect it after two seconds.
    published.files.pop();
    let published = published;
    let api = Api::sign_in(&server);
    let id = api.call("GET", "/v1/repositories").expect(200).json()["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|repository| repository["name"] == "maven")
        .map(|repository| repository["id"].as_str().unwrap().to_owned())
        .unwrap();
    let acknowledged: Mutex<Vec<(String, String)>> = Mutex::default();
    let (done, next) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut points = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..PUBLISHERS {
            scope.spawn(|| {
                let client = published.client(&server);
                while !done.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let size = if seed.is_multiple_of(3) { 50_000 } else { 500 };
                    let bytes = payload::bytes(seed, size);
                    let path = format!("/repositories/maven/org/example/load/{seed}/load-{seed}.jar");
                    client.put(&path, bytes.clone()).expect(201);
                    acknowledged.lock().unwrap().push((path, digests::sha256(&bytes)));
                }
            });
        }
        // This thread publishes and deletes versions, so that the server deletes files while a
        // backup copies them.
        scope.spawn(|| {
            let client = published.client(&server);
            for seed in 1_000_000_u64.. {
                if done.load(Ordering::Relaxed) {
                    break;
                }
                let path = format!("/repositories/maven/org/example/gone/{seed}/gone-{seed}.jar");
                client.put(&path, payload::bytes(seed, 60_000)).expect(201);
                let version = format!("/v1/repositories/{id}/packages/org.example%3Agone/versions/{seed}");
                api.call("DELETE", &version).expect(204);
            }
        });
        let _ended = SetOnDrop(&done);
        for _ in 0..BACKUPS {
            let before = acknowledged.lock().unwrap().len();
            from.run(&["backup", &folder]).success();
            points.push((newest(&folder), before));
        }
    });
    run(&["backup", "verify", &folder]).success();
    let acknowledged = acknowledged.into_inner().unwrap();
    assert!(points[0].1 < points[BACKUPS - 1].1, "nothing was published during the backups: {points:?}");
    drop(server);
    for (id, before) in &points {
        let stand = to();
        stand.run(&["restore", &folder, "--backup", id]).success();
        let server = stand.server().start();
        published.expect(&server);
        let files = acknowledged[..*before].to_vec();
        Published { files, ..published.clone() }.expect(&server);
    }
}

#[test]
fn nothing_acknowledged_is_missing_from_sqlite_and_a_folder() {
    nothing_is_missing(&Stand::folder(), Stand::folder);
}

#[test]
fn nothing_acknowledged_is_missing_from_postgresql_and_s3() {
    nothing_is_missing(&Stand::shared(), Stand::folder);
}
