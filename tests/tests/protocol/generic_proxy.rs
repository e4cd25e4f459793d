//! A proxy of files: a `HEAD` tells of a file what a `GET` does.

use packhouse_tests::repository::FormatRepository;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Request, Server, payload};
use serde_json::json;

#[test]
fn a_head_has_the_headers_of_a_get() {
    let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let upstream = Upstream::start();
    let settings = json!({"metadata_ttl_s": 0});
    let files = FormatRepository::proxy(&server, "generic", "files", &upstream.url(), &settings);
    for (name, length) in [("small.bin", 1_000), ("large.bin", 1_000_000)] {
        let answer = Answer::ok(payload::bytes(1, length)).header("ETag", "\"1\"");
        let answer = answer.header("Last-Modified", "Sat, 21 Nov 2026 05:01:40 GMT");
        upstream.on(&format!("/a/{name}"), answer);
        let path = files.path(&format!("a/{name}"));
        let head = || files.client.send(Request::new("HEAD", &path)).expect(200);
        let length = length.to_string();
        assert_eq!(head().header("content-length"), Some(length.as_str()), "before anything is kept: {name}");
        files.client.get(&path).expect(200);
        let (get, head) = (files.client.get(&path).expect(200), head());
        for header in ["etag", "accept-ranges", "content-length", "last-modified", "content-type"] {
            assert!(get.header(header).is_some(), "{name}: {header}");
            assert_eq!(head.header(header), get.header(header), "{name}: {header}");
        }
    }
}
