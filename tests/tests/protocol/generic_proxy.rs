//! A proxy of plain files. `HEAD` returns the same headers as `GET`, and a client with a current
//! copy gets 304.

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
        assert_eq!(
            head().header("content-length"),
            Some(length.as_str()),
            "before anything is cached: {name}"
        );
        files.client.get(&path).expect(200);
        let (get, head) = (files.client.get(&path).expect(200), head());
        for header in ["etag", "accept-ranges", "content-length", "last-modified", "content-type"] {
            assert!(get.header(header).is_some(), "{name}: {header}");
            assert_eq!(head.header(header), get.header(header), "{name}: {header}");
        }
    }
}

#[test]
fn a_date_is_compared_with_the_date_of_the_file() {
    let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let upstream = Upstream::start();
    let (date, before) = ("Fri, 02 Jan 2026 03:04:05 GMT", "Fri, 02 Jan 2026 03:04:04 GMT");
    let bytes = payload::bytes(1, 1_000);
    upstream.on("/a/file.bin", Answer::ok(bytes.clone()).header("Last-Modified", date));
    // The first proxy answers from its cache. The second one requests the upstream again.
    for (name, settings) in [("kept", json!({})), ("asked-again", json!({"metadata_ttl_s": 0}))] {
        let files = FormatRepository::proxy(&server, "generic", name, &upstream.url(), &settings);
        let ask = |headers: &[(&str, &str)]| {
            let request = Request::new("GET", &files.path("a/file.bin"));
            let request =
                headers.iter().fold(request, |request, (header, value)| request.header(header, value));
            files.client.send(request)
        };
        assert_eq!(ask(&[]).expect(200).body, bytes, "{name}");
        assert_eq!(ask(&[]).expect(200).header("last-modified"), Some(date), "{name}");
        assert!(ask(&[("If-Modified-Since", date)]).expect(304).body.is_empty(), "{name}");
        assert_eq!(ask(&[("If-Modified-Since", before)]).expect(200).body, bytes, "{name}");
        let range = ("Range", "bytes=10-19");
        let part = ask(&[range, ("If-Range", date)]).expect(206);
        assert_eq!(part.header("content-range"), Some("bytes 10-19/1000"), "{name}");
        assert_eq!(part.body, bytes[10..20], "{name}");
        assert_eq!(ask(&[range, ("If-Range", before)]).expect(200).body, bytes, "{name}");
    }
}
