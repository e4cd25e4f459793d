//! The credentials and tokens of an image proxy. The proxy sends them only to the upstream to which
//! they belong.

use packhouse_tests::http::basic;
use packhouse_tests::image_proxy::{ImageProxy, offer_blob};
use packhouse_tests::images::{MANIFEST, digest, manifest};
use packhouse_tests::upstream::{Answer, Upstream};
use packhouse_tests::{Api, Server};
use serde_json::json;

const USER: &str = "robot";
const PASSWORD: &str = "a-password-that-nobody-sees";
const TOKEN: &str = "a-token-that-nobody-sees";

fn server() -> Server {
    let near = Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*");
    near.env("PACKHOUSE_LOG", "debug").start()
}

/// Returns a response that needs the token. Clients without the token get a challenge that names a
/// token service.
fn for_bearers(answer: Answer, service: &str, image: &str) -> Answer {
    let challenge =
        format!("Bearer realm=\"{service}\",service=\"registry, ours\",scope=\"repository:{image}:pull\"");
    answer.guarded(&format!("Bearer {TOKEN}"), &challenge)
}

/// Returns the request to the token service that the proxy must send after such a challenge.
fn question(path: &str, image: &str) -> String {
    let image = image.replace('/', "%2F");
    format!("{path}?service=registry%2C+ours&scope=repository%3A{image}%3Apull")
}

/// Checks that no response and no log line contains a secret.
#[track_caller]
fn assert_secret(server: &Server, texts: &[String]) {
    let log = server.log();
    assert!(log.contains("DEBUG"), "the log is not at debug level");
    let pair = basic(USER, PASSWORD);
    let encoded = pair.trim_start_matches("Basic ");
    for secret in [PASSWORD, TOKEN, encoded] {
        for text in texts.iter().chain([&log]) {
            assert!(!text.contains(secret), "{secret} is disclosed in {text}");
        }
    }
}

#[test]
fn a_bearer_token_is_sent_only_to_the_registry_that_it_is_for() {
    let (server, upstream) = (server(), Upstream::start());
    let (service, cdn) = (Upstream::start(), Upstream::start());
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &settings);
    let mut texts = Vec::new();

    let answers = [
        ("a/token", json!({"token": TOKEN, "expires_in": 300}), true),
        ("a/access-token", json!({"access_token": TOKEN, "expires_in": 300}), true),
        (
            "a/both",
            json!({"token": TOKEN, "access_token": TOKEN, "expires_in": 300, "issued_at": "now"}),
            true,
        ),
        ("a/short", json!({"token": TOKEN, "expires_in": 1}), false),
    ];
    proxy.credentials(USER, PASSWORD, Some(&format!("{}/any", service.url())));
    for (image, answer, lasts) in answers {
        let manifest = manifest(&[image.as_bytes()]);
        let (named, realm) = (digest(manifest.as_bytes()), format!("{}/{image}", service.url()));
        let offered = Answer::ok(manifest.as_str()).header("Content-Type", MANIFEST);
        let offered = for_bearers(offered.header("Docker-Content-Digest", &named), &realm, image);
        for reference in ["1", named.as_str()] {
            upstream.on(&format!("/v2/{image}/manifests/{reference}"), offered.clone());
        }
        let token_request = question(&format!("/{image}"), image);
        service.on(&token_request, Answer::ok(answer.to_string()).guarded(&basic(USER, PASSWORD), "Basic"));
        for _ in 0..2 {
            texts.push(proxy.get(&format!("{image}/manifests/1")).expect(200).text());
        }
        let layer = offer_blob(&upstream, image, b"layer");
        // The layer is on another host, as at real registries.
        let target = format!("/v2/{image}/blobs/{layer}");
        let away = Answer::redirect(&format!("{}/{layer}?signed=1", cdn.url()));
        upstream.on(&target, for_bearers(away, &realm, image));
        cdn.on(&format!("/{layer}?signed=1"), Answer::ok("layer"));
        assert_eq!(proxy.get(&format!("{image}/blobs/{layer}")).expect(200).text(), "layer");
        // Without a cached token the proxy needs four tokens: for two HEADs and a GET of the
        // manifest, and a GET of the layer.
        assert_eq!(
            service.count(&token_request),
            if lasts { 1 } else { 4 },
            "{image}: {:?}",
            service.requests()
        );
    }
    assert_eq!(cdn.requests().len(), 4);
    assert!(
        cdn.requests().iter().all(|request| request.header("authorization").is_none()),
        "{:?}",
        cdn.requests()
    );
    assert!(
        upstream
            .requests()
            .iter()
            .all(|request| request.header("authorization") != Some(&basic(USER, PASSWORD)))
    );
    let path = format!("/v1/repositories/{}", proxy.id);
    texts.push(proxy.api.call("GET", &path).expect(200).text());
    texts.push(proxy.cache().to_string());
    assert_secret(&server, &texts);

    // The proxy sends no credentials to a token service on another host that the settings do not
    // name.
    proxy.credentials(USER, PASSWORD, None);
    let before = service.requests().len();
    proxy.get("a/token/manifests/1").expect(200);
    let token_request = question("/b/none", "b/none");
    let guarded = for_bearers(Answer::ok("{}"), &format!("{}/b/none", service.url()), "b/none");
    upstream.on("/v2/b/none/manifests/1", guarded);
    proxy.get("b/none/manifests/1").expect(404);
    assert_eq!(service.count(&token_request), 1);
    let after = &service.requests()[before..];
    assert!(after.iter().all(|request| request.header("authorization").is_none()), "{after:?}");
}

