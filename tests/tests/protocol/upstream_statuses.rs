//! The meaning of an upstream's status in every format: not found, a refusal, too many requests, or
//! a failure. The tests check a proxy, a group whose other member has the file, the repository's
//! health, and its page.

use packhouse_tests::digests::{sha1, sha256};
use packhouse_tests::image_proxy;
use packhouse_tests::images::{self, MANIFEST};
use packhouse_tests::person::Person;
use packhouse_tests::proxy::{self, JAR, METADATA, World};
use packhouse_tests::server::{OWNER, PASSWORD, eventually};
use packhouse_tests::upstream::{Answer, Gate, Upstream};
use packhouse_tests::{Api, Client, Response, Server};
use serde_json::{Value, json};

/// Bytes of the one file that each upstream has.
const FILE: &[u8] = b"the bytes of a file";

/// A format's package and its file: their paths below a repository, and the function that offers
/// them.
struct FormatUpstream {
    name: &'static str,
    package: &'static str,
    file: &'static str,
    /// Sets up a working upstream. Returns its targets for the package and for the file.
    offer: fn(&Upstream) -> [String; 2],
}

const FORMATS: [FormatUpstream; 10] = [
    FormatUpstream { name: "maven", package: METADATA, file: JAR, offer: offer_maven },
    FormatUpstream { name: "npm", package: "lib", file: "lib/-/lib-1.0.0.tgz", offer: offer_npm },
    FormatUpstream {
        name: "python",
        package: "simple/lib/",
        file: "packages/lib/1.0/lib-1.0.tar.gz",
        offer: offer_python,
    },
    FormatUpstream { name: "docker", package: "lib/manifests/1", file: "", offer: offer_image },
    FormatUpstream {
        name: "cargo",
        package: "3/l/lib",
        file: "api/v1/crates/lib/1.0.0/download",
        offer: offer_crate,
    },
    FormatUpstream {
        name: "go",
        package: "example.com/lib/@v/list",
        file: "example.com/lib/@v/v1.0.0.zip",
        offer: offer_module,
    },
    FormatUpstream { name: "helm", package: "index.yaml", file: "charts/lib-1.0.0.tgz", offer: offer_chart },
    FormatUpstream { name: "rubygems", package: "info/lib", file: "gems/lib-1.0.0.gem", offer: offer_gem },
    FormatUpstream { name: "generic", package: "a/lib.bin", file: "a/lib.bin", offer: offer_generic },
    FormatUpstream {
        name: "composer",
        package: "p2/acme/lib.json",
        file: "dists/acme/lib/1.0.zip",
        offer: offer_php,
    },
];

fn offer_maven(upstream: &Upstream) -> [String; 2] {
    upstream.on(&format!("/{METADATA}"), Answer::ok(proxy::metadata(&["1.0"])));
    upstream.on(&format!("/{JAR}"), Answer::ok(FILE));
    upstream.on(&format!("/{JAR}.sha1"), Answer::ok(sha1(FILE)));
    [format!("/{METADATA}"), format!("/{JAR}")]
}

fn offer_npm(upstream: &Upstream) -> [String; 2] {
    let tarball = format!("{}/lib/-/lib-1.0.0.tgz", upstream.url());
    let dist = json!({"tarball": tarball, "shasum": sha1(FILE)});
    let version = json!({"name": "lib", "version": "1.0.0", "dist": dist});
    let packument = json!({
        "name": "lib", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version},
        "time": {"1.0.0": "2026-01-02T03:04:05.000Z"},
    });
    upstream.on("/lib", Answer::ok(packument.to_string()));
    upstream.on("/lib/-/lib-1.0.0.tgz", Answer::ok(FILE));
    ["/lib".to_owned(), "/lib/-/lib-1.0.0.tgz".to_owned()]
}

fn offer_python(upstream: &Upstream) -> [String; 2] {
    let link = format!("<a href=\"/files/lib-1.0.tar.gz#sha256={}\">lib-1.0.tar.gz</a>", sha256(FILE));
    upstream.on("/simple/lib/", Answer::ok(link).header("Content-Type", "text/html"));
    upstream.on("/files/lib-1.0.tar.gz", Answer::ok(FILE));
    ["/simple/lib/".to_owned(), "/files/lib-1.0.tar.gz".to_owned()]
}

fn offer_image(upstream: &Upstream) -> [String; 2] {
    image_proxy::offer(upstream, "lib", Some("1"), MANIFEST, &images::manifest(&[FILE]));
    let layer = image_proxy::offer_blob(upstream, "lib", FILE);
    ["/v2/lib/manifests/1".to_owned(), format!("/v2/lib/blobs/{layer}")]
}

