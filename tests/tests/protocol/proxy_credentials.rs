//! Credentials for an upstream: which upstreams receive them, and which never do.

use base64::Engine as _;
use packhouse_tests::http::basic;
use packhouse_tests::server::OWNER;
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Client, Response, Server, images, payload};
use serde_json::{Value, json};

const BASIC: &str = "Basic realm=\"registry\"";
const PASSWORDS: [&str; 2] = ["canary-pw-first-4711", "canary-pw-second-0815"];
const SIGNATURE: &str = "canary-signature-2342";

struct CredentialFixture {
    server: Server,
    upstream: Upstream,
    api: Api,
    id: String,
    client: Client,
}

impl CredentialFixture {
    fn new() -> Self {
        let server = Server::with()
            .env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*")
            .env("PACKHOUSE_LOG", "info,packhouse=trace,reqwest=trace,hyper_util=trace,hyper=trace")
            .start();
        let (api, upstream) = (Api::sign_in(&server), Upstream::start());
        let id = api.create_proxy("mirror", "docker", &upstream.url(), &json!({"negative_ttl_s": 0}));
        let token = api.create_token(&[&id], &["read"], None);
        let client = server.anonymous().basic(OWNER, &token.secret);
        Self { server, upstream, api, id, client }
    }

    #[track_caller]
    fn get(&self, rest: &str) -> Response {
        self.client.get(&format!("/v2/repositories/mirror/lib/app/{rest}"))
    }

    /// Checks a refusal. The format decides whether the client gets 404 or 502.
    #[track_caller]
    fn refused(&self, rest: &str) {
        let answer = self.get(rest);
        assert!(matches!(answer.status, 404 | 502), "{}", answer.text());
    }

    #[track_caller]
    fn set(&self, credentials: &Value) {
        let mut body = credentials.clone();
        body["confirmation_token"] = json!(self.api.confirm("set_upstream_credentials"));
        let path = format!("/v1/repositories/{}/upstream-credentials", self.id);
        let answer = self.api.send("PUT", &path, &body).expect(204);
        assert!(answer.body.is_empty());
    }

    /// Offers an image under this tag for clients with these credentials.
    fn offer(&self, tag: &str, authorization: &str, challenge: &str) {
        let manifest = images::manifest(&[tag.as_bytes()]);
        let digest = images::digest(manifest.as_bytes());
        let answer = Answer::ok(manifest)
            .header("Content-Type", images::MANIFEST)
            .header("Docker-Content-Digest", &digest)
            .guarded(authorization, challenge);
        for reference in [tag, &digest] {
            self.upstream.on(&format!("/v2/lib/app/manifests/{reference}"), answer.clone());
        }
    }
}

/// Returns the `Authorization` headers that an upstream received, in order.
fn authorizations(upstream: &Upstream) -> Vec<Option<String>> {
    upstream.requests().iter().map(|request| request.header("authorization").map(str::to_owned)).collect()
}

#[test]
fn credentials_are_sent_only_to_their_upstream() {
    let (world, other) = (CredentialFixture::new(), Upstream::start());
    let own = basic("robot", PASSWORDS[0]);
    let layer = payload::bytes(1, 100_000);
    let digest = images::digest(&layer);
    let (blob, file) = (format!("/v2/lib/app/blobs/{digest}"), "/elsewhere/file");
    world.offer("1", &own, BASIC);
    other.on(file, Answer::ok(layer.clone()));
    let redirect = Answer::redirect(&format!("{}{file}", other.url()));
    world.upstream.on(&blob, redirect.guarded(&own, BASIC));

    world.refused("manifests/1");
    assert!(authorizations(&world.upstream).iter().all(Option::is_none));
    world.set(&json!({"username": "robot", "password": PASSWORDS[0]}));
    world.get("manifests/1").expect(200);
    assert_eq!(world.get(&format!("blobs/{digest}")).expect(200).body, layer);
    assert!(authorizations(&world.upstream).contains(&Some(own)));
    assert_eq!(authorizations(&other), [None], "a redirect to another port sends no credential");

    // Another host requests credentials, by Basic or through its own token service. The proxy sends
    // that host no credentials.
    other.on(file, Answer::ok("no").guarded("nothing will do", BASIC));
    let stolen = images::digest(b"stolen");
    let to_other = Answer::redirect(&format!("{}{file}", other.url()));
    world.upstream.on(&format!("/v2/lib/app/blobs/{stolen}"), to_other);
    world.refused(&format!("blobs/{stolen}"));
    let challenge = format!("Bearer realm=\"{}/steal\",service=\"x\"", other.url());
    world.offer("2", "nothing will do", &challenge);
    world.refused("manifests/2");
    assert!(
        other.requests().len() >= 3 && authorizations(&other).iter().all(Option::is_none),
        "{:?}",
        authorizations(&other)
    );
}

