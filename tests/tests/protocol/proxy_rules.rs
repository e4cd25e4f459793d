//! Refusals of a proxy, for formats without upstream credentials. The proxy refuses every write and
//! npm's tokens, and sends no identifying header of a client to the upstream.

use packhouse_tests::server::{OWNER, PASSWORD};
use packhouse_tests::upstream::{Answer, ReceivedRequest, Upstream};
use packhouse_tests::{Api, Client, Request, Response, Server};
use serde_json::json;

/// A proxy of one format, and clients of the proxy.
struct ProxyRulesFixture {
    server: Server,
    upstream: Upstream,
    api: Api,
    id: String,
    writer: Client,
}

impl ProxyRulesFixture {
    fn new(format: &str) -> Self {
        let server = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").start();
        let (upstream, api) = (Upstream::start(), Api::sign_in(&server));
        let id = api.create_proxy("proxy", format, &upstream.url(), &json!({"negative_ttl_s": 0}));
        let token = api.create_token(&[&id], &["read", "write"], None);
        let writer = server.anonymous().basic(OWNER, &token.secret);
        Self { server, upstream, api, id, writer }
    }
}

/// Each format with its write requests.
const WRITES: [(&str, &[(&str, &str)]); 2] = [
    (
        "python",
        &[
            ("POST", ""),
            ("POST", "/"),
            ("PUT", "/projects/demo/status"),
            ("DELETE", "/packages/demo/1.0/demo-1.0.tar.gz"),
            ("PUT", "/packages/demo/1.0/demo-1.0.tar.gz"),
            ("POST", "/simple/"),
            ("DELETE", "/simple/demo/"),
            ("PATCH", "/nowhere"),
        ],
    ),
    (
        "maven",
        &[
            ("PUT", "/org/example/a/1.0/a-1.0.jar"),
            ("PUT", "/org/example/a/1.0/a-1.0.jar.sha1"),
            ("PUT", "/org/example/a/1.0-SNAPSHOT/a-1.0-20260101.100000-1.jar"),
            ("PUT", "/org/example/a/maven-metadata.xml"),
            ("PUT", "/anything"),
            ("DELETE", "/org/example/a/1.0/a-1.0.jar"),
            ("DELETE", "/org/example/a/"),
            ("POST", "/org/example/a/1.0/a-1.0.jar"),
            ("PATCH", "/"),
        ],
    ),
];

#[track_caller]
fn refused(answer: Response, status: u16, code: &str) {
    let answer = answer.expect(status);
    assert_eq!(answer.field("code"), code, "{}", answer.text());
    assert!(!answer.field("message").is_empty(), "{}", answer.text());
}

#[test]
fn every_write_is_refused_with_any_credential() {
    for (format, writes) in WRITES {
        let world = ProxyRulesFixture::new(format);
        let reader = world.api.create_token(&[&world.id], &["read"], None);
        let reader = world.server.anonymous().basic(OWNER, &reader.secret);
        let member = world.server.anonymous().basic(OWNER, PASSWORD);
        for (method, path) in writes {
            for client in [&world.writer, &reader, &member] {
                let request = Request::new(method, &format!("/repositories/proxy{path}")).body("bytes");
                refused(client.send(request), 405, "writes_not_permitted_on_proxy");
            }
            let request = Request::new(method, &format!("/repositories/proxy{path}")).body("bytes");
            let challenged = world.server.anonymous().send(request).expect(401);
            assert!(challenged.header("www-authenticate").is_some_and(|one| one.starts_with("Basic")));
        }
        let path = format!("/v1/repositories/{}/packages/demo", world.id);
        refused(world.api.call("DELETE", &path), 405, "writes_not_permitted_on_proxy");
        let state = json!({"state": "yanked"});
        let answer = world.api.send("PUT", &format!("{path}/versions/1.0/state"), &state);
        refused(answer, 405, "writes_not_permitted_on_proxy");
        assert!(world.upstream.requests().is_empty(), "{format}: {:?}", world.upstream.requests());
    }
}

