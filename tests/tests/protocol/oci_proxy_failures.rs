//! An image proxy whose upstream misbehaves in every way: responses to clients, and the cache.

use packhouse_tests::image_proxy::{ImageProxy, offer, offer_blob, server};
use packhouse_tests::images::{INDEX, MANIFEST, digest, manifest};
use packhouse_tests::payload;
use packhouse_tests::upstream::{Answer, Upstream};
use serde_json::json;

/// The result that a client sees if the upstream fails.
enum Sees {
    /// This status, with the registry's code.
    Status(u16, &'static str),
    /// A truncated response.
    Broken,
}

/// Turns the right response for a manifest or a layer into a wrong one.
type Wrong = fn(Answer) -> Answer;

const UNUSABLE: Sees = Sees::Status(502, "UNAVAILABLE");

#[test]
fn wrong_upstream_content_is_neither_served_nor_cached() {
    let (server, upstream) = (server(), Upstream::start());
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let table: [(&str, Wrong, Sees, Sees, Sees); 7] = [
        // Each row: the fault, and the results for a manifest, a small layer and a large layer.
        ("other bytes", |_| Answer::ok("{}").header("Content-Type", MANIFEST), UNUSABLE, UNUSABLE, UNUSABLE),
        ("broken off", |answer| answer.cut(1), UNUSABLE, UNUSABLE, Sees::Broken),
        ("a failure", |_| Answer::new(500, "no"), UNUSABLE, UNUSABLE, UNUSABLE),
        (
            "nothing there",
            |_| Answer::new(404, "no"),
            Sees::Status(404, "MANIFEST_UNKNOWN"),
            Sees::Status(404, "BLOB_UNKNOWN"),
            Sees::Status(404, "BLOB_UNKNOWN"),
        ),
        (
            "not for everyone",
            |_| Answer::new(403, "no"),
            Sees::Status(404, "MANIFEST_UNKNOWN"),
            Sees::Status(404, "BLOB_UNKNOWN"),
            Sees::Status(404, "BLOB_UNKNOWN"),
        ),
        ("an unknown coding", |answer| answer.header("Content-Encoding", "br"), UNUSABLE, UNUSABLE, UNUSABLE),
        ("without an end", |_| Answer::redirect("/again"), UNUSABLE, UNUSABLE, UNUSABLE),
    ];
    upstream.on("/again", Answer::redirect("/again"));
    for (number, (what, wrong, of_manifest, of_small, of_large)) in table.into_iter().enumerate() {
        // Each case has its own proxy, so that the failures of one case do not pause the upstream
        // for another case.
        let proxy = ImageProxy::create(&server, &format!("hub{number}"), &upstream.url(), &settings);
        let image = format!("app{number}");
        let manifest = manifest(&[what.as_bytes()]);
        let named = offer(&upstream, &image, Some("1"), MANIFEST, &manifest);
        let sizes = [1_000, 2_000_000];
        let layers = sizes.map(|size| payload::bytes(number as u64, size));
        let [small, large] = [0, 1].map(|at| offer_blob(&upstream, &image, &layers[at]));
        let right = Answer::ok(manifest).header("Content-Type", MANIFEST);
        let right = right.header("Docker-Content-Digest", &named);
        let files = [
            (format!("manifests/{named}"), right, of_manifest),
            (format!("blobs/{small}"), Answer::ok(layers[0].clone()), of_small),
            (format!("blobs/{large}"), Answer::ok(layers[1].clone()), of_large),
        ];
        for (target, right, sees) in files {
            let (upstream_target, path) = (format!("/v2/{image}/{target}"), format!("{image}/{target}"));
            upstream.on(&upstream_target, wrong(right.clone()));
            match sees {
                Sees::Status(status, code) => {
                    let body = proxy.get(&path).expect(status).json();
                    assert_eq!(body["errors"][0]["code"], code, "{what}: {body}");
                }
                Sees::Broken => proxy.broken(&path),
            }
            assert!(
                !proxy.cached_paths().iter().any(|cached| cached.contains(&target)),
                "{what} {target} is cached"
            );
            // The upstream works again.
            upstream.on(&upstream_target, right);
            proxy.get(&path).expect(200);
        }
        proxy.get(&format!("{image}/manifests/1")).expect(200);
    }
}

#[test]
fn manifests_need_a_manifest_type_and_lists_must_be_lists() {
    let (server, upstream) = (server(), Upstream::start());
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &settings);
    for (tag, kind) in [
        ("page", "text/html"),
        ("first", "application/vnd.docker.distribution.manifest.v1+json"),
        ("none", ""),
    ] {
        let manifest = manifest(&[tag.as_bytes()]);
        let named = offer(&upstream, "app", Some(tag), kind, &manifest);
        for reference in [tag, &named] {
            let body = proxy.get(&format!("app/manifests/{reference}")).expect(502).json();
            assert_eq!(body["errors"][0]["code"], "UNAVAILABLE", "{body}");
        }
    }
    let subject = digest(b"subject");
    for list in ["tags/list", &format!("referrers/{subject}")] {
        let query = if list == "tags/list" { "?n=1000" } else { "" };
        for content in ["", "no JSON", "[]", r#"{"tags": 1, "manifests": 1}"#] {
            upstream.on(&format!("/v2/app/{list}{query}"), Answer::ok(content));
            let body = proxy.get(&format!("app/{list}")).expect(502).json();
            assert_eq!(body["errors"][0]["code"], "UNAVAILABLE", "{list} {content}: {body}");
        }
        // The upstream sends a list over the size limit, and then an endless list.
        let large = format!(r#"{{"tags": null, "manifests": null, "x": "{}"}}"#, "x".repeat(4 << 20));
        upstream.on(&format!("/v2/app/{list}{query}"), Answer::ok(large));
        proxy.get(&format!("app/{list}")).expect(502);
        upstream.on(&format!("/v2/app/{list}{query}"), Answer::ok("[").endless());
        proxy.get(&format!("app/{list}")).expect(502);
    }
    assert!(!proxy.cached_paths().iter().any(|cached| cached.contains("x.repeat")));

    // The upstream states one digest and sends another manifest. The proxy does not serve this
    // manifest, not even by tag.
    let (stated, sent) = (manifest(&[b"told"]), manifest(&[b"sent"]));
    let named = digest(stated.as_bytes());
    let lie = Answer::ok(sent).header("Content-Type", INDEX).header("Docker-Content-Digest", &named);
    for reference in ["lie", named.as_str()] {
        upstream.on(&format!("/v2/app/manifests/{reference}"), lie.clone());
    }
    proxy.get("app/manifests/lie").expect(502);
}

#[test]
fn a_rate_limited_upstream_is_paused_and_copies_are_served() {
    let (server, upstream) = (server(), Upstream::start());
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &settings);
    let manifest = manifest(&[b"a"]);
    let named = offer(&upstream, "app", Some("1"), MANIFEST, &manifest);
    proxy.get("app/manifests/1").expect(200);
    upstream.on("/v2/app/manifests/1", Answer::new(429, "slowly").header("Retry-After", "60"));
    assert_eq!(proxy.get("app/manifests/1").expect(200).text(), manifest);
    let before = upstream.requests().len();
    for _ in 0..3 {
        assert_eq!(proxy.get("app/manifests/1").expect(200).text(), manifest);
        proxy.get(&format!("app/manifests/{named}")).expect(200);
        let body = proxy.get("app/manifests/2").expect(429).json();
        assert_eq!(body["errors"][0]["code"], "TOOMANYREQUESTS", "{body}");
    }
    assert_eq!(upstream.requests().len(), before);
}

