//! The format's protocol as a table: what clients ask, and what must come back.
//!
//! `cargo test` runs it natively over a host in memory, in milliseconds. `packhouse plugins test` runs the same rows through the
//! component, the runtime and the whole server as well. Rows run in their order, in one repository that is empty at first.

use format_my_format::Plugin;
use packhouse_testkit::{Case, MemoryHost, run};
use serde_json::json;

fn cases() -> Vec<Case> {
    vec![
        Case::new("nothing is there at first", "GET", "/a/b.txt", 404).code("not_found").contains("no such file"),
        Case::new("a file is stored", "PUT", "/a/b.txt", 201).body("hello"),
        Case::new("and fetched", "GET", "/a/b.txt", 200)
            .content("hello")
            .header("cache-control", "no-cache"),
        Case::new("HEAD has no content", "HEAD", "/a/b.txt", 200).content(""),
        Case::new("it is replaced", "PUT", "/a/b.txt", 201).body("hello again"),
        Case::new("by what was put last", "GET", "/a/b.txt", 200).content("hello again"),
        Case::new("a method is refused", "POST", "/a", 405).header("allow", "DELETE, GET, HEAD, PUT"),
        Case::new("it is removed", "DELETE", "/a/b.txt", 204),
        Case::new("once", "DELETE", "/a/b.txt", 404).code("not_found"),
    ]
}

#[test]
fn the_table_holds() {
    let mut files = MemoryHost::new().mount::<Plugin>("releases", "hosted", json!({}));
    run(&mut files, &cases());
}

#[test]
fn what_is_put_is_shown_and_kept_alive() {
    let host = MemoryHost::new();
    let files = host.mount::<Plugin>("releases", "hosted", json!({}));
    files.put("/a/b.txt").body("hello").send().expect(201);
    host.end_grace();
    let effects = files.effects();
    assert_eq!((effects.records.len(), effects.blobs.len(), effects.shown.len()), (1, 1, 1), "{effects}");
}