fn offer_crate(upstream: &Upstream) -> [String; 2] {
    let line = json!({
        "name": "lib", "vers": "1.0.0", "deps": [], "cksum": sha256(FILE), "features": {}, "yanked": false,
    });
    upstream.on("/config.json", Answer::ok(json!({"dl": format!("{}/dl", upstream.url())}).to_string()));
    upstream.on("/3/l/lib", Answer::ok(format!("{line}\n")));
    upstream.on("/dl/lib/1.0.0/download", Answer::ok(FILE));
    ["/3/l/lib".to_owned(), "/dl/lib/1.0.0/download".to_owned()]
}

fn offer_module(upstream: &Upstream) -> [String; 2] {
    let info = json!({"Version": "v1.0.0", "Time": "2026-01-02T03:04:05Z"});
    upstream.on("/example.com/lib/@v/list", Answer::ok("v1.0.0\n"));
    upstream.on("/example.com/lib/@v/v1.0.0.info", Answer::ok(info.to_string()));
    upstream.on("/example.com/lib/@v/v1.0.0.zip", Answer::ok(FILE));
    ["/example.com/lib/@v/list".to_owned(), "/example.com/lib/@v/v1.0.0.zip".to_owned()]
}

fn offer_chart(upstream: &Upstream) -> [String; 2] {
    let index = format!(
        "apiVersion: v1\nentries:\n  lib:\n  - apiVersion: v2\n    name: lib\n    version: 1.0.0\n    created: \
         \"2026-01-02T03:04:05Z\"\n    digest: {}\n    urls:\n    - lib-1.0.0.tgz\n",
        sha256(FILE)
    );
    upstream.on("/index.yaml", Answer::ok(index));
    upstream.on("/lib-1.0.0.tgz", Answer::ok(FILE));
    ["/index.yaml".to_owned(), "/lib-1.0.0.tgz".to_owned()]
}

fn offer_gem(upstream: &Upstream) -> [String; 2] {
    upstream.on("/info/lib", Answer::ok(format!("---\n1.0.0 |checksum:{}\n", sha256(FILE))));
    upstream.on("/gems/lib-1.0.0.gem", Answer::ok(FILE));
    ["/info/lib".to_owned(), "/gems/lib-1.0.0.gem".to_owned()]
}

fn offer_generic(upstream: &Upstream) -> [String; 2] {
    upstream.on("/a/lib.bin", Answer::ok(FILE));
    ["/a/lib.bin".to_owned(), "/a/lib.bin".to_owned()]
}

fn offer_php(upstream: &Upstream) -> [String; 2] {
    let root = json!({"packages": [], "metadata-url": "/p2/%package%.json"});
    let url = format!("{}/files/lib-1.0", upstream.url());
    let dist = json!({"type": "zip", "url": url, "shasum": sha1(FILE), "reference": "r"});
    let version =
        json!({"name": "acme/lib", "version": "1.0", "time": "2026-01-02T03:04:05+00:00", "dist": dist});
    upstream.on("/packages.json", Answer::ok(root.to_string()));
    upstream.on("/p2/acme/lib.json", Answer::ok(json!({"packages": {"acme/lib": [version]}}).to_string()));
    upstream.on("/files/lib-1.0", Answer::ok(FILE));
    ["/p2/acme/lib.json".to_owned(), "/files/lib-1.0".to_owned()]
}

impl FormatUpstream {
    /// Returns the paths of a repository's package and of its file.
    fn paths(&self, repository: &str) -> [String; 2] {
        if self.name == "docker" {
            let file = format!("lib/blobs/{}", images::digest(FILE));
            return [self.package, &file].map(|path| format!("/v2/repositories/{repository}/{path}"));
        }
        [self.package, self.file].map(|path| format!("/repositories/{repository}/{path}"))
    }
}

/// A server whose repositories are public.
struct PublicServer {
    server: Server,
    api: Api,
    client: Client,
    /// A client with the owner's password, because image clients need a credential.
    owner: Client,
}

impl PublicServer {
    fn start() -> Self {
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let api = Api::sign_in(&server);
        let client = server.anonymous();
        let owner = server.anonymous().basic(OWNER, PASSWORD);
        Self { server, api, client, owner }
    }

    fn get(&self, path: &str) -> Response {
        if path.starts_with("/v2/") { self.owner.get(path) } else { self.client.get(path) }
    }

    /// Creates a proxy of this upstream and returns the proxy's id.
    fn proxy(&self, name: &str, format: &str, upstream: &Upstream) -> String {
        self.api.create_proxy(name, format, &upstream.url(), &json!({"public": true, "negative_ttl_s": 3600}))
    }

