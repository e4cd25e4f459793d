//! Unauthenticated clients cannot learn which repositories exist. A private repository and a
//! missing one give the same response, without a credential and with an invalid one. This is so for
//! every format, kind and state.

use std::sync::atomic::{AtomicU32, Ordering};

use packhouse_tests::cli::{json as packhouse_json, packhouse};
use packhouse_tests::server::{self, OWNER, PASSWORD};
use packhouse_tests::upstream::Upstream;
use packhouse_tests::{Api, Client, Connection, Request, Response, Server, database};
use serde_json::{Value, json};

const ABSENT: &str = "absent";
const HOST: &str = "one.example";
/// Placeholder for a wrong password. The test sends it with an account name that no earlier attempt
/// used.
const WRONG: &str = "a wrong password";

/// A server with a private repository of each format and kind, and invalid credentials.
struct DisclosureFixture {
    server: Server,
    api: Api,
    names: Vec<String>,
    /// The formats that the server has loaded.
    formats: Vec<String>,
    /// Invalid tokens: of another organization, revoked, expired.
    tokens: Vec<(&'static str, String)>,
}

/// Number of the next client address. Each attempt comes from an address of its own, because a
/// wrong password delays later attempts from the same address. These tests do not check delays.
static CALLERS: AtomicU32 = AtomicU32::new(1);

impl DisclosureFixture {
    fn new() -> Self {
        let server = Server::with()
            .arg("--base-url")
            .arg("http://one.example")
            .env("PACKHOUSE_TRUSTED_PROXIES", "127.0.0.0/8")
            .start();
        let api = Api::sign_in(&server);
        let listed = api.call("GET", "/v1/formats").expect(200).json();
        let listed = listed["items"].as_array().unwrap().iter();
        let formats: Vec<String> = listed.map(|one| one["format"].as_str().unwrap().to_owned()).collect();
        let mut names = Vec::new();
        let mut create = |name: String, body: Value| {
            let mut whole = json!({"name": name});
            whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            names.push(name);
            api.post("/v1/repositories", &whole).expect(201).field("id")
        };
        let mut last = String::new();
        for format in &formats {
            last = create(format!("hosted-{format}"), json!({"format": format, "kind": "hosted"}));
            let upstream = json!({"url": "https://upstream.invalid/"});
            create(
                format!("proxy-{format}"),
                json!({"format": format, "kind": "proxy", "upstream": upstream}),
            );
            create(format!("group-{format}"), json!({"format": format, "kind": "group", "members": [last]}));
        }
        let token = |which| (which, api.create_token(&[&last], &["read", "write"], Some(4_000_000_000_000)));
        let (revoked, expired) = (token("a revoked token"), token("an expired token"));
        api.call("DELETE", &format!("/v1/tokens/{}", revoked.1.id)).expect(204);
        database::sqlite(
            &server,
            &format!("update tokens set expires_at = 1000 where id = {}", expired.1.id),
        );
        let other = elsewhere(&server);
        let tokens = [revoked, expired].map(|(which, token)| (which, token.secret));
        let tokens = tokens.into_iter().chain([("another organization's token", other)]).collect();
        Self { server, api, names, formats, tokens }
    }

    /// Returns everything that an unauthenticated client can send as a credential.
    fn credentials(&self) -> Vec<(String, Option<String>)> {
        let basic = |password: &str| packhouse_tests::http::basic(OWNER, password);
        let unknown = "pkh_0000000000000000000000000000000000000000000";
        let mut all = vec![
            ("nothing".to_owned(), None),
            ("an empty Basic".to_owned(), Some("Basic Og==".to_owned())),
            ("another scheme".to_owned(), Some("Negotiate abc".to_owned())),
            ("an invalid bearer".to_owned(), Some("Bearer wrong".to_owned())),
            (WRONG.to_owned(), Some(WRONG.to_owned())),
        ];
        let unknown = [("an unknown token", unknown.to_owned())];
        for (which, secret) in unknown.iter().chain(&self.tokens) {
            all.push(((*which).to_owned(), Some(basic(secret))));
            all.push((format!("{which} as a bearer"), Some(format!("Bearer {secret}"))));
        }
        all
    }