#[test]
fn a_token_of_the_npm_format_is_refused_on_proxies_of_all_formats() {
    for (format, writes) in WRITES {
        let world = ProxyRulesFixture::new(format);
        let body = json!({"name": "ci", "scope": ["read", "write"], "format": "npm", "repositories": [world.id],
            "expires_at": null, "confirmation_token": world.api.confirm("create_token")});
        let secret = world.api.post("/v1/tokens", &body).expect(201).field("secret");
        let bearer = world.server.anonymous().with("Authorization", &format!("Bearer {secret}"));
        for client in [world.server.anonymous().basic(OWNER, &secret), bearer] {
            let reads =
                [("GET", "/"), ("GET", "/simple/demo/"), ("GET", "/org/example/a/maven-metadata.xml")];
            for (method, path) in reads.iter().chain(writes) {
                let request = Request::new(method, &format!("/repositories/proxy{path}"));
                refused(client.send(request), 403, "npm_token_not_supported_on_proxy");
            }
        }
        assert!(world.upstream.requests().is_empty(), "{format}: {:?}", world.upstream.requests());
    }
}

/// Makes an upstream request credentials and set cookies at this target.
fn curious(upstream: &Upstream, target: &str, kind: &str, body: &str) {
    let challenge = Answer::new(401, "").header("WWW-Authenticate", "Basic realm=\"upstream\"");
    upstream.on(target, challenge.header("Set-Cookie", "session=upstream"));
    let other = Answer::ok(body).header("Content-Type", kind).header("Set-Cookie", "session=upstream");
    upstream.on(&format!("{target}.later"), other);
}

#[test]
fn no_identifying_header_of_a_client_is_sent_upstream() {
    for (format, path, kind, body) in [
        ("python", "/simple/demo/", "text/html", "<a href=\"demo-1.0.tar.gz\">demo-1.0.tar.gz</a>"),
        ("maven", "/org/example/a/maven-metadata.xml", "text/xml", "<metadata><versioning/></metadata>"),
    ] {
        let world = ProxyRulesFixture::new(format);
        curious(&world.upstream, path, kind, body);
        let token = world.api.create_token(&[&world.id], &["read"], None);
        let clients = [
            world.server.anonymous().basic(OWNER, &token.secret),
            world.server.anonymous().basic("__token__", &token.secret),
            world.server.anonymous().basic(OWNER, PASSWORD),
            world.server.anonymous().with("Authorization", &format!("Bearer {}", token.secret)),
        ];
        let own = [
            ("Cookie", "session=client"),
            ("Proxy-Authorization", "Basic Y2xpZW50"),
            ("X-Forwarded-For", "192.0.2.7"),
            ("X-Api-Key", "client"),
            ("Referer", "http://client.test/"),
            ("User-Agent", "client/1"),
        ];
        for client in &clients {
            let ask = || {
                let request =
                    Request::new("GET", &format!("/repositories/proxy{path}?token={}", token.secret));
                own.iter().fold(request, |request, (name, value)| request.header(name, value))
            };
            client.send(ask()).expect(404);
        }
        let moved = Answer::redirect(&format!("{}{path}.later", world.upstream.url()));
        world.upstream.on(path, moved.header("Set-Cookie", "session=upstream"));
        clients[0].get(&format!("/repositories/proxy{path}")).expect(200);
        let requests = world.upstream.requests();
        assert!(requests.len() > clients.len(), "{format}: {requests:?}");
        requests.iter().for_each(|request| assert_anonymous(request, &token.secret));
    }
}

#[track_caller]
fn assert_anonymous(request: &ReceivedRequest, secret: &str) {
    for name in ["authorization", "proxy-authorization", "cookie", "x-forwarded-for", "x-api-key", "referer"]
    {
        assert_eq!(request.header(name), None, "{request:?}");
    }
    let all = format!("{request:?}").to_lowercase();
    for word in [secret.to_lowercase().as_str(), "client", "session", OWNER, "token"] {
        assert!(!all.contains(word), "{word} in {request:?}");
    }
}
