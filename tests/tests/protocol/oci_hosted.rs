//! Hosted image repositories and their groups: the images that each caller of a group sees, garbage
//! collection, and separate rights.

use packhouse_tests::cli::packhouse;
use packhouse_tests::digests::sha256;
use packhouse_tests::images::{INDEX, ImageRepository, MANIFEST, digest, manifest};
use packhouse_tests::server::OWNER;
use packhouse_tests::{Api, Client, Request, Response, Server, database};
use serde_json::{Value, json};

#[track_caller]
fn is(answer: Response, status: u16, code: &str, message: &str) {
    let answer = answer.expect(status);
    let error = &answer.json()["errors"][0];
    assert_eq!((error["code"].as_str(), error["message"].as_str()), (Some(code), Some(message)));
}

fn tags(client: &Client, path: &str) -> Value {
    client.get(path).expect(200).json()["tags"].clone()
}

/// Returns a referrer of the manifest with this digest.
fn referrer(subject: &str, size: usize) -> String {
    let mut document: Value = serde_json::from_str(&manifest(&[])).unwrap();
    document["artifactType"] = json!("application/x.signature");
    document["subject"] = json!({"mediaType": MANIFEST, "digest": subject, "size": size});
    document.to_string()
}

#[test]
fn a_group_serves_its_members_images_in_order_and_accepts_no_push() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let [one, two, hidden] =
        ["one", "two", "hidden"].map(|name| ImageRepository::create(&server, name, &json!({})));
    let body =
        json!({"name": "all", "format": "docker", "kind": "group", "members": [one.id, two.id, hidden.id]});
    let group = api.post("/v1/repositories", &body).expect(201).field("id");
    let first = one.push("app", "latest", &[b"first"]).unwrap();
    let second = two.push("app", "latest", &[b"second"]).unwrap();
    let other = two.push("app", "1.0", &[b"other"]).unwrap();
    hidden.push("app", "secret", &[b"hidden"]).unwrap();
    let signature = referrer(&digest(first.as_bytes()), first.len());
    two.push_manifest("app", &digest(signature.as_bytes()), MANIFEST, &signature).expect(201);
    let reader = |ids: &[&str]| {
        let token = api.create_token(ids, &["read", "write"], None);
        server.anonymous().basic(OWNER, &token.secret)
    };
    let path = |rest: &str| format!("/v2/repositories/all/app/{rest}");
    let blob = |bytes: &[u8]| path(&format!("blobs/{}", digest(bytes)));
    let both = reader(&[&one.id, &two.id, &group]);
    let latest = |client: &Client| client.get(&path("manifests/latest")).expect(200).text();

    assert_eq!(latest(&both), first);
    assert_eq!(both.get(&path("manifests/1.0")).expect(200).text(), other);
    let by_digest = path(&format!("manifests/{}", digest(second.as_bytes())));
    assert_eq!(both.get(&by_digest).expect(200).text(), second);
    let head = both.send(Request::new("HEAD", &path("manifests/latest"))).expect(200);
    assert_eq!(head.header("docker-content-digest"), Some(digest(first.as_bytes()).as_str()));
    for layer in [&b"first"[..], b"second", b"other"] {
        assert_eq!(both.get(&blob(layer)).expect(200).body, layer);
    }
    assert_eq!(tags(&both, &path("tags/list")), json!(["1.0", "latest"]));
    assert_eq!(tags(&both, &path("tags/list?n=1&last=1.0")), json!(["latest"]));
    let referrers = both.get(&path(&format!("referrers/{}", digest(first.as_bytes())))).expect(200).json();
    assert_eq!(referrers["manifests"][0]["digest"], json!(digest(signature.as_bytes())));
    // For a caller who may not read a member, the group behaves as if the member did not exist.
    is(both.get(&path("manifests/secret")), 404, "MANIFEST_UNKNOWN", "manifest not found");
    is(both.get(&blob(b"hidden")), 404, "BLOB_UNKNOWN", "blob unknown to registry");
    let second_alone = reader(&[&two.id, &group]);
    assert_eq!(latest(&second_alone), second);
    second_alone.get(&blob(b"first")).expect(404);
    assert_eq!(latest(&both), first, "a response to one caller is not cached for another");
    let none = reader(&[&group]);
    for rest in ["manifests/latest", "tags/list"] {
        is(none.get(&path(rest)), 404, "NAME_UNKNOWN", "group repository has no members");
    }
    none.get(&blob(b"first")).expect(404);

    let upload = path(&format!("blobs/uploads/?digest={}", digest(b"new")));
    for (method, target) in [
        ("POST", path("blobs/uploads/")),
        ("POST", upload),
        ("POST", path(&format!("blobs/uploads/?mount={}&from=repositories/one/app", digest(b"first")))),
        ("PATCH", path("blobs/uploads/0")),
        ("PUT", path("manifests/latest")),
        ("DELETE", path("manifests/latest")),
    ] {
        let request = Request::new(method, &target).header("Content-Type", MANIFEST).body("new");
        is(both.send(request), 405, "UNSUPPORTED", "Writes are not permitted to group repositories");
    }
    api.patch(&format!("/v1/repositories/{group}"), &json!({"members": [two.id, one.id]})).expect(200);
    assert_eq!(latest(&both), second);
    api.patch(&format!("/v1/repositories/{group}"), &json!({"members": [one.id]})).expect(200);
    assert_eq!(latest(&both), first);
    both.get(&blob(b"second")).expect(404);
}