#[test]
fn credentials_are_rotated_and_removed() {
    let world = CredentialFixture::new();
    let [first, second] = PASSWORDS.map(|password| basic("robot", password));
    world.offer("1", &first, BASIC);
    world.set(&json!({"username": "robot", "password": PASSWORDS[0]}));
    world.get("manifests/1").expect(200);

    let before = world.upstream.requests().len();
    world.offer("2", &second, BASIC);
    world.set(&json!({"username": "robot", "password": PASSWORDS[1]}));
    world.get("manifests/2").expect(200);
    let since = authorizations(&world.upstream).split_off(before);
    assert!(since.contains(&Some(second)) && !since.contains(&Some(first)), "{since:?}");

    let before = world.upstream.requests().len();
    world.set(&json!({"username": null, "password": null}));
    world.offer("3", "nothing will do", BASIC);
    world.refused("manifests/3");
    let since = authorizations(&world.upstream).split_off(before);
    assert!(!since.is_empty() && since.iter().all(Option::is_none), "{since:?}");
}

#[test]
fn credentials_cannot_be_read_anywhere() {
    let world = CredentialFixture::new();
    let own = basic("robot", PASSWORDS[0]);
    world.offer("1", &own, BASIC);
    world.set(&json!({"username": "robot", "password": PASSWORDS[0]}));
    world.get("manifests/1").expect(200);
    // The signed addresses in an upstream's redirects are secret too.
    let (other, file, layer) =
        (Upstream::start(), format!("/elsewhere/file?signature={SIGNATURE}"), b"layer");
    other.on(&file, Answer::ok(layer));
    let blob = format!("blobs/{}", images::digest(layer));
    let redirect = Answer::redirect(&format!("{}{file}", other.url()));
    world.upstream.on(&format!("/v2/lib/app/{blob}"), redirect.guarded(&own, BASIC));
    assert_eq!(world.get(&blob).expect(200).body, layer);
    // Credentials that the upstream refuses are secret too.
    world.offer("2", "nothing will do", BASIC);
    world.refused("manifests/2");
    world.upstream.down(true);
    world.get("manifests/3").expect(502);

    let of_proxy = |rest: &str| format!("/v1/repositories/{}{rest}", world.id);
    let mut texts = vec![world.server.log()];
    for path in
        [of_proxy(""), of_proxy("/cache"), "/v1/repositories".to_owned(), "/v1/audit-events".to_owned()]
    {
        texts.push(world.api.call("GET", &path).expect(200).text());
    }
    for path in std::fs::read_dir(world.server.data()).unwrap().map(|entry| entry.unwrap().path()) {
        texts.extend(std::fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()));
    }
    let encoded = base64::engine::general_purpose::STANDARD.encode(format!("robot:{}", PASSWORDS[0]));
    for text in &texts {
        for secret in [PASSWORDS[0], encoded.as_str(), SIGNATURE] {
            assert!(!text.contains(secret), "the text contains {secret}: {text:.300}");
        }
    }
}
