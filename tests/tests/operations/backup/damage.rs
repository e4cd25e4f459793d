//! Damage to a backup: `verify` names it, and `restore` writes nothing.

use std::path::{Path, PathBuf};

use packhouse_tests::server::eventually;
use tempfile::TempDir;

use super::world::{Published, Stand, files, listed, newest, place, run};

struct DamageFixture {
    home: TempDir,
    stand: Stand,
    folder: String,
}

impl DamageFixture {
    fn new() -> DamageFixture {
        let (home, stand) = (TempDir::new().unwrap(), Stand::folder());
        let server = stand.server().start();
        Published::some(&server);
        let folder = place(&home);
        stand.run(&["backup", &folder]).success();
        DamageFixture { home, stand, folder }
    }

    /// Fails unless `verify` names the damage and `restore` writes nothing.
    #[track_caller]
    fn is_refused(&self, words: &str) {
        run(&["backup", "verify", &self.folder]).refused(words);
        let other = Stand::folder();
        other.run(&["restore", &self.folder]).refused(words);
        assert!(other.is_untouched(), "something was written");
    }

    fn below(&self, path: &str) -> PathBuf {
        Path::new(&self.folder).join(path)
    }

    /// The largest blob.
    fn blob(&self) -> PathBuf {
        let size = |path: &PathBuf| path.metadata().unwrap().len();
        files(&self.below("content")).into_iter().max_by_key(size).unwrap()
    }
}

fn flip(path: &Path) -> Vec<u8> {
    let whole = std::fs::read(path).unwrap();
    let mut changed = whole.clone();
    let at = changed.len() / 2;
    changed[at] ^= 1;
    std::fs::write(path, changed).unwrap();
    whole
}

#[test]
fn each_damage_is_named_by_verify_and_refused_by_restore() {
    let scene = DamageFixture::new();
    let id = newest(&scene.folder);
    let blob = scene.blob();
    let name = blob.file_name().unwrap().to_str().unwrap().to_owned();
    let own = |file: &str| scene.below(&format!("backups/{id}/{file}"));
    for (path, words) in [
        (blob.clone(), name.as_str()),
        (own("records.rows"), "records.rows"),
        (own("blobs.rows"), "blobs.rows"),
        (own("blobs.list"), "blobs.list"),
    ] {
        let whole = flip(&path);
        scene.is_refused(words);
        std::fs::remove_file(&path).unwrap();
        scene.is_refused(words);
        std::fs::write(&path, &whole[..whole.len() / 3]).unwrap();
        scene.is_refused(words);
        std::fs::write(&path, whole).unwrap();
        run(&["backup", "verify", &scene.folder]).success();
    }
    let manifest = own("manifest.json");
    let whole = flip(&manifest);
    run(&["backup", "verify", &scene.folder]).refused("the manifest is damaged");
    scene.stand.run(&["restore", &scene.folder, "--backup", &id]).refused("the manifest is damaged");
    assert_eq!(listed(&scene.folder)[0]["state"], "damaged");
    // A prune cannot know which blobs a damaged backup needs, so it removes nothing.
    run(&["backup", "prune", &scene.folder, "--keep-last", "1"]).refused("is damaged");
    std::fs::write(&manifest, whole).unwrap();

    // The next backup copies a truncated blob again.
    std::fs::write(&blob, b"short").unwrap();
    scene.stand.run(&["backup", &scene.folder]).success();
    run(&["backup", "verify", &scene.folder]).success();
    assert_eq!(listed(&scene.folder)[1]["manifest"]["copied_blobs"], 1);
}

#[test]
fn a_backup_without_a_manifest_is_not_listed_or_restored() {
    let scene = DamageFixture::new();
    let id = newest(&scene.folder);
    std::fs::remove_file(scene.below(&format!("backups/{id}/manifest.json"))).unwrap();
    assert_eq!(listed(&scene.folder)[0]["state"], "broken_off");
    scene.is_refused("no complete backup at this location");
    let other = Stand::folder();
    other.run(&["restore", &scene.folder, "--backup", &id]).refused("was interrupted");
    other.run(&["restore", &scene.folder, "--backup", "x"]).refused("there is no backup x");
    assert!(other.is_untouched());
    assert!(scene.home.path().exists());
}

#[test]
fn a_blob_damaged_at_its_source_is_named_and_no_backup_is_made() {
    let (home, stand) = (TempDir::new().unwrap(), Stand::folder());
    let server = stand.server().start();
    Published::some(&server);
    let folder = place(&home);
    let blob = eventually("there is a blob", || files(&stand.data().join("blobs")).into_iter().next());
    let whole = flip(&blob);
    stand.run(&["backup", &folder]).refused("failed to copy the blob sha256:");
    assert!(listed(&folder).iter().all(|backup| backup["state"] != "whole"));
    std::fs::write(&blob, whole).unwrap();
    stand.run(&["backup", &folder]).success();
    run(&["backup", "verify", &folder]).success();
}