    fn group(&self, name: &str, format: &str, members: &[&str]) -> String {
        let body = json!({
            "name": name, "format": format, "kind": "group", "members": members, "settings": {"public": true},
        });
        self.api.post("/v1/repositories", &body).expect(201).field("id")
    }

    fn health(&self, id: &str) -> Value {
        self.api.call("GET", &format!("/v1/repositories/{id}")).expect(200).json()["health"].clone()
    }

    /// Returns the state of each version that the repository lists.
    fn states(&self, id: &str) -> Vec<String> {
        let items = |below: &str| -> Vec<Value> {
            let path = format!("/v1/repositories/{id}/packages{below}");
            self.api.call("GET", &path).expect(200).json()["items"].as_array().unwrap().clone()
        };
        let packages = items("").into_iter();
        let versions = packages.flat_map(|package| {
            let name = package["name"].as_str().unwrap().replace('/', "%2F").replace(':', "%3A");
            items(&format!("/{name}/versions"))
        });
        versions.map(|version| version["state"].as_str().unwrap().to_owned()).collect()
    }
}

/// Status of the upstream, the resulting status of the proxy, and the resulting state of the
/// repository's health.
const STATUSES: [(u16, u16, &str); 10] = [
    (401, 404, "refused"),
    (402, 404, "refused"),
    (403, 404, "refused"),
    (404, 404, "ok"),
    (405, 404, "refused"),
    (409, 404, "refused"),
    (410, 404, "ok"),
    (429, 429, "unreachable"),
    (451, 404, "refused"),
    (500, 502, "unreachable"),
];

#[test]
fn an_upstreams_status_means_the_same_in_every_format() {
    let depot = PublicServer::start();
    for format in &FORMATS {
        let good = Upstream::start();
        (format.offer)(&good);
        let good_name = format!("{}-good", format.name);
        let good = depot.proxy(&good_name, format.name, &good);
        for path in format.paths(&good_name) {
            depot.get(&path).expect(200);
        }
        for (status, expected, state) in STATUSES {
            for (part, what) in ["package", "file"].into_iter().enumerate() {
                let bad = Upstream::start();
                let targets = (format.offer)(&bad);
                bad.on(&targets[part], Answer::new(status, "no"));
                let name = format!("{}-{status}-{what}", format.name);
                let id = depot.proxy(&name, format.name, &bad);
                let path = &format.paths(&name)[part];
                let answer = depot.get(path);
                assert_eq!(answer.status, expected, "{path}: {}", answer.text());
                let health = depot.health(&id);
                assert_eq!(health["state"], state, "{path}: {health}");
                if state != "ok" {
                    let texts = [answer.text(), health["detail"].to_string()];
                    assert!(texts.iter().all(|text| text.contains(&status.to_string())), "{path}: {texts:?}");
                }
                let group_name = format!("{name}-group");
                let group = depot.group(&group_name, format.name, &[&id, &good]);
                let path = &format.paths(&group_name)[part];
                let answer = depot.get(path);
                assert_eq!(answer.status, 200, "{path}: {}", answer.text());
                let health = depot.health(&group);
                assert_eq!(health["state"], state, "{path}: {health}");
                assert_eq!(health["members"][0]["name"], name.as_str(), "{path}: {health}");
                assert_eq!(health["members"][0]["state"], state, "{path}: {health}");
                assert_eq!(health["members"][1]["state"], "ok", "{path}: {health}");
            }
        }
    }
}

#[test]
fn a_name_that_only_a_failing_member_might_have_is_a_failure() {
    let depot = PublicServer::start();
    for (status, expected) in [(404, 404), (403, 404), (500, 502), (429, 429)] {
        for format in
            FORMATS.iter().filter(|format| matches!(format.name, "maven" | "npm" | "go" | "generic"))
        {
            let (bad, empty) = (Upstream::start(), Upstream::start());
            let targets = (format.offer)(&bad);
            targets.iter().for_each(|target| bad.on(target, Answer::new(status, "no")));
            let name = format!("{}-{status}", format.name);
            let members = [("bad", &bad), ("empty", &empty)]
                .map(|(which, upstream)| depot.proxy(&format!("{name}-{which}"), format.name, upstream));
            depot.group(&name, format.name, &members.each_ref().map(String::as_str));
            for path in format.paths(&name) {
                let answer = depot.get(&path);
                assert_eq!(answer.status, expected, "{path}: {}", answer.text());
            }
        }
    }
}