    fn ask(&self, method: &str, path: &str, credential: Option<&str>, more: &[(&str, &str)]) -> Response {
        let caller = CALLERS.fetch_add(1, Ordering::Relaxed);
        let address = std::net::Ipv4Addr::from_bits(0x0a00_0000 + caller).to_string();
        let credential = credential.map(|credential| match credential {
            WRONG => packhouse_tests::http::basic(&format!("nobody{caller}@example.com"), "wrong"),
            other => other.to_owned(),
        });
        let mut client =
            Client::new(self.server.packages()).with("Host", HOST).with("X-Forwarded-For", &address);
        if let Some(credential) = &credential {
            client = client.with("Authorization", credential);
        }
        let request = more
            .iter()
            .fold(Request::new(method, path), |request, (name, value)| request.header(name, value));
        let body = matches!(method, "PUT" | "POST" | "PATCH");
        let expects = more.iter().any(|(name, _)| *name == "Expect");
        if !body || !expects {
            return client.send(if body { request.body("{}") } else { request });
        }
        // A client that waits for `100 Continue` gets the refusal instead.
        let mut connection = Connection::open(self.server.packages()).unwrap();
        connection.send(&client.head_bytes(request.header("Content-Length", "1000000"))).unwrap();
        connection.read_response(false).unwrap()
    }
}

/// Returns a token of another organization. The token's repository has the name of a repository of
/// this organization.
fn elsewhere(server: &Server) -> String {
    packhouse_json(server.data(), &["org", "create", "second", "--base-url", "https://two.example/"]);
    let create = ["member", "create", "--org", "second", "--owner", "--password-stdin", "other@example.com"];
    packhouse(server.data(), &create, PASSWORD).success();
    let other = Api::sign_in_as(server, "other@example.com", PASSWORD);
    let body = json!({"name": "hosted-npm", "format": "npm", "kind": "hosted"});
    let id = other.post("/v1/repositories", &body).expect(201).field("id");
    other.create_token(&[&id], &["read", "write"], None).secret
}

/// Returns status, reason, headers and body of a response as text. Leaves out the parts that differ
/// in each response.
fn of(answer: &Response, name: &str) -> String {
    let fresh = ["x-request-id", "date"];
    let mut headers: Vec<String> = answer
        .headers
        .iter()
        .filter(|(header, _)| !fresh.contains(&header.to_ascii_lowercase().as_str()))
        .map(|(header, value)| format!("{}: {value}", header.to_ascii_lowercase()))
        .filter(|line| !line.starts_with("content-length"))
        .collect();
    headers.sort();
    let mut body = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
    if let Some(object) = body.as_object_mut() {
        object.remove("request_id");
        if object.contains_key("loginUrl") {
            // The entity tag depends on the secrets in the two URLs.
            headers.retain(|line| !line.starts_with("etag:"));
        }
        for field in ["loginUrl", "doneUrl"] {
            if let Some(url) = object.get_mut(field) {
                let text = url.as_str().unwrap();
                let (start, secret) = text.rsplit_once('/').unwrap();
                assert!(secret.len() >= 40, "{text}");
                *url = json!(format!("{start}/{}", secret.len()));
            }
        }
    }
    let interim = &answer.interim;
    format!("{} {} {interim:?}\n{}\n{body}", answer.status, answer.reason, headers.join("\n"))
        .replace(name, "NAME")
}

const PATHS: [&str; 16] = [
    "",
    "/",
    "/org/example/a/1.0/a-1.0.jar",
    "/org/example/a/maven-metadata.xml",
    "/simple/",
    "/simple/demo/",
    "/demo",
    "/@acme%2fdemo",
    "/demo/-/demo-1.0.0.tgz",
    "/a%2Fb/c",
    "/-/whoami",
    "/-/v1/login/unknown",
    "/-/npm/v1/tokens",
    "/-/user/org.couchdb.user:ann",
    "/app/manifests/latest",
    "/demo?write=true",
];

/// Fails if a client can distinguish one of these repositories from a missing one.
fn assert_indistinguishable(world: &DisclosureFixture, names: &[String], paths: &[&str], claim: &str) {
    let methods = ["GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "ODD"];
    for (which, credential) in world.credentials() {
        for (at, method) in methods.iter().enumerate() {
            // The server delays a wrong password by design, so the test sends it only with GET and
            // PUT. With a wrong password, and with the last three methods, which few clients use,
            // the test requests only three paths.
            if which == WRONG && !["GET", "PUT"].contains(method) {
                continue;
            }
            let few = at >= 5 || which == WRONG;
            for path in paths.iter().take(if few { 3 } else { paths.len() }) {
                let ask = |name: &str| {
                    of(
                        &world.ask(
                            method,
                            &format!("{claim}/repositories/{name}{path}"),
                            credential.as_deref(),
                            &[],
                        ),
                        name,
                    )
                };
                let absent = ask(ABSENT);
                for name in names {
                    assert_eq!(ask(name), absent, "{method} {path} of {name} with {which}");
                }
            }
        }
    }
}

#[test]
fn a_private_repository_and_a_missing_one_give_the_same_response() {
    let world = DisclosureFixture::new();
    assert_indistinguishable(&world, &world.names, &PATHS, "");
    let large = [("Expect", "100-continue")];
    for (which, credential) in world.credentials() {
        for path in ["/org/example/a/1.0/a-1.0.jar", "/demo", "/-/v1/login"] {
            let ask = |name: &str| {
                let path = format!("/repositories/{name}{path}");
                of(&world.ask("PUT", &path, credential.as_deref(), &large), name)
            };
            let absent = ask(ABSENT);
            assert!(!absent.contains("[100]"), "{absent}");
            world
                .names
                .iter()
                .for_each(|name| assert_eq!(ask(name), absent, "{path} of {name} with {which}"));
        }
    }
    // The refusal contains everything that clients need.
    for name in ["hosted-maven", "hosted-docker", ABSENT] {
        let answer = world.ask("GET", &format!("/repositories/{name}/x"), None, &[]).expect(401);
        assert_eq!(answer.header("www-authenticate"), Some("Basic realm=\"one.example\""), "{name}");
        assert_eq!(answer.field("error"), "unauthorized");
    }
    // npm sends its token as a bearer. The specification requires these responses to an invalid
    // bearer.
    let mistyped = Some("Bearer pkh_mistyped");
    world.ask("GET", "/repositories/hosted-npm/demo", mistyped, &[]).expect(404);
    world.ask("PUT", "/repositories/hosted-npm/demo", mistyped, &[]).expect(401);
    world.ask("GET", "/repositories/hosted-maven/org/example/a/1.0/a-1.0.jar", mistyped, &[]).expect(401);
}

#[test]
fn a_disabled_format_discloses_nothing() {
    let world = DisclosureFixture::new();
    for format in &world.formats {
        let path = format!("/v1/formats/{format}");
        world.api.patch(&path, &json!({"enabled": false})).expect(200);
        let names: Vec<String> =
            world.names.iter().filter(|name| name.ends_with(&format!("-{format}"))).cloned().collect();
        let paths =
            ["/", "/demo", "/org/example/a/1.0/a-1.0.jar", "/simple/demo/", "/-/v1/login", "/@acme%2fdemo"];
        assert_indistinguishable(&world, &names, &paths, "");
        world.api.patch(&path, &json!({"enabled": true})).expect(200);
    }
}

#[test]
fn below_a_claim_only_the_path_reveals_the_format() {
    let world = DisclosureFixture::new();
    let paths =
        ["/app/manifests/latest", "/app/tags/list", "/app/blobs/uploads/", "/app", "/", "/APP/manifests/x"];
    assert_indistinguishable(&world, &world.names, &paths, "/v2");
}

#[test]
fn a_sign_in_starts_at_every_name_and_finishes_only_at_a_repository() {
    let world = DisclosureFixture::new();
    let begin = |name: &str| {
        world.ask(
            "POST",
            &format!("/repositories/{name}/-/v1/login"),
            None,
            &[("Content-Type", "application/json")],
        )
    };
    let path = |url: &str| format!("/{}", url.splitn(4, '/').nth(3).unwrap());
    let absent = begin(ABSENT).expect(200);
    for name in &world.names {
        let offered = begin(name);
        assert_eq!(of(&offered, name), of(&absent, ABSENT), "{name}");
        let (page, done) = (path(&offered.field("loginUrl")), path(&offered.field("doneUrl")));
        let pending = world.ask("GET", &done, None, &[]);
        assert_eq!((pending.status, pending.header("retry-after")), (202, Some("1")), "{name}");
        // For every name, the page redirects an unauthenticated client to the portal's sign-in.
        Client::new(world.server.api()).get(&page).expect(303);
        // The secret that belongs to one name is not valid at another.
        let secret = done.rsplit('/').next().unwrap();
        for other in ["hosted-npm", "hosted-maven", ABSENT].iter().filter(|other| **other != name.as_str()) {
            world.ask("GET", &format!("/repositories/{other}/-/v1/login/{secret}"), None, &[]).expect(404);
        }
        let finish = |page: &str| {
            let confirmation = world.api.confirm("finish_npm_login");
            let id = page.rsplit('/').next().unwrap();
            world
                .api
                .post(&format!("/v1/npm-logins/{id}/finish"), &json!({"confirmation_token": confirmation}))
        };
        if name.ends_with("-npm") {
            finish(&page).expect(200);
            assert!(world.ask("GET", &done, None, &[]).expect(200).field("token").starts_with("pkh_"));
        } else {
            assert_eq!(finish(&page).expect(404).field("error"), "not_found");
        }
    }
}

#[test]
fn a_public_repository_is_readable_without_a_credential() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    api.create_maven("open", &json!({"public": true}));
    server.anonymous().get("/repositories/open/org/example/a/1.0/a-1.0.jar").expect(404);
    server.anonymous().put("/repositories/open/org/example/a/1.0/a-1.0.jar", "x").expect(401);
}

#[test]
fn metrics_name_repositories_only_on_their_own_listener() {
    let upstream = Upstream::start();
    let ask = |server: &Server| {
        let api = Api::sign_in(server);
        let id = api.create_proxy("secret-project", "maven", &upstream.url(), &json!({}));
        let token = api.create_token(&[&id], &["read"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        client.get("/repositories/secret-project/org/example/a/1.0/a-1.0.jar").expect(404);
    };
    let near = || Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8");
    let server = near().start();
    ask(&server);
    let metrics = Client::new(server.api()).get("/metrics").expect(200).text();
    assert!(metrics.contains("packhouse_upstream_answers_total{result=\"miss\"} 1"), "{metrics}");
    assert!(!metrics.contains("secret-project"), "{metrics}");

    let address = format!("127.0.0.1:{}", server::free_port());
    let server = near().env("PACKHOUSE_METRICS_LISTEN", &address).start();
    ask(&server);
    let metrics = Client::new(address.parse().unwrap()).get("/metrics").expect(200).text();
    assert!(metrics.contains("repository=\"secret-project\""), "{metrics}");
    Client::new(server.api()).get("/metrics").expect(404);
}
