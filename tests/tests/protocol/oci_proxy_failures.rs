//! A proxy of container images whose upstream does everything wrong: what its clients see, and what is kept.

use packhouse_tests::image_proxy::{ImageProxy, offer, offer_blob, server};
use packhouse_tests::images::{INDEX, MANIFEST, digest, manifest};
use packhouse_tests::payload;
use packhouse_tests::upstream::{Answer, Upstream};
use serde_json::json;

/// What the client of a failing upstream sees.
enum Sees {
    /// This status, with the registry's code.
    Status(u16, &'static str),
    /// An answer that does not come to its end.
    Broken,
}

/// What the upstream answers to GET of a manifest or a layer in the place of the right answer.
type Wrong = fn(Answer) -> Answer;

const UNUSABLE: Sees = Sees::Status(502, "UNAVAILABLE");

#[test]
fn what_is_not_what_it_must_be_is_neither_served_nor_kept() {
    let (server, upstream) = (server(), Upstream::start());
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let table: [(&str, Wrong, Sees, Sees, Sees); 7] = [
        // What is wrong; what is seen of a manifest, of a small layer, of a large one.
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
        (
            "a coding that nobody knows",
            |answer| answer.header("Content-Encoding", "br"),
            UNUSABLE,
            UNUSABLE,
            UNUSABLE,
        ),
        ("without an end", |_| Answer::redirect("/again"), UNUSABLE, UNUSABLE, UNUSABLE),
    ];
    upstream.on("/again", Answer::redirect("/again"));
    for (number, (what, wrong, of_manifest, of_small, of_large)) in table.into_iter().enumerate() {
        // A proxy of its own each, so that none leaves the upstream alone for what another saw.
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
            let (asked, path) = (format!("/v2/{image}/{target}"), format!("{image}/{target}"));
            upstream.on(&asked, wrong(right.clone()));
            match sees {
                Sees::Status(status, code) => {
                    let body = proxy.get(&path).expect(status).json();
                    assert_eq!(body["errors"][0]["code"], code, "{what}: {body}");
                }
                Sees::Broken => proxy.broken(&path),
            }
            assert!(!proxy.kept().iter().any(|kept| kept.contains(&target)), "{what} {target} is kept");
            // The upstream mends its ways.
            upstream.on(&asked, right);
            proxy.get(&path).expect(200);
        }
        proxy.get(&format!("{image}/manifests/1")).expect(200);
    }
}

#[test]
fn a_manifest_is_of_a_type_that_manifests_have_and_lists_are_lists() {
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
        // More than a list may have, and a list that never ends.
        let large = format!(r#"{{"tags": null, "manifests": null, "x": "{}"}}"#, "x".repeat(4 << 20));
        upstream.on(&format!("/v2/app/{list}{query}"), Answer::ok(large));
        proxy.get(&format!("app/{list}")).expect(502);
        upstream.on(&format!("/v2/app/{list}{query}"), Answer::ok("[").endless());
        proxy.get(&format!("app/{list}")).expect(502);
    }
    assert!(!proxy.kept().iter().any(|kept| kept.contains("x.repeat")));

    // An upstream that says one digest and sends another manifest is not believed, by tag either.
    let (told, sent) = (manifest(&[b"told"]), manifest(&[b"sent"]));
    let named = digest(told.as_bytes());
    let lie = Answer::ok(sent).header("Content-Type", INDEX).header("Docker-Content-Digest", &named);
    for reference in ["lie", named.as_str()] {
        upstream.on(&format!("/v2/app/manifests/{reference}"), lie.clone());
    }
    proxy.get("app/manifests/lie").expect(502);
}

