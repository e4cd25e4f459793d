//! A proxy with every behaviour of its upstream: responses to clients, and the cache.

use packhouse_tests::upstream::{Answer, Gate, Upstream};
use packhouse_tests::{Api, Client, MavenRepository, Response, Server, digests, payload};
use serde_json::{Value, json};
use sha2::Digest as _;
use std::sync::atomic::{AtomicUsize, Ordering};

const JAR: &str = "org/example/a/1.0/a-1.0.jar";
const METADATA: &str = "org/example/a/maven-metadata.xml";

/// Starts a server that may connect to upstreams on this machine.
fn server() -> Server {
    Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start()
}

/// A Maven proxy, and a client that may read it.
struct MavenProxy {
    name: String,
    id: String,
    client: Client,
}

impl MavenProxy {
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

/// Offers the files of one release at an upstream.
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
    let proxy = MavenProxy::of(&near, &hosted.url(&far), &json!({}));

    let answer = proxy.get(JAR).expect(200);
    assert_eq!(digests::sha256(&answer.body), digests::sha256(&bytes));
    let metadata = proxy.get(METADATA).expect(200).text();
    assert!(metadata.contains("<version>1.0</version>"), "{metadata}");
    assert_eq!(proxy.get(&format!("{METADATA}.sha1")).expect(200).text(), digests::sha1(metadata.as_bytes()));
    assert_eq!(proxy.get(&format!("{JAR}.sha1")).expect(200).text(), digests::sha1(&bytes));
    proxy.get("org/example/a/2.0/a-2.0.jar").expect(404);

    drop(far);
    let cached = proxy.get(JAR).expect(200);
    assert_eq!(digests::sha256(&cached.body), digests::sha256(&bytes));
    assert_eq!(cached.header("etag"), Some(format!("\"{}\"", digests::sha256(&bytes)).as_str()));
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
    let proxy = MavenProxy::of(&server, &upstream.url(), &json!({}));
    for _ in 0..3 {
        assert_eq!(digests::sha256(&proxy.get(JAR).expect(200).body), digests::sha256(&bytes));
    }
    assert_eq!(upstream.requests().len(), 2, "{:?}", upstream.requests());
}

#[test]
fn many_clients_of_one_uncached_file_share_one_streamed_request() {
    const CLIENTS: usize = 64;
    const SIZE: usize = 100_000_000;
    let (server, upstream) = (server(), Upstream::start());
    let (bytes, gate) = (payload::bytes(3, SIZE), Gate::new());
    offer(&upstream, JAR, &bytes);
    let date = "Mon, 05 Jan 2026 10:00:00 GMT";
    let answer = Answer::ok(bytes.clone()).header("Last-Modified", date);
    upstream.on(&format!("/{JAR}"), answer.gated(SIZE / 2, &gate));
    let proxy = MavenProxy::of(&server, &upstream.url(), &json!({}));
    proxy.get("org/example/warm/1/warm-1.jar").expect(404);
    let (before, expected) = (server.rss(), digests::sha256(&bytes));
    let started = AtomicUsize::new(0);
    let path = format!("/repositories/{}/{JAR}", proxy.name);
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let (mut hash, mut received) = (sha2::Sha256::new(), 0);
                    let answer = proxy.client.get_to(&path, &mut |piece: &[u8]| {
                        if received == 0 && started.fetch_add(1, Ordering::SeqCst) + 1 == CLIENTS {
                            // At this moment each client has the first bytes, and the upstream
                            // still holds back half of the file.
                            gate.open();
                        }
                        received += piece.len();
                        hash.update(piece);
                    });
                    assert_eq!((answer.expect("the response is complete").status, received), (200, SIZE));
                    hex::encode(hash.finalize())
                })
            })
            .collect();
        for client in clients {
            assert_eq!(client.join().expect("a client"), expected);
        }
    });
    assert_eq!(upstream.count(&format!("/{JAR}")), 1);
    let grown = server.peak_rss().saturating_sub(before);
    assert!(grown < 96 << 20, "{} MiB for {CLIENTS} clients", grown >> 20);
}

