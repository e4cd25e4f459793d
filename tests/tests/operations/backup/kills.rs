//! Backups and restores that `kill -9` ends at any moment.

use std::path::Path;
use std::process::Child;

use packhouse_tests::server::eventually;
use tempfile::TempDir;

use super::world::{Published, Stand, files, listed, newest, place, run};

/// Kills the process once the folder has `count` files. Returns `false` if the process ended before
/// that.
fn killed_at(mut child: Child, folder: &Path, count: usize) -> bool {
    let killed = eventually("the folder has enough files", || {
        if child.try_wait().unwrap().is_some() {
            return Some(false);
        }
        (files(folder).len() >= count).then_some(true)
    });
    let _ = child.kill();
    let _ = child.wait();
    killed
}

fn published(stand: &Stand) -> Published {
    let server = stand.server().start();
    let mut published = Published::some(&server);
    for seed in 0..40 {
        published.more(&server, seed, 400_000);
    }
    published
}

#[test]
fn a_killed_backup_is_not_listed_and_the_next_one_continues_it() {
    let home = TempDir::new().unwrap();
    let stand = Stand::folder();
    let published = published(&stand);
    let folder = place(&home);
    let content = Path::new(&folder).join("content");
    let mut killed = 0;
    for count in [0, 1, 8, 25] {
        if killed_at(stand.spawn(&["backup", &folder]), &content, count) {
            killed += 1;
            assert!(listed_or_none(&folder).iter().all(|state| state != "whole"));
            let other = Stand::folder();
            let output = other.run(&["restore", &folder]);
            assert!(!output.success && other.is_untouched(), "{}", output.text);
        }
    }
    assert!(killed >= 3, "{killed} backups were killed before their end");
    let there = files(&content).len() as u64;
    stand.run(&["backup", &folder]).success();
    let whole = listed(&folder).into_iter().find(|backup| backup["state"] == "whole").unwrap();
    let copied = whole["manifest"]["copied_blobs"].as_u64().unwrap();
    assert!(
        0 < copied && copied + there == whole["manifest"]["blobs"].as_u64().unwrap(),
        "{copied} of {whole}"
    );
    run(&["backup", "verify", &folder]).success();
    let other = Stand::folder();
    other.run(&["restore", &folder]).success();
    published.expect(&other.server().start());
    // A killed backup still protects its blobs for some minutes. `prune` removes the files of a
    // killed backup after some time without a sign of life.
    run(&["backup", "prune", &folder, "--keep-last", "1"]).refused("is being taken");
    for sign in files(&Path::new(&folder).join("backups")).iter().filter(|path| path.ends_with("under-way")) {
        std::fs::write(sign, "1\n").unwrap();
    }
    run(&["backup", "prune", &folder, "--keep-last", "1"]).success();
    assert_eq!(listed(&folder).len(), 1);
}

/// The states of the backups in a folder; empty while the folder has none.
fn listed_or_none(folder: &str) -> Vec<String> {
    if !Path::new(folder).join("packhouse-backups.json").exists() {
        return Vec::new();
    }
    listed(folder).iter().map(|backup| backup["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_killed_restore_does_not_serve_and_continues_when_it_is_run_again() {
    let home = TempDir::new().unwrap();
    let stand = Stand::folder();
    let published = published(&stand);
    let folder = place(&home);
    stand.run(&["backup", &folder]).success();
    let first = newest(&folder);
    stand.run(&["backup", &folder]).success();
    let other = Stand::folder();
    let mut killed = 0;
    for count in [1, 10, 30] {
        if killed_at(other.spawn(&["restore", &folder]), &other.data().join("blobs"), count) {
            killed += 1;
            let (status, output) = other.server().start_refused();
            assert!(
                !status.success() && output.contains("run the same `packhouse restore` again"),
                "{output}"
            );
            other.run(&["restore", &folder, "--backup", &first]).refused("was interrupted");
        }
    }
    assert!(killed >= 2, "{killed} restores were killed before their end");
    let output = other.run(&["restore", &folder]).success().text;
    assert!(output.contains("blobs already existed"), "{output}");
    published.expect(&other.server().start());
    other.run(&["scrub"]).success();
}
