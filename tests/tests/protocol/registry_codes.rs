//! The error codes of registries for invalid pushes and requests. The tests provoke each code with
//! requests.

use packhouse_tests::images::{ImageRepository, MANIFEST, digest, manifest};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Request, Response, Server, checkout};
use serde_json::json;

#[track_caller]
fn is(answer: Response, status: u16, code: &str, message: &str) {
    let answer = answer.expect(status);
    let error = &answer.json()["errors"][0];
    assert_eq!((error["code"].as_str(), error["message"].as_str()), (Some(code), Some(message)));
}

#[test]
fn blob_errors_have_their_codes() {
    let server = Server::start();
    let repository = ImageRepository::create(&server, "images", &json!({}));
    let absent = digest(b"absent");
    let send = |method: &str, path: &str| Request::new(method, &repository.path(path));
    let answer = |request: Request| repository.client.send(request);
    is(repository.get(&format!("app/blobs/{absent}")), 404, "BLOB_UNKNOWN", "blob unknown to registry");
    let unknown = "blob upload unknown to registry";
    for method in ["GET", "PATCH", "DELETE"] {
        is(answer(send(method, "app/blobs/uploads/absent").body("x")), 404, "BLOB_UPLOAD_UNKNOWN", unknown);
    }

    let begun = repository.ask("POST", "app/blobs/uploads/").expect(202);
    let session = begun.header("location").unwrap();
    let chunk = |range: &str| Request::new("PATCH", session).header("Content-Range", range).body("x");
    for range in ["one", "5-4"] {
        let refused = answer(chunk(range)).expect(400);
        assert_eq!(refused.json()["errors"][0]["code"], "BLOB_UPLOAD_INVALID", "{range}");
    }
    answer(chunk("0-0")).expect(202);

    let other = "provided digest did not match uploaded content";
    let whole = format!("app/blobs/uploads/?digest={absent}");
    is(answer(send("POST", &whole).body("other bytes")), 400, "DIGEST_INVALID", other);
    is(answer(Request::new("PUT", &format!("{session}?digest={absent}"))), 400, "DIGEST_INVALID", other);
    let no_digest = repository.get("app/blobs/sha256:abc").expect(400);
    assert_eq!(no_digest.json()["errors"][0]["code"], "DIGEST_INVALID");
}

#[test]
fn manifest_errors_have_their_codes() {
    let server = Server::start();
    let repository = ImageRepository::create(&server, "images", &json!({}));
    repository.push_blob("app", b"{}").expect(201);
    let text = manifest(&[]);
    let (large, deep) = (" ".repeat((4 << 20) + 1), "[".repeat(100_000));
    let not_json = "manifest body is not valid JSON";
    for (reference, kind, body, message) in [
        ("t", "text/plain", text.as_str(), "unsupported manifest media type"),
        ("t", MANIFEST, large.as_str(), "manifest exceeds maximum size"),
        ("t", MANIFEST, "{", not_json),
        ("t", MANIFEST, deep.as_str(), not_json),
        (&digest(b"absent"), MANIFEST, &text, "computed digest does not match reference"),
    ] {
        let answer = repository.push_manifest("app", reference, kind, body);
        is(answer, 400, "MANIFEST_INVALID", message);
    }
    repository.get("app/manifests/t").expect(404);
    repository.push_manifest("app", "t", MANIFEST, &text).expect(201);
}

#[test]
fn a_key_without_this_repository_is_refused() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let [given, other] = ["given", "other"].map(|name| ImageRepository::create(&server, name, &json!({})));
    given.push("app", "t", &[b"layer"]).unwrap();
    let subscriber = json!({"name": "ACME", "repositories": [given.id]});
    let subscriber = api.post("/v1/subscribers", &subscriber).expect(201).field("id");
    let confirmed = json!({"name": "ci", "expires_at": null,
        "confirmation_token": api.confirm("manage_access_keys")});
    let key = api.post(&format!("/v1/subscribers/{subscriber}/access-keys"), &confirmed).expect(201);
    let client = server.anonymous().basic("anyone", &key.field("secret"));
    client.get(&given.path("app/manifests/t")).expect(200);
    let denied = "requested scope not authorized for this token";
    is(client.get(&other.path("app/manifests/t")), 403, "DENIED", denied);
}

#[test]
fn guessing_passwords_is_held_up() {
    let server = Server::start();
    ImageRepository::create(&server, "images", &json!({}));
    let guess = || server.anonymous().basic(OWNER, "wrong").get("/v2/");
    let held_up = (0..20).map(|_| guess()).find(|answer| answer.status != 401).expect("guessing is limited");
    assert!(held_up.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
    is(held_up, 429, "TOOMANYREQUESTS", "too many attempts");
}

/// The plugin is a test guest that ends in the middle of a response.
#[test]
fn a_failing_plugin_is_an_unknown_error() {
    let plugins = tempfile::tempdir().unwrap();
    let depot = checkout().join("target/release/guests/depot.wasm");
    std::fs::copy(&depot, plugins.path().join("depot.wasm"))
        .unwrap_or_else(|error| panic!("{}: {error}; run `just guests`", depot.display()));
    let server = Server::with().arg("--plugins").arg(plugins.path().to_str().unwrap()).start();
    let api = Api::sign_in(&server);
    let body = json!({"name": "mine", "format": "depot", "kind": "hosted"});
    let id = api.post("/v1/repositories", &body).expect(201).field("id");
    let client = server.anonymous().basic(OWNER, &api.create_token(&[&id], &["read"], None).secret);
    is(client.get("/depot/fall"), 500, "UNKNOWN", "unknown error");
    client.get("/depot/").expect(200);
}
