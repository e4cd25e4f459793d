//! Hosted images, with the steps of `scheme`. Also images without a tag, which no list contains.

use super::HiddenNamesFixture;
use super::scheme::{Scheme, run};
use packhouse_tests::Request;
use packhouse_tests::image_proxy::{offer, offer_blob};
use packhouse_tests::images::{INDEX, MANIFEST, digest, manifest};
use packhouse_tests::upstream::Answer;
use serde_json::json;

/// Returns the manifest of the upstream's image with this name.
fn theirs(name: &str) -> String {
    manifest(&[format!("theirs {name}").as_bytes()])
}

fn lay(world: &HiddenNamesFixture, name: &str) {
    let upstream = &world.upstream;
    let named = offer(upstream, name, Some("99.0"), MANIFEST, &theirs(name));
    offer_blob(upstream, name, format!("theirs {name}").as_bytes());
    let list = json!({"name": name, "tags": ["99.0"]}).to_string();
    for n in [1_000, 3] {
        upstream.on(&format!("/v2/{name}/tags/list?n={n}"), Answer::ok(list.clone()));
    }
    let entry = json!({"mediaType": MANIFEST, "digest": digest(b"99.0"), "size": 1});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).to_string();
    let answer = Answer::ok(index).header("Content-Type", INDEX);
    upstream.on(&format!("/v2/{name}/referrers/{named}"), answer);
}

/// Pushes an image's manifest under its tag or its digest.
#[track_caller]
fn push(world: &HiddenNamesFixture, image: &str, reference: &str, bytes: &[u8]) -> String {
    let config = b"{}";
    for blob in [bytes, config.as_slice()] {
        let path = format!("/v2/repositories/own/{image}/blobs/uploads/?digest={}", digest(blob));
        world.owner.send(Request::new("POST", &path).body(blob)).expect(201);
    }
    let manifest = manifest(&[bytes]);
    let named = digest(manifest.as_bytes());
    let reference = if reference.is_empty() { named.as_str() } else { reference };
    let path = format!("/v2/repositories/own/{image}/manifests/{reference}");
    let request = Request::new("PUT", &path).header("Content-Type", MANIFEST).body(manifest);
    world.owner.send(request).expect(201);
    named
}

#[track_caller]
fn delete(world: &HiddenNamesFixture, image: &str, reference: &str) {
    let path = format!("/v2/repositories/own/{image}/manifests/{reference}");
    world.owner.send(Request::new("DELETE", &path)).expect(202);
}

#[test]
fn a_hosted_image_is_hidden_from_clients_without_access() {
    run(&Scheme {
        format: "docker",
        offer: &|world, name| lay(world, &format!("team/{name}")),
        publish: &|world, name| drop(push(world, &format!("team/{name}"), "1.0", b"ours")),
        withdraw: &|world, name| {
            delete(world, &format!("team/{name}"), &digest(manifest(&[b"ours"]).as_bytes()))
        },
        paths: &|_, name| {
            let image = format!("team/{name}");
            let named = digest(theirs(&image).as_bytes());
            let below = [
                "manifests/99.0".to_owned(),
                format!("manifests/{named}"),
                format!("blobs/{}", digest(format!("theirs {image}").as_bytes())),
                "tags/list?n=2".to_owned(),
            ];
            below.into_iter().map(|path| format!("/v2/repositories/all/{image}/{path}")).collect()
        },
        claim: &|name| format!("Team/{name}"),
    });
}

#[test]
fn an_image_without_a_tag_exists_until_its_last_manifest_is_deleted() {
    let world = HiddenNamesFixture::new("docker");
    lay(&world, "app");
    let without_access = world.without_access();
    let see = |status: u16| {
        for (who, client) in &without_access {
            let answer = client.get("/v2/repositories/all/app/manifests/99.0");
            assert_eq!(answer.status, status, "{who}: {}", answer.text());
            let named = digest(theirs("app").as_bytes());
            let referrers =
                client.get(&format!("/v2/repositories/all/app/referrers/{named}")).expect(200).json();
            let listed = referrers["manifests"].as_array().unwrap().len();
            assert_eq!(listed, usize::from(status == 200), "{who}: {referrers}");
        }
    };
    see(200);
    let by_digest = push(&world, "app", "", b"one");
    let upstream_requests = world.upstream_requests("app");
    see(404);
    let by_tag = push(&world, "app", "1.0", b"two");
    see(404);
    delete(&world, "app", "1.0");
    see(404);
    delete(&world, "app", &by_digest);
    see(404);
    assert_eq!(world.upstream_requests("app"), upstream_requests, "{:?}", world.upstream.requests());
    delete(&world, "app", &by_tag);
    see(200);
}

#[test]
fn a_claimed_image_gets_the_registrys_unknown_error() {
    let world = HiddenNamesFixture::new("docker");
    lay(&world, "team/app");
    world.set(&world.proxy, &json!({"claimed_names": ["team/*"]}));
    for address in ["elsewhere", "all"] {
        let path = format!("/v2/repositories/{address}/team/app/manifests/99.0");
        let answer = world.server.anonymous().get(&path).expect(404).json();
        let error = &answer["errors"][0];
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!("MANIFEST_UNKNOWN"), &json!("manifest not found"))
        );
    }
    assert!(world.upstream.requests().is_empty());
}