#[test]
fn basic_credentials_are_sent_after_a_challenge_and_wrong_ones_can_be_corrected() {
    let (server, upstream) = (server(), Upstream::start());
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &settings);
    let manifest = manifest(&[b"a"]);
    let named = digest(manifest.as_bytes());
    let offered =
        Answer::ok(manifest).header("Content-Type", MANIFEST).header("Docker-Content-Digest", &named);
    let offered = offered.guarded(&basic(USER, PASSWORD), "Basic realm=\"registry\"");
    for reference in ["1", named.as_str()] {
        upstream.on(&format!("/v2/app/manifests/{reference}"), offered.clone());
    }
    let mut texts = Vec::new();
    let mut get = |status| {
        let answer = proxy.get("app/manifests/1").expect(status);
        texts.push(answer.text());
        answer
    };
    assert_eq!(get(404).json()["errors"][0]["code"], "MANIFEST_UNKNOWN");
    proxy.credentials(USER, "wrong", None);
    for _ in 0..10 {
        assert_eq!(get(404).json()["errors"][0]["code"], "MANIFEST_UNKNOWN");
    }
    assert!(server.log().contains("the upstream refuses the configured credentials"));
    // The wrong credentials have no lasting effect. In particular they do not pause the upstream.
    proxy.credentials(USER, PASSWORD, None);
    get(200);
    get(200);
    let requests = upstream.requests();
    assert_eq!(requests.last().unwrap().header("authorization"), Some(basic(USER, PASSWORD).as_str()));
    assert_eq!(requests[0].header("authorization"), None);

    // The proxy serves a cached copy while the upstream refuses the credentials.
    proxy.credentials(USER, "wrong again", None);
    get(200);
    // The proxy no longer sends removed credentials.
    let body = json!({
        "username": null, "password": null,
        "confirmation_token": proxy.api.confirm("set_upstream_credentials"),
    });
    let path = format!("/v1/repositories/{}/upstream-credentials", proxy.id);
    Api::sign_in(&server).send("PUT", &path, &body).expect(204);
    let before = upstream.requests().len();
    get(200);
    assert!(upstream.requests()[before..].iter().all(|request| request.header("authorization").is_none()));
    let sealed = std::fs::read_dir(server.data()).unwrap().flatten();
    for file in sealed.filter(|file| file.path().is_file()) {
        let bytes = std::fs::read(file.path()).unwrap();
        let found = bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes());
        assert!(!found, "{:?} contains the password in plain text", file.path());
    }
    assert_secret(&server, &texts);
}
