//! The format's protocol as a table of requests and expected responses.
//!
//! `cargo test` runs the table in the test's own process, with a simulated host in memory. This
//! takes milliseconds. `packhouse plugins test` also runs the same rows through the component, the
//! runtime and a whole server. The rows run in order, in one repository that is empty at first.

use format_my_format::Plugin;
use packhouse_testkit::{Case, MemoryHost, run};
use serde_json::json;

fn cases() -> Vec<Case> {
    vec![
        Case::new("an unknown file is not found", "GET", "/a/b.txt", 404)
            .code("not_found")
            .contains("no such file"),
        Case::new("a file is stored", "PUT", "/a/b.txt", 201).body("hello"),
        Case::new("a stored file is fetched", "GET", "/a/b.txt", 200)
            .content("hello")
            .header("cache-control", "no-cache"),
        Case::new("HEAD has no content", "HEAD", "/a/b.txt", 200).content(""),
        Case::new("a file is replaced", "PUT", "/a/b.txt", 201).body("hello again"),
        Case::new("the newest content is fetched", "GET", "/a/b.txt", 200).content("hello again"),
        Case::new("a method is refused", "POST", "/a", 405).header("allow", "DELETE, GET, HEAD, PUT"),
        Case::new("a file is removed", "DELETE", "/a/b.txt", 204),
        Case::new("a removed file cannot be removed again", "DELETE", "/a/b.txt", 404).code("not_found"),
    ]
}

#[test]
fn the_table_holds() {
    let mut files = MemoryHost::new().mount::<Plugin>("releases", "hosted", json!({}));
    run(&mut files, &cases());
}

#[test]
fn a_stored_file_is_listed_and_its_blob_is_not_collected() {
    let host = MemoryHost::new();
    let files = host.mount::<Plugin>("releases", "hosted", json!({}));
    files.put("/a/b.txt").body("hello").send().expect(201);
    host.end_grace();
    let effects = files.effects();
    assert_eq!((effects.records.len(), effects.blobs.len(), effects.shown.len()), (1, 1, 1), "{effects}");
}
