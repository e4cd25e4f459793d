//! A Maven proxy over every kind of upstream. The upstreams differ in how they state checksums and
//! in their responses for missing files. The tests check the results for clients.

use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::upstream::{Answer, Gate, Upstream};
use packhouse_tests::{Api, Client, Response, Server, digests, payload};
use serde_json::{Value, json};

struct MavenProxyFixture {
    server: Server,
    upstream: Upstream,
    client: Client,
    id: String,
}

impl MavenProxyFixture {
    fn new(settings: &Value) -> Self {
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let (upstream, api) = (Upstream::start(), Api::sign_in(&server));
        let id = api.create_proxy("proxy", "maven", &upstream.url(), settings);
        let token = api.create_token(&[&id], &["read"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        Self { server, upstream, client, id }
    }

    #[track_caller]
    fn get(&self, path: &str) -> Response {
        self.client.get(&format!("/repositories/proxy/{path}"))
    }

    fn on(&self, path: &str, answer: Answer) {
        self.upstream.on(&format!("/{path}"), answer);
    }

    /// Returns the paths of the cached files, without checksums.
    fn cached_paths(&self) -> Vec<String> {
        let path = format!("/v1/repositories/{}/cache", self.id);
        let view = Api::sign_in(&self.server).call("GET", &path).expect(200).json();
        let files = view["items"].as_array().unwrap().iter().filter(|item| item["method"] == "GET");
        let paths = files.map(|item| item["path"].as_str().unwrap().to_owned());
        paths.filter(|path| path.ends_with(".jar") || path.ends_with(".pom")).collect()
    }
}

/// Returns a page for people. The page is longer than any checksum file and contains a word that
/// looks like a SHA-1.
fn page() -> Answer {
    let commit = digests::sha1(b"a commit");
    let page =
        format!("<!DOCTYPE html><html><body>Not found. Build {commit} {}</body></html>", "x ".repeat(4000));
    Answer::ok(page).header("Content-Type", "text/html; charset=utf-8")
}

/// Returns the files that an upstream serves beside a file with these bytes. Each has an extension,
/// such as `sha1`, and a response.
type Beside = fn(&[u8]) -> Vec<(&'static str, Answer)>;

/// Ways in which an upstream states a checksum. Each row: name, files beside the artifact, and
/// `true` if clients get the SHA-1.
const WAYS: [(&str, Beside, bool); 10] = [
    ("bare", |bytes| vec![("sha1", Answer::ok(digests::sha1(bytes)))], true),
    ("line", |bytes| vec![("sha1", Answer::ok(format!("{}\n", digests::sha1(bytes))))], true),
    ("named", |bytes| vec![("sha1", Answer::ok(format!("{}  lib-1.0.jar\r\n", digests::sha1(bytes))))], true),
    ("upper", |bytes| vec![("sha1", Answer::ok(digests::sha1(bytes).to_uppercase()))], true),
    (
        "openssl",
        |bytes| vec![("sha1", Answer::ok(format!("SHA1(lib.jar)= {}\n", digests::sha1(bytes))))],
        true,
    ),
    ("md5", |bytes| vec![("md5", Answer::ok(digests::md5(bytes)))], false),
    ("sha256", |bytes| vec![("sha256", Answer::ok(digests::sha256(bytes)))], false),
    (
        "empty-then-md5",
        |bytes| vec![("sha1", Answer::ok("")), ("md5", Answer::ok(digests::md5(bytes)))],
        false,
    ),
    (
        "page-then-md5",
        |bytes| vec![("sha1", page()), ("sha256", page()), ("md5", Answer::ok(digests::md5(bytes)))],
        false,
    ),
    (
        "gone-then-md5",
        |bytes| vec![("sha1", Answer::new(410, "")), ("md5", Answer::ok(digests::md5(bytes)))],
        false,
    ),
];

#[test]
fn checksums_are_compared_however_they_are_stated() {
    let world = MavenProxyFixture::new(&json!({}));
    let bytes = payload::bytes(1, 10_000);
    for (name, beside, states_sha1) in WAYS {
        for (version, of, status) in [("1.0", bytes.as_slice(), 200), ("2.0", b"other bytes", 502)] {
            let path = format!("org/example/{name}/{version}/{name}-{version}.jar");
            world.on(&path, Answer::ok(bytes.clone()));
            for (extension, answer) in beside(of) {
                world.on(&format!("{path}.{extension}"), answer);
            }
            let answer = world.get(&path).expect(status);
            assert_eq!(status == 200, world.cached_paths().contains(&format!("/{path}")), "{name} {version}");
            if status == 200 {
                assert_eq!(answer.body, bytes, "{name}");
                let sum = world.get(&format!("{path}.sha1"));
                match states_sha1 {
                    true => assert_eq!(sum.expect(200).text(), digests::sha1(&bytes), "{name}"),
                    false => drop(sum.expect(404)),
                }
                world.get(&format!("{path}.sha512")).expect(404);
            }
        }
    }
}

#[test]
fn a_checksum_in_a_header_saves_a_request() {
    let world = MavenProxyFixture::new(&json!({}));
    for (algorithm, of, status) in
        [("sha1", "jar", 200), ("md5", "jar", 200), ("sha256", "other", 502), ("md5", "other", 502)]
    {
        let path = format!("org/example/h/{algorithm}{of}/h-{algorithm}{of}.jar");
        let sum = digests::by_name(algorithm, of.as_bytes()).to_uppercase();
        world.on(&path, Answer::ok("jar").header(&format!("X-Checksum-{algorithm}"), &sum));
        world.get(&path).expect(status);
    }
    assert_eq!(world.upstream.requests().len(), 4, "{:?}", world.upstream.requests());
}

#[test]
fn checksums_are_requested_concurrently() {
    let (world, gate) = (MavenProxyFixture::new(&json!({})), Gate::new());
    let path = "org/example/slow/1.0/slow-1.0.jar";
    world.on(path, Answer::ok("jar"));
    world.on(&format!("{path}.sha256"), Answer::new(404, "no").silent(&gate));
    world.on(&format!("{path}.md5"), Answer::ok(digests::md5(b"jar")));
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| world.get(path));
        let md5 = format!("/{path}.md5");
        eventually("the second checksum is requested", || (world.upstream.count(&md5) == 1).then_some(()));
        gate.open();
        assert_eq!(asking.join().unwrap().expect(200).text(), "jar");
    });
}

