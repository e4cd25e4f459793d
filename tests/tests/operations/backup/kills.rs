//! kill -9 at any moment of a backup and of a restore.

use std::path::Path;
use std::process::Child;

use packhouse_tests::server::eventually;
use tempfile::TempDir;

use super::world::{Published, Stand, files, listed, newest, place, run};

/// Kills it once there are so many files, or lets it end; whether it was killed.
fn killed_at(mut child: Child, folder: &Path, count: usize) -> bool {
    let killed = eventually("it comes so far", || {
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
fn a_backup_that_was_killed_is_none_and_the_next_goes_on_from_it() {
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
            let said = other.run(&["restore", &folder]);
            assert!(!said.success && other.is_untouched(), "{}", said.text);
        }
    }
    assert!(killed >= 3, "{killed} backups were killed before their end");
    let there = files(&content).len() as u64;
    stand.run(&["backup", &folder]).well();
    let whole = listed(&folder).into_iter().find(|backup| backup["state"] == "whole").unwrap();
    let copied = whole["manifest"]["copied_blobs"].as_u64().unwrap();
    assert!(
        0 < copied && copied + there == whole["manifest"]["blobs"].as_u64().unwrap(),
        "{copied} of {whole}"
    );
    run(&["backup", "verify", &folder]).well();
    let other = Stand::folder();
    other.run(&["restore", &folder]).well();
    published.expect(&other.server().start());
    // Whoever was killed held blobs for some minutes; what it left is removed once it has been silent for long enough.
    run(&["backup", "prune", &folder, "--keep-last", "1"]).refused("is being taken");
    for sign in files(&Path::new(&folder).join("backups")).iter().filter(|path| path.ends_with("under-way")) {
        std::fs::write(sign, "1\n").unwrap();
    }
    run(&["backup", "prune", &folder, "--keep-last", "1"]).well();
    assert_eq!(listed(&folder).len(), 1);
}

/// The states of what there is, also where there is nothing yet.
fn listed_or_none(folder: &str) -> Vec<String> {
    if !Path::new(folder).join("packhouse-backups.json").exists() {
        return Vec::new();
    }
    listed(folder).iter().map(|backup| backup["state"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_restore_that_was_killed_is_no_server_and_goes_on_when_it_is_run_again() {
    let home = TempDir::new().unwrap();
    let stand = Stand::folder();
    let published = published(&stand);
    let folder = place(&home);
    stand.run(&["backup", &folder]).well();
    let first = newest(&folder);
    stand.run(&["backup", &folder]).well();
    let other = Stand::folder();
    let mut killed = 0;
    for count in [1, 10, 30] {
        if killed_at(other.spawn(&["restore", &folder]), &other.data().join("blobs"), count) {
            killed += 1;
            let (status, said) = other.server().start_refused();
            assert!(!status.success() && said.contains("run the same `packhouse restore` again"), "{said}");
            other.run(&["restore", &folder, "--backup", &first]).refused("was broken off");
        }
    }
    assert!(killed >= 2, "{killed} restores were killed before their end");
    let said = other.run(&["restore", &folder]).well().text;
    assert!(said.contains("blobs were there already"), "{said}");
    published.expect(&other.server().start());
    other.run(&["scrub"]).well();
}