/// The upstream sends a page for people. The proxy recognizes it by its content, whatever the
/// content type is, and neither serves nor caches it. Once the upstream has recovered, the proxy
/// requests the manifest again at once.
#[test]
fn a_page_in_place_of_a_manifest_is_neither_served_nor_cached() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({"negative_ttl_s": 0}));
    let page = "<html><body>Sign in to the network</body></html>";
    let of_page = digest(page.as_bytes());
    let another = digest(b"another");
    let answer_as = |kind: &str, named: &str| {
        Answer::ok(page).header("Content-Type", kind).header("Docker-Content-Digest", named)
    };
    for (image, wrong) in [
        ("its-own-digest", answer_as(MANIFEST, &of_page)),
        ("another-digest", answer_as(MANIFEST, &another)),
        ("no-digest", Answer::ok(page).header("Content-Type", MANIFEST)),
        ("index", answer_as(INDEX, &of_page)),
        ("page-with-digest", answer_as("text/html; charset=utf-8", &of_page)),
        ("untitled", Answer::ok(page).header("Content-Type", "text/html")),
    ] {
        let manifest = manifest(&[image.as_bytes()]);
        let named = offer(&upstream, image, None, MANIFEST, &manifest);
        let references = ["1", named.as_str(), of_page.as_str(), another.as_str()];
        for reference in references {
            upstream.on(&format!("/v2/{image}/manifests/{reference}"), wrong.clone());
        }
        for reference in references {
            let body = proxy.get(&format!("{image}/manifests/{reference}")).expect(502).json();
            assert_eq!(body["errors"][0]["code"], "UNAVAILABLE", "{image} {reference}: {body}");
            proxy.head(&format!("{image}/manifests/{reference}")).expect(502);
        }
        assert!(
            !proxy.cached_paths().iter().any(|cached| cached.contains(image)),
            "{image}: {:?}",
            proxy.cached_paths()
        );
        let packages = format!("/v1/repositories/{}/packages?q={image}", proxy.id);
        assert_eq!(proxy.api.call("GET", &packages).expect(200).json()["items"], json!([]), "{image}");

        // The upstream has recovered, and the proxy serves its current content.
        for gone in [&of_page, &another] {
            upstream.on(&format!("/v2/{image}/manifests/{gone}"), Answer::new(404, "no"));
        }
        offer(&upstream, image, Some("1"), MANIFEST, &manifest);
        for reference in ["1", named.as_str()] {
            assert_eq!(proxy.get(&format!("{image}/manifests/{reference}")).expect(200).text(), manifest);
        }
        proxy.get(&format!("{image}/manifests/{of_page}")).expect(404);
        // The proxy serves its copy while the upstream sends pages. Afterwards it serves the
        // upstream's new content.
        proxy.set(&json!({"metadata_ttl_s": 0}));
        for reference in ["1", &of_page, &another] {
            upstream.on(&format!("/v2/{image}/manifests/{reference}"), wrong.clone());
        }
        assert_eq!(proxy.get(&format!("{image}/manifests/1")).expect(200).text(), manifest, "{image}");
        let next = self::manifest(&[image.as_bytes(), b"next"]);
        offer(&upstream, image, Some("1"), MANIFEST, &next);
        assert_eq!(proxy.get(&format!("{image}/manifests/1")).expect(200).text(), next, "{image}");
        proxy.set(&json!({"metadata_ttl_s": 600}));
    }
    // The proxy must not report the length of a page as the length of the layer.
    let layer = digest(b"layer");
    let target = format!("/v2/app/blobs/{layer}");
    upstream.on(&target, Answer::ok(page).header("Content-Type", "text/html"));
    proxy.head(&format!("app/blobs/{layer}")).expect(502);
    upstream.on(&target, Answer::ok("layer"));
    assert_eq!(proxy.head(&format!("app/blobs/{layer}")).expect(200).header("content-length"), Some("5"));
}

/// The proxy caches for a while which manifest a tag names. If the upstream no longer has that
/// manifest, the proxy requests the tag again.
#[test]
fn a_tag_whose_manifest_is_gone_is_requested_again() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({}));
    let (before, after) = (manifest(&[b"before"]), manifest(&[b"after"]));
    let gone = offer(&upstream, "app", Some("1"), MANIFEST, &before);
    proxy.get("app/manifests/1").expect(200);
    let cached = format!("/v1/repositories/{}/cache?path=v2/app/manifests/{gone}", proxy.id);
    proxy.api.call("DELETE", &cached).expect(204);
    upstream.on(&format!("/v2/app/manifests/{gone}"), Answer::new(404, "no"));
    offer(&upstream, "app", Some("1"), MANIFEST, &after);
    assert_eq!(proxy.get("app/manifests/1").expect(200).text(), after);
}
