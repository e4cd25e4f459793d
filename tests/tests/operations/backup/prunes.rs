//! Later backups copy only new blobs, and a prune keeps the blobs that the remaining backups need.

use tempfile::TempDir;

use super::world::{Published, Stand, files, listed, newest, place, run};

#[test]
fn only_new_blobs_are_copied_and_a_prune_removes_only_unreferenced_ones() {
    let home = TempDir::new().unwrap();
    let stand = Stand::folder();
    let server = stand.server().start();
    let mut published = Published::some(&server);
    let folder = place(&home);
    let count = || files(format!("{folder}/content").as_ref()).len() as u64;
    stand.run(&["backup", &folder]).success();
    let first = newest(&folder);
    let manifest = |at: usize| listed(&folder)[at]["manifest"].clone();
    assert_eq!(manifest(0)["copied_blobs"].as_u64(), Some(count()));
    assert_eq!(manifest(0)["blobs"], manifest(0)["copied_blobs"]);
    let at_first = published.clone();

    published.more(&server, 1, 100_000);
    published.more(&server, 2, 10);
    stand.run(&["backup", &folder]).success();
    assert_eq!(
        (manifest(1)["copied_blobs"].as_u64(), manifest(1)["copied_bytes"].as_u64()),
        (Some(2), Some(100_010))
    );
    stand.run(&["backup", &folder]).success();
    assert_eq!(manifest(2)["copied_blobs"], 0);

    // A restored backup does not contain content that clients published after it.
    let old = Stand::folder();
    old.run(&["restore", &folder, "--backup", &first]).success();
    let restored = old.server().start();
    at_first.expect(&restored);
    let (path, _) = published.files.last().unwrap();
    published.client(&restored).get(path).expect(404);
    drop(restored);

    // A prune removes only blobs that no remaining backup references. Here this is one blob, a file
    // that a client published to the restored server.
    let other = Stand::folder();
    other.run(&["restore", &folder, "--backup", &first]).success();
    let server = other.server().start();
    at_first.clone().more(&server, 7, 70_000);
    other.run(&["backup", &folder]).success();
    drop(server);
    let before = count();
    stand.run(&["backup", &folder]).success();
    run(&["backup", "prune", &folder]).refused("--keep-last");
    let output = run(&["backup", "prune", &folder, "--keep-last", "1", "--dry-run"]).success().text;
    assert!(output.contains("would remove 1 blobs of 70000 bytes; 1 backups remain"), "{output}");
    assert_eq!((count(), listed(&folder).len()), (before, 5));
    let output = run(&["backup", "prune", &folder, "--keep-last", "9", "--keep-days", "1"]).success().text;
    assert!(output.contains("removed 0 blobs of 0 bytes; 5 backups remain"), "{output}");
    run(&["backup", "prune", &folder, "--keep-last", "1"]).success();
    assert_eq!((count(), listed(&folder).len()), (before - 1, 1));
    assert!(
        files(format!("{folder}/backups").as_ref())
            .iter()
            .all(|path| path.to_str().unwrap().contains(&newest(&folder)))
    );
    run(&["backup", "verify", &folder]).success();
    let last = Stand::folder();
    last.run(&["restore", &folder]).success();
    published.expect(&last.server().start());
}