#[test]
fn an_unreadable_checksum_is_ignored_if_the_setting_allows_it() {
    for (policy, status) in [("fail", 502), ("warn", 200)] {
        let world = MavenProxyFixture::new(&json!({"checksum_policy": policy}));
        let path = "org/example/a/1.0/a-1.0.jar";
        world.on(path, Answer::ok("jar"));
        world.on(&format!("{path}.sha1"), Answer::new(503, "no"));
        world.get(path).expect(status);
        let logged = world.server.log().contains("served a file whose checksum could not be read");
        assert_eq!(logged, policy == "warn");
    }
}

#[test]
fn files_without_any_checksum_are_served() {
    let world = MavenProxyFixture::new(&json!({}));
    let path = "org/example/bare/1.0/bare-1.0.jar";
    world.on(path, Answer::ok("jar"));
    assert_eq!(world.get(path).expect(200).text(), "jar");
    world.upstream.down(true);
    let cached = world.get(path).expect(200);
    assert_eq!(cached.header("x-checksum-sha1"), Some(digests::sha1(b"jar").as_str()));
}

#[test]
fn a_page_for_people_is_not_served_as_a_file() {
    let world = MavenProxyFixture::new(&json!({"negative_ttl_s": 0}));
    for path in
        ["org/example/a/1.0/a-1.0.jar", "org/example/a/1.0/a-1.0.pom", "org/example/a/1.0/a-1.0.jar.asc"]
    {
        world.on(path, page());
        world.get(path).expect(404);
        let head = packhouse_tests::Request::new("HEAD", &format!("/repositories/proxy/{path}"));
        world.client.send(head).expect(404);
        world.get(&format!("{path}.sha1")).expect(404);
        assert!(world.cached_paths().is_empty(), "{:?}", world.cached_paths());
        world.on(path, Answer::ok("bytes"));
        assert_eq!(world.get(path).expect(200).text(), "bytes");
        world.upstream.forget(&format!("/{path}"));
        Api::sign_in(&world.server)
            .call("DELETE", &format!("/v1/repositories/{}/cache?path=/", world.id))
            .expect(204);
    }
    let page_itself = "org/example/a/1.0/index.html";
    world.on(page_itself, page());
    world.get(page_itself).expect(200);
}

#[test]
fn metadata_without_checksums_get_computed_ones() {
    let world = MavenProxyFixture::new(&json!({}));
    let document = "<metadata><groupId>org.example</groupId><artifactId>a</artifactId><versioning><release>1.0</release>\
                    <versions><version>1.0</version></versions></versioning></metadata>";
    let path = "org/example/a/maven-metadata.xml";
    world.on(path, Answer::ok(document));
    // The checksum file may belong to older bytes, so the proxy does not request it.
    world.on(&format!("{path}.sha1"), Answer::ok(digests::sha1(b"of yesterday")));
    let served = world.get(path).expect(200).body;
    for algorithm in ["md5", "sha1", "sha256", "sha512"] {
        let sum = world.get(&format!("{path}.{algorithm}")).expect(200).text();
        assert_eq!(sum, digests::by_name(algorithm, &served), "{algorithm}");
    }
    assert_eq!(world.upstream.requests().len(), 1, "{:?}", world.upstream.requests());
}
