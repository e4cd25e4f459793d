//! Pushes of images, request by request: access, garbage collection, and the state after a kill.

use packhouse_tests::images::{ImageRepository, MANIFEST, digest, manifest};
use packhouse_tests::payload::Payload;
use packhouse_tests::race::SetOnDrop;
use packhouse_tests::server::{OWNER, eventually};
use packhouse_tests::{Api, Connection, Request, Server, long};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_layer_cannot_be_read_through_another_repository() {
    let server = Server::start();
    let secret = ImageRepository::create(&server, "secret", &json!({}));
    let own = ImageRepository::create(&server, "own", &json!({}));
    let layer = b"a secret layer";
    let hidden = secret.push("app", "latest", &[layer]).unwrap();
    own.push_blob("app", b"{}").expect(201);
    let blob = format!("app/blobs/{}", digest(layer));
    for method in ["GET", "HEAD"] {
        own.ask(method, &blob).expect(404);
        let there = Request::new(method, &secret.path(&blob));
        own.client.send(there).expect(403);
        server.anonymous().send(Request::new(method, &secret.path(&blob))).expect(401);
    }
    for from in ["&from=repositories/secret/app", "&from=secret/app", ""] {
        own.ask("POST", &format!("app/blobs/uploads/?mount={}{from}", digest(layer))).expect(202);
    }
    let refused = own.push_manifest("app", "latest", MANIFEST, &hidden).expect(400);
    assert_eq!(refused.json()["errors"][0]["code"], "MANIFEST_BLOB_UNKNOWN");
    assert_eq!(refused.json()["errors"][0]["detail"]["digest"], digest(layer));
    own.get(&blob).expect(404);
    // A client that may read both repositories can mount the layer.
    let both = Api::sign_in(&server).create_token(&[&secret.id, &own.id], &["read", "write"], None);
    let target =
        own.path(&format!("app/blobs/uploads/?mount={}&from=repositories/secret/app", digest(layer)));
    server.anonymous().basic(OWNER, &both.secret).send(Request::new("POST", &target)).expect(201);
    assert_eq!(own.get(&blob).expect(200).body, layer);
}

#[test]
fn refusals_have_the_codes_and_texts_of_the_specification() {
    let server = Server::start();
    let repository = ImageRepository::create(&server, "r", &json!({}));
    let reader = Api::sign_in(&server).create_token(&[&repository.id], &["read"], None);
    let reads = server.anonymous().basic(OWNER, &reader.secret);
    for (method, path, status, code, message) in [
        ("GET", "/v2/a/b/manifests/t", 400, "NAME_INVALID", "Invalid OCI path"),
        (
            "GET",
            "/v2/repositories/x/manifests/t",
            400,
            "NAME_INVALID",
            "Docker image names require at least two segments: <repository>/<image>",
        ),
        ("GET", "/v2/repositories/X/a/manifests/t", 400, "NAME_INVALID", "invalid repository name"),
        ("GET", "/v2/repositories/r/A/manifests/t", 400, "NAME_INVALID", "invalid image name"),
        ("GET", "/v2/repositories/r/a/manifests/.t", 400, "NAME_INVALID", "invalid tag format"),
        ("GET", "/v2/repositories/x/a/manifests/t", 404, "NAME_UNKNOWN", "repository not found"),
        ("GET", "/v2/repositories/r/a/manifests/t", 404, "MANIFEST_UNKNOWN", "manifest not found"),
        ("POST", "/v2/repositories/r/a/blobs/uploads/", 403, "DENIED", "insufficient permissions"),
        ("GET", "/v2/_catalog", 405, "UNSUPPORTED", "catalog not yet implemented"),
    ] {
        let answer = reads.send(Request::new(method, path)).expect(status);
        let error = &answer.json()["errors"][0];
        assert_eq!(
            (error["code"].as_str(), error["message"].as_str()),
            (Some(code), Some(message)),
            "{path}"
        );
    }
    let anonymous = server.anonymous().get("/v2/repositories/r/a/manifests/t").expect(401);
    assert_eq!(anonymous.json()["errors"][0]["code"], "UNAUTHORIZED");
    server.anonymous().get("/v2/_catalog").expect(405);
    let too_large = repository.push_manifest("a", "t", MANIFEST, &" ".repeat((4 << 20) + 1)).expect(400);
    assert_eq!(too_large.json()["errors"][0]["message"], "manifest exceeds maximum size");
}