#[test]
fn a_refusal_is_cached_until_the_settings_change() {
    let (depot, upstream) = (PublicServer::start(), Upstream::start());
    let id = depot.proxy("files", "generic", &upstream);
    upstream.on("/a/b.bin", Answer::new(403, "no").header("X-RateLimit-Remaining", "7"));
    for _ in 0..4 {
        depot.get("/repositories/files/a/b.bin").expect(404);
    }
    assert_eq!(upstream.count("/a/b.bin"), 1);
    let before = depot.health(&id);
    assert!(before["since"].as_i64().is_some_and(|since| since > 0), "{before}");
    upstream.on("/a/b.bin", Answer::ok(FILE));
    depot.api.patch(&format!("/v1/repositories/{id}"), &json!({"settings": {}})).expect(200);
    depot.get("/repositories/files/a/b.bin").expect(200);
    assert_eq!(depot.health(&id)["state"], "ok");
    assert_eq!(depot.health(&id)["detail"], Value::Null);
}

/// Formats that mark fetched versions as withdrawn once the upstream no longer has their package.
const WITHDRAWING: [&str; 6] = ["maven", "npm", "python", "cargo", "rubygems", "composer"];

#[test]
fn a_refusal_withdraws_no_version() {
    let depot = PublicServer::start();
    let settings = json!({"public": true, "metadata_ttl_s": 0, "negative_ttl_s": 0, "stale_on_error": false});
    for format in &FORMATS {
        let upstream = Upstream::start();
        let [target, _] = (format.offer)(&upstream);
        let name = format!("{}-proxy", format.name);
        let id = depot.api.create_proxy(&name, format.name, &upstream.url(), &settings);
        let [package, file] = format.paths(&name);
        depot.get(&package).expect(200);
        depot.get(&file).expect(200);
        eventually("the version is listed", || (depot.states(&id) == [""]).then_some(()));
        for status in [401, 402, 403, 405, 409, 451] {
            upstream.on(&target, Answer::new(status, "no"));
            depot.get(&package).expect(404);
            assert_eq!(depot.states(&id), [""], "{name} after {status}");
        }
        // An upstream cannot turn a 404 into a refusal with a header.
        upstream.on(&target, Answer::new(404, "no").header("Refused", "403"));
        depot.get(&package).expect(404);
        let state = if WITHDRAWING.contains(&format.name) { "withdrawn" } else { "" };
        assert_eq!(depot.states(&id), [state], "{name} after 404");
    }
}

#[test]
fn cached_content_is_served_while_the_upstream_refuses_or_limits() {
    for answer in [Answer::new(403, "no"), Answer::new(429, "no").header("Retry-After", "60")] {
        let world = World::new(&json!({"metadata_ttl_s": 0, "negative_ttl_s": 0}));
        world.offer_metadata(&["1.0"], |answer| answer);
        world.offer(JAR, Answer::ok(FILE), FILE);
        let metadata = world.get(METADATA).expect(200).text();
        world.get(JAR).expect(200);
        for path in [METADATA, JAR] {
            world.upstream.on(&format!("/{path}"), answer.clone());
        }
        assert_eq!(world.get(METADATA).expect(200).text(), metadata);
        assert_eq!(world.get(JAR).expect(200).body, FILE);
    }
}

#[test]
fn a_rate_limited_upstream_is_paused_for_the_requested_time() {
    let (depot, upstream) = (PublicServer::start(), Upstream::start());
    let id = depot.proxy("hub", "docker", &upstream);
    upstream.on("/v2/lib/manifests/1", Answer::new(429, "slowly").header("Retry-After", "21600"));
    let wait = |answer: &Response| answer.header("retry-after").unwrap().parse::<u64>().unwrap();
    let first = depot.get("/v2/repositories/hub/lib/manifests/1").expect(429);
    assert_eq!(first.json()["errors"][0]["code"], "TOOMANYREQUESTS");
    assert_eq!(wait(&first), 21_600);
    let requests = upstream.requests().len();
    let later = depot.get("/v2/repositories/hub/other/manifests/1").expect(429);
    assert!((1..=21_600).contains(&wait(&later)), "{:?}", later.headers);
    assert_eq!(upstream.requests().len(), requests, "the upstream is paused");
    assert_eq!(depot.health(&id)["state"], "unreachable");
}