/// Returns the statuses of a manifest and of a layer, by digest, for a client with read access.
fn there(repository: &ImageRepository, manifest: &str, layer: &[u8]) -> [u16; 2] {
    let manifest = format!("app/manifests/{}", digest(manifest.as_bytes()));
    [manifest, format!("app/blobs/{}", digest(layer))].map(|path| repository.ask("HEAD", &path).status)
}

/// Garbage collection removes untagged manifests only if the repository's setting says so. It
/// removes nothing that a running push needs.
#[test]
fn untagged_manifests_are_collected_by_the_repositorys_setting() {
    let server = Server::with().env("PACKHOUSE_GC_INTERVAL_MS", "0").start();
    let keeps = ImageRepository::create(&server, "keeps", &json!({}));
    let drops = ImageRepository::create(&server, "drops", &json!({"keep_untagged": false}));
    let [old, new, part, arriving] = [1u8, 2, 3, 4].map(|byte| vec![byte; 100_000]);
    let mut manifests = Vec::new();
    for repository in [&keeps, &drops] {
        let first = repository.push("app", "latest", &[&old]).unwrap();
        let second = repository.push("app", "latest", &[&new]).unwrap();
        let platform = repository.push("app", "platform", &[&part]).unwrap();
        let descriptor =
            json!({"mediaType": MANIFEST, "digest": digest(platform.as_bytes()), "size": platform.len()});
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor]}).to_string();
        repository.push_manifest("app", "multi", INDEX, &index).expect(201);
        let signature = referrer(&digest(second.as_bytes()), second.len());
        repository.push_manifest("app", "signature", MANIFEST, &signature).expect(201);
        for tag in ["platform", "signature"] {
            repository.ask("DELETE", &format!("app/manifests/{tag}")).expect(202);
        }
        manifests = vec![first, second, platform, index, signature];
    }
    let [first, second, platform, index, signature] = manifests.try_into().unwrap();
    drops.push_blob("app", &arriving).expect(201);

    // The test ends all pins except the pin of the layer whose manifest the client has not pushed
    // yet.
    let others = format!(
        "update leases set until = 0 where blob not in (select id from blobs where sha256 = x'{}')",
        sha256(&arriving)
    );
    let settings = server.data().join("now.toml");
    std::fs::write(&settings, "[gc]\ngrace_ms = 0\n").unwrap();
    let collect = || {
        database::sqlite(&server, &others);
        packhouse(server.data(), &["gc", "--config", &settings.to_string_lossy()], "").success();
    };
    collect();
    assert_eq!(there(&keeps, &first, &old), [200, 200]);
    assert_eq!(there(&drops, &first, &old), [404, 404], "the other repository's layer is not served here");
    for repository in [&keeps, &drops] {
        assert_eq!(there(repository, &second, &new), [200, 200]);
        assert_eq!(there(repository, &platform, &part), [200, 200], "a part of an index");
        assert_eq!(there(repository, &signature, b"{}"), [200, 200], "a referrer of a manifest");
    }
    assert_eq!(keeps.get(&format!("app/blobs/{}", digest(&old))).expect(200).body, old);
    let pushed = manifest(&[&arriving]);
    drops.push_manifest("app", "late", MANIFEST, &pushed).expect(201);
    collect();
    assert_eq!(there(&drops, &pushed, &arriving), [200, 200]);

    drops.ask("DELETE", "app/manifests/multi").expect(202);
    drops.ask("DELETE", "app/manifests/latest").expect(202);
    collect();
    assert_eq!(there(&drops, &index, &part), [404, 404]);
    assert_eq!(there(&drops, &platform, &new), [404, 404]);
    assert_eq!(there(&drops, &signature, &arriving), [404, 200]);
    assert_eq!(there(&keeps, &platform, &part), [200, 200]);
}