/// The server refuses a body over the limit with 400, both by the declared and by the actual
/// length. An operator may set a lower limit than the format's own.
#[test]
fn too_large_content_is_refused_with_the_specifications_codes() {
    let server = Server::with()
        .env("PACKHOUSE_PLUGINS_DOCKER_MAX_FILE_BYTES", "2000")
        .env("PACKHOUSE_PLUGINS_DOCKER_MAX_MANIFEST_BYTES", "1000")
        .start();
    let repository = ImageRepository::create(&server, "r", &json!({}));
    let large = vec![b' '; 2001];
    let session =
        || repository.ask("POST", "a/blobs/uploads/").expect(202).header("location").unwrap().to_owned();
    let at_once = repository.path(&format!("a/blobs/uploads/?digest={}", digest(&large)));
    let ended = format!("{}?digest={}", session(), digest(&large));
    let manifest = repository.path("a/manifests/t");
    let layer = ("SIZE_INVALID", "provided length did not match content length");
    let too_large = ("MANIFEST_INVALID", "manifest exceeds maximum size");
    for (method, target, words) in [
        ("POST", &at_once, layer),
        ("PATCH", &session(), layer),
        ("PUT", &ended, layer),
        ("PUT", &manifest, too_large),
    ] {
        let size = if words == layer { 2001 } else { 1001 };
        let request = || Request::new(method, target).header("Content-Type", MANIFEST);
        let declared = repository.client.send(request().body(&large[..size]));
        let chunked = format!("{size:x}\r\n{}\r\n0\r\n\r\n", " ".repeat(size));
        let streamed = repository.client.send(request().header("Transfer-Encoding", "chunked").body(chunked));
        for answer in [declared.expect(400), streamed.expect(400)] {
            let error = &answer.json()["errors"][0];
            assert_eq!((error["code"].as_str(), error["message"].as_str()), (Some(words.0), Some(words.1)));
        }
    }
    repository.push("a", "t", &[&large[..2000]]).unwrap();
}

/// Pushes with shared layers run beside deletions and constant garbage collection. Without a grace
/// period, only pins protect the layers of a push. No push is refused for a missing layer, and
/// every accepted image has all its layers.
#[test]
fn no_accepted_image_ever_lacks_a_layer() {
    let server =
        Server::with().env("PACKHOUSE_GC_GRACE_MS", "0").env("PACKHOUSE_GC_INTERVAL_MS", "20").start();
    let repository = ImageRepository::create(&server, "r", &json!({}));
    let (pushes, done) = (50, AtomicBool::new(false));
    let shared = vec![7u8; 100_000];
    std::thread::scope(|scope| {
        let pushers: Vec<_> = (0..2)
            .map(|pusher| {
                let (repository, shared) = (&repository, &shared);
                scope.spawn(move || {
                    for number in (0..pushes).filter(|number| number % 2 == pusher) {
                        let own = format!("layer {number}").repeat(2_000);
                        let tag = format!("t{number}");
                        repository.push("app", &tag, &[shared, own.as_bytes()]).unwrap();
                    }
                })
            })
            .collect();
        let deleter = scope.spawn(|| {
            let mut rounds = 0;
            while !done.load(Ordering::Relaxed) || rounds == 0 {
                let gone = repository.push("gone", "latest", &[&shared, b"its own"]);
                if let Ok(gone) = gone {
                    repository.ask("DELETE", &format!("gone/manifests/{}", digest(gone.as_bytes())));
                }
                rounds += 1;
            }
        });
        let ended = SetOnDrop(&done);
        pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
        drop(ended);
        deleter.join().unwrap();
    });
    for number in 0..pushes {
        let pulled = repository.get(&format!("app/manifests/t{number}")).expect(200).json();
        for layer in pulled["layers"].as_array().unwrap() {
            let name = layer["digest"].as_str().unwrap();
            assert_eq!(digest(&repository.get(&format!("app/blobs/{name}")).expect(200).body), name);
        }
    }
}