#[test]
fn the_page_and_the_log_report_the_upstreams_state() {
    let (depot, upstream) = (PublicServer::start(), Upstream::start());
    let id = depot.proxy("mirror", "maven", &upstream);
    depot.group("all", "maven", &[&id]);
    let mut owner = Person::owner(&depot.server);
    for page in ["/repositories/mirror", "/repositories/all"] {
        assert!(!owner.get(page).expect(200).text().contains("role=\"alert\""), "{page}");
    }
    upstream.on(&format!("/{JAR}"), Answer::new(403, "no"));
    depot.get(&format!("/repositories/mirror/{JAR}?token=secret")).expect(404);
    for page in ["/repositories/mirror", "/repositories/all"] {
        let text = owner.get(page).expect(200).text();
        assert!(
            text.contains("refuses requests") && text.contains("status 403") && text.contains(JAR),
            "{text}"
        );
    }
    upstream
        .on(&format!("/{METADATA}"), Answer::ok("<html>Sign in</html>").header("Content-Type", "text/html"));
    let answer = depot.get(&format!("/repositories/mirror/{METADATA}")).expect(502);
    assert!(answer.text().contains(METADATA), "{}", answer.text());
    let text = owner.get("/repositories/mirror").expect(200).text();
    assert!(text.contains("cannot be used") && text.contains(METADATA), "{text}");
    let log = depot.server.log();
    let line = |message: &str| log.lines().find(|line| line.contains(message)).unwrap().to_owned();
    for (message, status) in
        [("upstream refused a request", 403), ("discarded an unreadable upstream response", 200)]
    {
        let line = line(message);
        assert!(line.contains("mirror") && line.contains(&status.to_string()), "{line}");
        assert!(line.matches("\"target\":").count() <= 1, "{line}");
    }
}

#[test]
fn an_unused_upstream_credential_is_reported() {
    let depot = PublicServer::start();
    let (upstream, service) = (Upstream::start(), Upstream::start());
    let id = depot.proxy("hub", "docker", &upstream);
    let body = json!({
        "username": "robot", "password": "secret", "confirmation_token": depot.api.confirm("set_upstream_credentials"),
    });
    depot.api.send("PUT", &format!("/v1/repositories/{id}/upstream-credentials"), &body).expect(204);
    let challenge = format!("Bearer realm=\"{}/token\"", service.url());
    service.on("/token", Answer::ok(json!({"token": "anonymous"}).to_string()));
    upstream.on("/v2/lib/manifests/1", Answer::new(401, "no").header("WWW-Authenticate", &challenge));
    let answer = depot.get("/v2/repositories/hub/lib/manifests/1").expect(404).text();
    let health = depot.health(&id);
    assert_eq!(health["state"], "refused");
    for text in [answer, health["detail"].to_string(), depot.server.log()] {
        assert!(text.contains("token_realm") && text.contains(&service.url()), "{text}");
    }
    // The upstream serves this image to everyone, so the proxy does not need its credential.
    upstream.on(
        "/v2/open/manifests/1",
        Answer::ok(json!({"schemaVersion": 2, "config": {}}).to_string())
            .header("Content-Type", "application/vnd.oci.image.manifest.v1+json")
            .guarded("Bearer anonymous", &challenge),
    );
    depot.get("/v2/repositories/hub/open/manifests/1");
    let health = depot.health(&id);
    assert!(health["detail"].as_str().is_some_and(|detail| detail.contains("token_realm")), "{health}");
}

#[test]
fn the_upstream_timeout_of_a_repository_applies() {
    let world = World::new(&json!({"upstream_timeout_s": 60}));
    let gate = Gate::new();
    world.offer(JAR, Answer::ok(FILE).silent(&gate), FILE);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| world.get(JAR));
        // The other proxy has the server's own timeout. It gives up its request while the first
        // request still waits.
        let other = world.api.create_proxy("other", "maven", &world.upstream.url(), &json!({}));
        let token = world.api.create_token(&[&other], &["read"], None);
        let client = world.server.anonymous().basic(OWNER, &token.secret);
        client.get(&format!("/repositories/other/{JAR}")).expect(502);
        assert!(!waits.is_finished());
        gate.open();
        assert_eq!(waits.join().unwrap().expect(200).body, FILE);
    });
}

#[test]
fn the_first_download_through_a_proxy_counts() {
    let depot = PublicServer::start();
    for (name, bytes) in [("small", FILE.to_vec()), ("large", vec![7; 3 << 20])] {
        let upstream = Upstream::start();
        let id = depot.proxy(name, "generic", &upstream);
        upstream.on("/tool/1.0/file.bin", Answer::ok(bytes.clone()));
        assert_eq!(depot.get(&format!("/repositories/{name}/tool/1.0/file.bin")).expect(200).body, bytes);
        eventually("the download is counted", || {
            let repository = depot.api.call("GET", &format!("/v1/repositories/{id}")).expect(200).json();
            (repository["downloads"] == 1).then_some(())
        });
    }
}