/// The right to push does not include the right to delete, and access to one repository does not
/// include access to another. If a client requests more than it may have, the server grants a part.
#[test]
fn each_right_is_granted_separately() {
    let server = Server::start();
    let api = Api::sign_in(&server);
    let [own, secret] = ["own", "secret"].map(|name| ImageRepository::create(&server, name, &json!({})));
    let layer = b"a secret layer";
    secret.push("app", "latest", &[layer]).unwrap();
    let rights = json!({"organization": [], "repositories": [
        {"repository": own.id, "actions": ["read", "publish"]}, {"repository": secret.id, "actions": ["read"]}]});
    let member =
        json!({"email": "dev@example.com", "password": "the member's password", "permissions": rights});
    api.post("/v1/members", &member).expect(201);
    let basic = server.anonymous().basic("dev@example.com", "the member's password");
    let pushes = ImageRepository { client: basic.clone(), ..own.clone() };
    let pushed = pushes.push("app", "latest", &[b"its own"]).unwrap();
    let gone = own.path(&format!("app/manifests/{}", digest(pushed.as_bytes())));
    for target in [&gone, &own.path("app/manifests/latest")] {
        is(basic.send(Request::new("DELETE", target)), 403, "DENIED", "insufficient permissions");
        for method in ["POST", "PATCH"] {
            let override_it = Request::new(method, target).header("X-HTTP-Method-Override", "DELETE");
            is(basic.send(override_it), 405, "UNSUPPORTED", "method not allowed");
        }
    }
    let only_read = Request::new("POST", &secret.path("app/blobs/uploads/"));
    is(basic.send(only_read), 403, "DENIED", "insufficient permissions");
    own.ask("GET", "app/manifests/latest").expect(200);

    let mount = own.path(&format!("app/blobs/uploads/?mount={}&from=repositories/secret/app", digest(layer)));
    server.anonymous().send(Request::new("POST", &mount)).expect(401);
    let bearer = |scopes: &str| {
        let token = basic.get(&format!("/v2/token?service=127.0.0.1&{scopes}")).expect(200).field("token");
        server.anonymous().with("Authorization", &format!("Bearer {token}"))
    };
    let own_scope = "scope=repository:repositories/own/app:pull,push,delete";
    let narrow = bearer(own_scope);
    narrow.send(Request::new("POST", &mount)).expect(202);
    is(narrow.send(Request::new("DELETE", &gone)), 403, "DENIED", "insufficient permissions");
    own.ask("HEAD", &format!("app/blobs/{}", digest(layer))).expect(404);
    let wide = bearer(&format!("{own_scope}&scope=repository:repositories/secret/app:pull"));
    wide.send(Request::new("POST", &mount)).expect(201);
    assert_eq!(own.get(&format!("app/blobs/{}", digest(layer))).expect(200).body, layer);
}