#[test]
fn an_upstream_that_asks_for_it_is_left_alone_and_copies_serve_on() {
    let (server, upstream) = (server(), Upstream::start());
    let settings = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &settings);
    let manifest = manifest(&[b"a"]);
    let named = offer(&upstream, "app", Some("1"), MANIFEST, &manifest);
    proxy.get("app/manifests/1").expect(200);
    upstream.on("/v2/app/manifests/1", Answer::new(429, "slowly").header("Retry-After", "60"));
    assert_eq!(proxy.get("app/manifests/1").expect(200).text(), manifest);
    let before = upstream.seen().len();
    for _ in 0..3 {
        assert_eq!(proxy.get("app/manifests/1").expect(200).text(), manifest);
        proxy.get(&format!("app/manifests/{named}")).expect(200);
        let body = proxy.get("app/manifests/2").expect(429).json();
        assert_eq!(body["errors"][0]["code"], "TOOMANYREQUESTS", "{body}");
    }
    assert_eq!(upstream.seen().len(), before);
}

/// A page is told from a manifest by what it says, whatever it is called: it is not served, nothing of it is remembered, and the
/// upstream is asked again as soon as it is mended.
#[test]
fn a_page_in_the_place_of_a_manifest_is_neither_served_nor_remembered() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({"negative_ttl_s": 0}));
    let page = "<html><body>Sign in to the network</body></html>";
    let of_page = digest(page.as_bytes());
    let another = digest(b"another");
    let told = |kind: &str, named: &str| {
        Answer::ok(page).header("Content-Type", kind).header("Docker-Content-Digest", named)
    };
    for (image, wrong) in [
        ("its-own-digest", told(MANIFEST, &of_page)),
        ("another-digest", told(MANIFEST, &another)),
        ("no-digest", Answer::ok(page).header("Content-Type", MANIFEST)),
        ("index", told(INDEX, &of_page)),
        ("page-with-digest", told("text/html; charset=utf-8", &of_page)),
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
        assert!(!proxy.kept().iter().any(|kept| kept.contains(image)), "{image}: {:?}", proxy.kept());
        let shown = format!("/v1/repositories/{}/packages?q={image}", proxy.id);
        assert_eq!(proxy.api.call("GET", &shown).expect(200).json()["items"], json!([]), "{image}");

        // It is mended: what is asked for now is what it has now.
        for gone in [&of_page, &another] {
            upstream.on(&format!("/v2/{image}/manifests/{gone}"), Answer::new(404, "no"));
        }
        offer(&upstream, image, Some("1"), MANIFEST, &manifest);
        for reference in ["1", named.as_str()] {
            assert_eq!(proxy.get(&format!("{image}/manifests/{reference}")).expect(200).text(), manifest);
        }
        proxy.get(&format!("{image}/manifests/{of_page}")).expect(404);
        // A copy serves on while pages come, and what comes after them is found.
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
    // The length of a page is not a layer's.
    let layer = digest(b"layer");
    let target = format!("/v2/app/blobs/{layer}");
    upstream.on(&target, Answer::ok(page).header("Content-Type", "text/html"));
    proxy.head(&format!("app/blobs/{layer}")).expect(502);
    upstream.on(&target, Answer::ok("layer"));
    assert_eq!(proxy.head(&format!("app/blobs/{layer}")).expect(200).header("content-length"), Some("5"));
}

/// What a tag names is remembered for a while. When the upstream has that no longer, the tag is asked for anew.
#[test]
fn a_tag_whose_manifest_is_gone_is_asked_for_again() {
    let (server, upstream) = (server(), Upstream::start());
    let proxy = ImageProxy::create(&server, "hub", &upstream.url(), &json!({}));
    let (before, after) = (manifest(&[b"before"]), manifest(&[b"after"]));
    let gone = offer(&upstream, "app", Some("1"), MANIFEST, &before);
    proxy.get("app/manifests/1").expect(200);
    let kept = format!("/v1/repositories/{}/cache?path=v2/app/manifests/{gone}", proxy.id);
    proxy.api.call("DELETE", &kept).expect(204);
    upstream.on(&format!("/v2/app/manifests/{gone}"), Answer::new(404, "no"));
    offer(&upstream, "app", Some("1"), MANIFEST, &after);
    assert_eq!(proxy.get("app/manifests/1").expect(200).text(), after);
}
