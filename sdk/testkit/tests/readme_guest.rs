//! Tests of the example in plugins/README.md: the README quotes the source of the example, and the
//! example behaves as the README says.

#[path = "../../../tests/guests/raw/src/lib.rs"]
#[expect(unreachable_pub, reason = "in the guest it is the crate's root")]
mod raw;

use packhouse_testkit::{Case, MemoryHost, run};
use raw::Raw;
use serde_json::json;

#[test]
fn the_readme_quotes_the_guest() {
    let readme = include_str!("../../../plugins/README.md");
    let guest = include_str!("../../../tests/guests/raw/src/lib.rs");
    assert!(readme.contains(guest), "plugins/README.md does not quote tests/guests/raw/src/lib.rs as it is");
}

#[test]
fn files_are_stored_fetched_and_removed() {
    let host = MemoryHost::new();
    let mut files = host.mount::<Raw>("files", "hosted", json!({}));
    let table = [
        Case::new("nothing is there at first", "GET", "/a/b.txt", 404).code("not_found"),
        Case::new("a file is stored", "PUT", "/a/b.txt", 201).body("hello"),
        Case::new("and fetched", "GET", "/a/b.txt", 200).content("hello").header("cache-control", "no-cache"),
        Case::new("HEAD has no content", "HEAD", "/a/b.txt", 200).content(""),
        Case::new("a folder is not a file", "GET", "/a/", 404),
        Case::new("it is replaced", "PUT", "/a/b.txt", 201).body("hello again"),
        Case::new("a segment is decoded once", "PUT", "/100%25%2041", 201).body(""),
        Case::new("a path has its limit", "PUT", &format!("/{}", "x".repeat(1025)), 400),
        Case::new("the root has no rows", "GET", "/", 404),
        Case::new("a method is refused", "POST", "/a", 405).header("allow", "DELETE, GET, HEAD, PUT"),
    ];
    run(&mut files, &table);
    let effects = files.effects();
    let first = "record 100% 41 \"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"";
    assert_eq!(effects.to_string().lines().next(), Some(first));
    assert_eq!(effects.records.len(), 2);
    assert_eq!(effects.blobs.len(), 3, "the replaced blob is still in its grace period");
    host.end_grace();
    assert_eq!(files.effects().blobs.len(), 2);
    files.delete("/a/b.txt").send().expect(204);
    files.delete("/a/b.txt").send().expect(404);
    assert_eq!(files.effects().shown.len(), 1);
}
