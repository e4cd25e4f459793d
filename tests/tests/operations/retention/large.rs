//! A policy over 100,000 versions: time and memory of preview, run and undo, and the latency of
//! publishes beside them. Runs only if long tests are enabled.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use packhouse_tests::database::{Postgres, sqlite};
use packhouse_tests::race::SetOnDrop;
use packhouse_tests::server::eventually;
use packhouse_tests::{Api, MavenRepository, Server, long, skip};
use serde_json::{Value, json};

use super::{POLICIES, enforce, policy, runs};

const PACKAGES: usize = 1_000;
const VERSIONS: usize = 100;
/// Publishers that fill the repository.
const CLIENTS: usize = 32;

fn path(package: usize, version: usize, kind: &str) -> String {
    format!("org/example/p{package}/{version}/p{package}-{version}.{kind}")
}

/// Publishes a small file repeatedly until `stop` is set. Returns the time of each publish.
fn publishing(maven: &MavenRepository, name: &str, stop: &AtomicBool) -> Vec<Duration> {
    let mut took = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let (began, number) = (Instant::now(), took.len());
        maven.put(&format!("org/example/{name}/{number}/{name}-{number}.jar"), "beside").expect(201);
        took.push(began.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    took
}

fn p99(mut took: Vec<Duration>) -> (usize, Duration) {
    took.sort();
    (took.len(), took[took.len() * 99 / 100])
}

/// Does `work` while a client publishes.
fn beside<T>(maven: &MavenRepository, name: &str, work: impl FnOnce() -> T) -> (T, (usize, Duration)) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publishing(maven, name, &stop));
        let ended = SetOnDrop(&stop);
        let done = work();
        drop(ended);
        (done, p99(publishing.join().unwrap()))
    })
}

fn measured(server: &Server, count: impl Fn(&str) -> String) {
    let api = Api::sign_in(server);
    let maven = MavenRepository::create(server, "jars");
    let began = Instant::now();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let maven = &maven;
            scope.spawn(move || {
                for package in (client..PACKAGES).step_by(CLIENTS) {
                    for version in 0..VERSIONS {
                        maven.put(&path(package, version, "jar"), format!("{package} {version}")).expect(201);
                    }
                }
            });
        }
    });
    println!("published {} versions in {:?}", PACKAGES * VERSIONS, began.elapsed());
    let records =
        "select count(*), sum(length(value)) from records where key not like '%//t' and key like '%/p%'";
    let files = "select count(*), sum(size), count(distinct digest) from files where name like '%:p%'";
    let before = (count(records), count(files));
    let quiet = beside(&maven, "quiet", || std::thread::sleep(Duration::from_secs(20))).1;
    println!("publishes with nothing beside them: {quiet:?}");
    let idle = server.rss();
    let id = policy(
        &api,
        json!([maven.id]),
        json!({"match": {"packages": ["*:p*"]}, "keep": {"newest": 5}, "max_deletes": 100_000}),
    );
    let began = Instant::now();
    let ((previewed, peak), previewing) = beside(&maven, "xpreview", || {
        server.watched(|| api.call("POST", &format!("{POLICIES}/{id}/preview")).expect(200).json())
    });
    println!(
        "preview in {:?}, {} MiB more at its peak; publishes beside it: {previewing:?}",
        began.elapsed(),
        peak.saturating_sub(idle) >> 20
    );
    let gone = PACKAGES * (VERSIONS - 5);
    assert_eq!((&previewed["versions"], previewed["items"].as_array().unwrap().len()), (&json!(gone), gone));
    enforce(&api, &id);
    let began = Instant::now();
    let ((done, peak), running) = beside(&maven, "xrun", || {
        server.watched(|| {
            api.call("POST", &format!("{POLICIES}/{id}/runs")).expect(202);
            loop {
                if let Some(run) = runs(&api, &id).into_iter().find(|run| run["ended_at"].is_i64()) {
                    return run;
                }
                std::thread::sleep(Duration::from_millis(500));
            }
        })
    });
    println!(
        "run in {:?}, {} MiB more at its peak; publishes beside it: {running:?}",
        began.elapsed(),
        peak.saturating_sub(idle) >> 20
    );
    assert_eq!(
        (&done["deleted"], &done["error"], &done["skipped"]),
        (&json!(gone), &Value::Null, &json!([]))
    );
    // The trash contains exactly the versions of the preview.
    let mut named: Vec<String> = Vec::new();
    for item in previewed["items"].as_array().unwrap() {
        named.push(format!("{}|{}", item["package"].as_str().unwrap(), item["version"].as_str().unwrap()));
    }
    named.sort();
    let listed = count("select name || '|' || version from trash where open = 0");
    let mut listed: Vec<&str> = listed.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    listed.sort_unstable();
    assert_eq!(listed, named);
    let began = Instant::now();
    let (undone, undoing) = beside(&maven, "xundo", || undo(&api, &maven.id));
    println!("undo of {undone} in {:?}; publishes beside it: {undoing:?}", began.elapsed());
    assert_eq!((count(records), count(files)), before, "the undo restores each record");
    eventually("nothing is left in the trash", || {
        (count("select count(*) from trash").trim() == "0").then_some(())
    });
    for (beside, publishes) in
        [("nothing", quiet), ("preview", previewing), ("run", running), ("undo", undoing)]
    {
        assert!(publishes.1 < Duration::from_secs(1), "beside {beside}: {publishes:?}");
    }
}

/// Restores everything with concurrent requests. Returns the number of restored versions.
fn undo(api: &Api, repository: &str) -> usize {
    let mut undone = 0;
    loop {
        let listed =
            api.call("GET", &format!("/v1/repositories/{repository}/trash?limit=200")).expect(200).json();
        let entries = listed["items"].as_array().unwrap().clone();
        if entries.is_empty() {
            return undone;
        }
        undone += entries.len();
        std::thread::scope(|scope| {
            for some in entries.chunks(entries.len().div_ceil(16)) {
                scope.spawn(move || {
                    for entry in some {
                        let id = entry["id"].as_str().unwrap();
                        api.call("POST", &format!("/v1/repositories/{repository}/trash/{id}/restore"))
                            .expect(200);
                    }
                });
            }
        });
    }
}

#[test]
fn a_hundred_thousand_versions() {
    if long() {
        let server = Server::start();
        measured(&server, |sql| sqlite(&server, sql));
    }
}

#[test]
fn a_hundred_thousand_versions_with_postgresql() {
    if !long() {
        return;
    }
    match Postgres::start() {
        Ok(postgres) => {
            let server = Server::with().arg("--database-url").arg(&postgres.url()).start();
            measured(&server, |sql| postgres.query(sql));
        }
        Err(reason) => skip("retention of 100,000 versions on PostgreSQL", &reason),
    }
}