/// Every path of `/v2/repositories/REPOSITORY/` also works below `/repositories/REPOSITORY/v2/`.
/// The links in such responses stay below the second path.
#[test]
fn a_repositorys_own_address_works_as_a_registry_mirror() {
    let server = Server::start();
    let images = ImageRepository::create(&server, "images", &json!({}));
    let own = |rest: &str| format!("/repositories/images/v2/{rest}");
    for path in [own(""), "/repositories/images/v2".to_owned()] {
        let version = images.client.get(&path).expect(200);
        assert_eq!(version.header("docker-distribution-api-version"), Some("registry/2.0"));
    }
    is(images.client.get(&own("_catalog")), 405, "UNSUPPORTED", "catalog not yet implemented");

    let begun = images.client.send(Request::new("POST", &own("library/app/blobs/uploads/"))).expect(202);
    let session = begun.header("location").unwrap();
    assert!(session.starts_with(&own("library/app/blobs/uploads/")), "{session}");
    images.client.send(Request::new("PATCH", session).body("layer")).expect(202);
    let end = Request::new("PUT", &format!("{session}?digest={}", digest(b"layer")));
    let layer = format!("library/app/blobs/{}", digest(b"layer"));
    assert_eq!(images.client.send(end).expect(201).header("location"), Some(own(&layer).as_str()));
    images.push_blob("library/app", b"{}").expect(201);
    let manifest = manifest(&[b"layer"]);
    let by_digest = format!("library/app/manifests/{}", digest(manifest.as_bytes()));
    for tag in ["1", "2"] {
        let put = Request::new("PUT", &own(&format!("library/app/manifests/{tag}")));
        let put = put.header("Content-Type", MANIFEST).body(manifest.as_str());
        let answer = images.client.send(put).expect(201);
        assert_eq!(answer.header("location"), Some(own(&by_digest).as_str()));
    }

    let referrers = by_digest.replace("manifests", "referrers");
    for rest in ["library/app/manifests/1", &by_digest, &layer, "library/app/tags/list", &referrers] {
        let here = images.client.get(&own(&format!("{rest}?ns=docker.io"))).expect(200);
        let there = images.get(rest).expect(200);
        assert_eq!(here.body, there.body, "{rest}");
        for name in ["content-type", "docker-content-digest", "etag", "cache-control"] {
            assert_eq!(here.header(name), there.header(name), "{rest}");
        }
    }
    is(images.client.get(&own("library/app/manifests/3")), 404, "MANIFEST_UNKNOWN", "manifest not found");
    let page = images.client.get(&own("library/app/tags/list?n=1")).expect(200);
    let next = page.header("link").unwrap().split(['<', '>']).nth(1).unwrap();
    assert_eq!(next, own("library/app/tags/list?n=1&last=1"));
    assert_eq!(tags(&images.client, next), json!(["2"]));
}

/// A mirror's address sends a `Basic` challenge. After a `Bearer` challenge, dockerd would request
/// scopes without the repository's name from the token service. The address also accepts bearers of
/// `/v2/token`.
#[test]
fn a_mirrors_credential_is_checked_as_elsewhere() {
    let server = Server::start();
    let images = ImageRepository::create(&server, "images", &json!({}));
    let open = ImageRepository::create(&server, "open", &json!({"public": true}));
    let own = |repository: &str, rest: &str| format!("/repositories/{repository}/v2/{rest}");
    for repository in [&images, &open] {
        repository.push("app", "1", &[b"layer"]).unwrap();
    }
    let anonymous = server.anonymous();
    for rest in ["", "app/manifests/1?ns=docker.io", "app/tags/list"] {
        anonymous.get(&own("open", rest)).expect(200);
        images.client.get(&own("images", rest)).expect(200);
        open.client.get(&own("images", rest)).expect(403);
        for repository in ["images", "absent"] {
            let refused = anonymous.get(&own(repository, rest)).expect(401);
            assert_eq!(refused.header("www-authenticate"), Some("Basic realm=\"127.0.0.1\""));
        }
    }

    let bearer = |client: &Client, scope: &str| {
        let answer = client.get(&format!("/v2/token?service=127.0.0.1&scope={scope}")).expect(200);
        anonymous.clone().with("Authorization", &format!("Bearer {}", answer.field("token")))
    };
    let pull = |repository: &str| format!("repository:repositories/{repository}/app:pull");
    let reader = bearer(&images.client, &pull("images"));
    let nobody = bearer(&anonymous, &format!("{}&scope={}", pull("open"), pull("images")));
    reader.get(&own("images", "app/manifests/1")).expect(200);
    nobody.get(&own("open", "app/manifests/1")).expect(200);
    nobody.get(&own("images", "app/manifests/1")).expect(401);
    let delete = reader.send(Request::new("DELETE", &own("images", "app/manifests/1"))).expect(401);
    let challenge = delete.header("www-authenticate").unwrap();
    assert!(challenge.starts_with("Bearer realm=\"http://127.0.0.1:"), "{challenge}");
    let scope = "scope=\"repository:repositories/images/app:pull,delete\",error=\"insufficient_scope\"";
    assert!(challenge.ends_with(scope), "{challenge}");

    // The bearer does not cover the private proxy. The proxy gives the same response as a missing
    // repository.
    Api::sign_in(&server).create_proxy("far", "docker", "http://127.0.0.1:9/", &json!({}));
    let [far, absent] = ["far", "absent"].map(|repository| {
        let answer = reader.get(&own(repository, "app/manifests/1"));
        let mut body = answer.json();
        body.as_object_mut().unwrap().remove("request_id");
        (answer.status, answer.header("www-authenticate").map(str::to_owned), body)
    });
    assert_eq!(far, absent);
}
