//! A proxy from outside: what its clients see and what it keeps, whatever its upstream does.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "test code: to fail is how it speaks"
)]

use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, MavenRepository, Response, Server, digests, payload};
use serde_json::{Value, json};

const JAR: &str = "org/example/a/1.0/a-1.0.jar";
const METADATA: &str = "org/example/a/maven-metadata.xml";

/// A server that may reach upstreams on this machine.
fn server() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8").start()
}

/// A Maven proxy, and a client that may read it.
struct Proxy {
    name: String,
    id: String,
    client: Client,
}

impl Proxy {
    fn of(server: &Server, upstream: &str, settings: &Value) -> Self {
        let api = Api::sign_in(server);
        let id = api.create_proxy("proxy", "maven", upstream, settings);
        let token = api.create_token(&[&id], &["read"], None);
        let client = server.anonymous().basic(packhouse_tests::server::OWNER, &token.secret);
        Self { name: "proxy".to_owned(), id, client }
    }

    #[track_caller]
    fn get(&self, path: &str) -> Response {
        self.client.get(&format!("/repositories/{}/{path}", self.name))
    }
}

/// What an upstream offers of one release.
fn offer(upstream: &Upstream, path: &str, bytes: &[u8]) {
    upstream
        .on(&format!("/{path}"), Answer::ok(bytes).header("Last-Modified", "Mon, 05 Jan 2026 10:00:00 GMT"));
    upstream.on(&format!("/{path}.sha1"), Answer::ok(digests::sha1(bytes)));
}

#[test]
fn a_second_packhouse_is_an_upstream() {
    let (far, near) = (Server::start(), server());
    let hosted = MavenRepository::create_with(&far, "releases", &json!({"public": true}));
    let bytes = payload::bytes(1, 3_000_000);
    hosted.put(JAR, bytes.clone()).expect(201);
    let proxy = Proxy::of(&near, &hosted.url(&far), &json!({}));

    let answer = proxy.get(JAR).expect(200);
    assert_eq!(digests::sha256(&answer.body), digests::sha256(&bytes));
    let metadata = proxy.get(METADATA).expect(200).text();
    assert!(metadata.contains("<version>1.0</version>"), "{metadata}");
    assert_eq!(proxy.get(&format!("{METADATA}.sha1")).expect(200).text(), digests::sha1(metadata.as_bytes()));
    assert_eq!(proxy.get(&format!("{JAR}.sha1")).expect(200).text(), digests::sha1(&bytes));
    proxy.get("org/example/a/2.0/a-2.0.jar").expect(404);

    drop(far);
    let kept = proxy.get(JAR).expect(200);
    assert_eq!(digests::sha256(&kept.body), digests::sha256(&bytes));
    assert_eq!(kept.header("etag"), Some(format!("\"{}\"", digests::sha256(&bytes)).as_str()));
    proxy.get(METADATA).expect(200);
    proxy.get("org/example/a/3.0/a-3.0.jar").expect(502);

    let versions = Api::sign_in(&near)
        .call("GET", &format!("/v1/repositories/{}/packages/org.example%3Aa/versions", proxy.id))
        .expect(200)
        .json();
    assert_eq!(versions["items"][0]["files"][0]["path"], JAR);
}

#[test]
fn a_file_is_fetched_once() {
    let (server, upstream) = (server(), Upstream::start());
    let bytes = payload::bytes(2, 500_000);
    offer(&upstream, JAR, &bytes);
    let proxy = Proxy::of(&server, &upstream.url(), &json!({}));
    for _ in 0..3 {
        assert_eq!(digests::sha256(&proxy.get(JAR).expect(200).body), digests::sha256(&bytes));
    }
    assert_eq!(upstream.seen().len(), 2, "{:?}", upstream.seen());
}