#[test]
fn a_group_merges_its_members_and_hides_upstream_names_behind_hosted_ones() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = MavenProxy::of(&server, &upstream.url(), &json!({}));
    let hosted = MavenRepository::create(&server, "hosted");
    hosted.put(JAR, "ours").expect(201);
    let document = |versions: &[&str]| {
        let list: String = versions.iter().map(|one| format!("<version>{one}</version>")).collect();
        format!("<metadata><versioning><versions>{list}</versions></versioning></metadata>")
    };
    upstream.on("/org/example/a/maven-metadata.xml", Answer::ok(document(&["99"])));
    offer(&upstream, "org/example/a/99/a-99.jar", b"theirs");
    upstream.on("/com/other/b/maven-metadata.xml", Answer::ok(document(&["1"])));
    offer(&upstream, "com/other/b/1/b-1.jar", b"b");

    let api = Api::sign_in(&server);
    let body = json!({"name": "all", "format": "maven", "kind": "group", "members": [hosted.id, proxy.id]});
    let group = api.post("/v1/repositories", &body).expect(201).field("id");
    let token = api.create_token(&[&group, &hosted.id, &proxy.id], &["read"], None);
    let client = server.anonymous().basic(packhouse_tests::server::OWNER, &token.secret);
    let get = |path: &str| client.get(&format!("/repositories/all/{path}"));
    assert_eq!(get(JAR).expect(200).text(), "ours");
    assert!(!get("org/example/a/maven-metadata.xml").expect(200).text().contains("99"));
    get("org/example/a/99/a-99.jar").expect(404);
    assert_eq!(get("com/other/b/1/b-1.jar").expect(200).text(), "b");
    let merged = get("com/other/b/maven-metadata.xml").expect(200).text();
    assert_eq!(
        get("com/other/b/maven-metadata.xml.sha1").expect(200).text(),
        digests::sha1(merged.as_bytes())
    );
    let refused = client.put("/repositories/all/x/y.jar", "x").expect(405);
    assert_eq!(refused.field("code"), "writes_not_permitted_on_group");
}

#[test]
fn two_upstreams_are_merged_until_a_hosted_member_has_the_name() {
    let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
    let (api, upstreams) = (Api::sign_in(&server), [Upstream::start(), Upstream::start()]);
    let hosted = MavenRepository::create(&server, "hosted");
    for (upstream, versions) in upstreams.iter().zip([["1.0", "1.9"], ["1.9", "1.10"]]) {
        upstream.on(&format!("/{METADATA}"), Answer::ok(packhouse_tests::proxy::metadata(&versions)));
        for version in versions {
            let path = format!("org/example/a/{version}/a-{version}.jar");
            offer(upstream, &path, format!("{version} of {}", upstream.url()).as_bytes());
        }
    }
    let [first, second] = [0, 1].map(|at| {
        api.create_proxy(&format!("proxy{at}"), "maven", &upstreams[at].url(), &json!({"metadata_ttl_s": 0}))
    });
    let body =
        json!({"name": "all", "format": "maven", "kind": "group", "members": [first, hosted.id, second]});
    let group = api.post("/v1/repositories", &body).expect(201).field("id");
    let token = api.create_token(&[&group, &hosted.id, &first, &second], &["read"], None);
    let client = server.anonymous().basic(packhouse_tests::server::OWNER, &token.secret);
    let get = |path: &str| client.get(&format!("/repositories/all/{path}"));
    let versions = || {
        let text = get(METADATA).expect(200).text();
        assert_eq!(get(&format!("{METADATA}.sha1")).expect(200).text(), digests::sha1(text.as_bytes()));
        let parts = text.split("<version>").skip(1);
        parts.map(|part| part.split('<').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(versions(), ["1.0", "1.9", "1.10"]);
    // The group serves a file from the first member that has it.
    let of = |version: &str| get(&format!("org/example/a/{version}/a-{version}.jar"));
    assert_eq!(of("1.9").expect(200).text(), format!("1.9 of {}", upstreams[0].url()));
    assert_eq!(of("1.10").expect(200).text(), format!("1.10 of {}", upstreams[1].url()));

    hosted.put("org/example/a/0.1/a-0.1.jar", "ours").expect(201);
    let requests = upstreams.each_ref().map(|upstream| upstream.requests().len());
    assert_eq!(versions(), ["0.1"]);
    assert_eq!(of("0.1").expect(200).text(), "ours");
    of("1.9").expect(404);
    assert_eq!(
        upstreams.each_ref().map(|upstream| upstream.requests().len()),
        requests,
        "no upstream gets a request"
    );
}
