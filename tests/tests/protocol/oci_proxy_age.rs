//! The minimum age of upstream images, by tag and by digest. The server computes the age from the
//! registry's date of the manifest. Without a date it computes the age from the time when it first
//! saw the manifest.

use packhouse_tests::Server;
use packhouse_tests::clock::JumpingClock;
use packhouse_tests::image_proxy::{ImageProxy, offer, server};
use packhouse_tests::images::{MANIFEST, digest, manifest};
use packhouse_tests::upstream::{Answer, Upstream};
use serde_json::json;

/// Offers a manifest under a tag, with a modification time if one is given. Returns the manifest's
/// digest.
fn dated(upstream: &Upstream, image: &str, tag: &str, modified: Option<&str>) -> String {
    let text = manifest(&[tag.as_bytes()]);
    let named = offer(upstream, image, Some(tag), MANIFEST, &text);
    if let Some(modified) = modified {
        let answer = Answer::ok(text).header("Content-Type", MANIFEST).header("Last-Modified", modified);
        upstream
            .on(&format!("/v2/{image}/manifests/{named}"), answer.header("Docker-Content-Digest", &named));
    }
    named
}

#[test]
fn a_too_young_image_is_withheld_by_tag_and_by_digest() {
    let (server, upstream) = (server(), Upstream::start());
    let young = Some("Tue, 01 Jan 2999 00:00:00 GMT");
    let cases =
        [("old", Some("Wed, 01 Jan 2020 00:00:00 GMT"), 200), ("young", young, 404), ("unknown", None, 404)];
    let settings = json!({"min_release_age_s": 86_400, "min_release_age_except": ["own/*"]});
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &settings);
    let free = ImageProxy::create(&server, "free", &upstream.url(), &json!({}));
    for (tag, modified, status) in cases {
        for image in ["lib/app", "own/app"] {
            let named = dated(&upstream, image, tag, modified);
            let status = if image == "own/app" { 200 } else { status };
            for reference in [&named, tag, &named] {
                let path = format!("{image}/manifests/{reference}");
                assert_eq!(proxy.get(&path).status, status, "{path} of {tag}");
                assert_eq!(proxy.head(&path).status, status, "HEAD {path} of {tag}");
                free.get(&path).expect(200);
            }
        }
    }
    // Without digest headers the proxy requests the manifest by its tag. It ignores the date of
    // such a response, so the manifest's age is unknown.
    let untold = manifest(&[b"untold"]);
    for image in ["lib/app", "own/app"] {
        let answer = Answer::ok(untold.clone()).header("Content-Type", MANIFEST);
        let dated = answer.header("Last-Modified", "Wed, 01 Jan 2020 00:00:00 GMT");
        upstream.on(&format!("/v2/{image}/manifests/untold"), dated);
    }
    proxy.get("lib/app/manifests/untold").expect(404);
    let served = proxy.get("own/app/manifests/untold").expect(200);
    assert_eq!(served.header("docker-content-digest"), Some(digest(untold.as_bytes()).as_str()));
}

#[test]
fn the_age_of_a_manifest_without_a_date_counts_from_its_first_sight() {
    let (clock, upstream) = (JumpingClock::new(), Upstream::start());
    let server =
        Server::with().env("PACKHOUSE_UPSTREAM_ALLOW_NETWORKS", "127.0.0.0/8:*").clock(&clock).start();
    let settings = json!({"min_release_age_s": 86_400, "metadata_ttl_s": 0});
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &settings);
    let young = dated(&upstream, "lib/app", "young", Some("Tue, 01 Jan 2999 00:00:00 GMT"));
    let first = dated(&upstream, "lib/app", "latest", None);
    let get = |reference: &str, status: u16| {
        proxy.get(&format!("lib/app/manifests/{reference}")).expect(status);
    };
    // A client requests only the tag. The server thereby sees the tag's manifest for the first
    // time.
    get("latest", 404);
    get("young", 404);
    clock.set(86_400 + 60);
    for reference in ["latest", &first] {
        get(reference, 200);
    }
    get("young", 404);
    get(&young, 404);
    // The tag moves to a new manifest.
    let moved = offer(&upstream, "lib/app", Some("latest"), MANIFEST, &manifest(&[b"moved"]));
    for (reference, status) in [("latest", 404), (&*moved, 404), (&*first, 200)] {
        get(reference, status);
    }
    clock.set(2 * (86_400 + 60));
    get("latest", 200);
    get(&moved, 200);
}