/// Returns the number of files below a folder.
fn files(folder: &std::path::Path) -> usize {
    let below = |entry: std::io::Result<std::fs::DirEntry>| match entry.unwrap().path() {
        path if path.is_dir() => files(&path),
        _ => 1,
    };
    std::fs::read_dir(folder).unwrap().map(below).sum()
}

#[test]
fn deleted_and_collected_images_can_be_pushed_again() {
    let server = Server::with()
        .env("PACKHOUSE_GC_GRACE_MS", "200")
        .env("PACKHOUSE_GC_LEASE_MS", "2000")
        .env("PACKHOUSE_GC_INTERVAL_MS", "20")
        .start();
    let repository = ImageRepository::create(&server, "r", &json!({}));
    let layer = vec![1u8; 200_000];
    let push = || eventually("a push is accepted", || repository.push("app", "latest", &[&layer]).ok());
    let blob = format!("app/blobs/{}", digest(&layer));
    for _ in 0..2 {
        let pushed = push();
        assert_eq!(repository.get("app/manifests/latest").expect(200).text(), pushed);
        assert_eq!(repository.get(&blob).expect(200).body, layer);
        repository.ask("DELETE", &format!("app/manifests/{}", digest(pushed.as_bytes()))).expect(202);
        // The test counts the files, because a request to the server would pin the layer.
        eventually("the layer is collected", || (files(&server.data().join("blobs")) == 0).then_some(()));
        repository.ask("HEAD", &blob).expect(404);
    }
}

#[test]
fn a_push_interrupted_by_a_kill_succeeds_on_retry() {
    let size: u64 = if long() { 500_000_000 } else { 60_000_000 };
    let mut server = Server::start();
    let repository = ImageRepository::create(&server, "r", &json!({}));
    let mut bytes = vec![0; usize::try_from(size).unwrap()];
    std::io::Read::read_exact(&mut Payload::new(3), &mut bytes).unwrap();
    let begun = repository.ask("POST", "app/blobs/uploads/").expect(202);
    let session = begun.header("location").unwrap().to_owned();
    let head = repository.client.head_bytes(
        Request::new("PATCH", &session).header("Content-Length", &size.to_string()).body(Vec::new()),
    );
    let mut connection = Connection::open(server.packages()).unwrap();
    let head = String::from_utf8(head).unwrap().replace("Content-Length: 0\r\n", "");
    connection.send(head.as_bytes()).unwrap();
    connection.send(&bytes[..bytes.len() / 2]).unwrap();
    server.kill9();
    server.restart();
    // Unacknowledged bytes are gone. Once the interrupted request's claim on the session expires,
    // the session continues at its last acknowledged byte.
    let status = repository.client.get(&session).expect(204);
    assert_eq!(status.header("range"), Some("0-0"));
    eventually("the session continues", || {
        let first = Request::new("PATCH", &session).body(&bytes[..1_000_000]);
        (repository.client.send(first).status == 202).then_some(())
    });
    let rest = Request::new("PATCH", &session).body(&bytes[1_000_000..]);
    repository.client.send(rest).expect(202);
    repository.client.put(&format!("{session}?digest={}", digest(&bytes)), Vec::new()).expect(201);
    repository.push_blob("app", b"{}").expect(201);
    repository.push_manifest("app", "latest", MANIFEST, &manifest(&[&bytes])).expect(201);
    assert_eq!(
        digest(&repository.get(&format!("app/blobs/{}", digest(&bytes))).expect(200).body),
        digest(&bytes)
    );
}
