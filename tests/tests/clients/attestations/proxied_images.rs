//! Images of an upstream: the proxy serves, verifies and lists referrers and signatures under
//! cosign's tags. A policy that requires provenance applies to a tag before the proxy serves its
//! manifest.

use super::demanded::{demand, denied};
use super::images::{SIMPLE_SIGNING, carrier};
use super::{AttestationServer, verdicts};
use packhouse_tests::image_proxy::{ImageProxy, offer, offer_blob};
use packhouse_tests::images::{INDEX, MANIFEST, manifest};
use packhouse_tests::sigstore::{BUNDLE, IDENTITY, SOURCE, Signer, simple_signing, statement};
use packhouse_tests::upstream::{Answer, Upstream};
use serde_json::{Value, json};

const NOTATION: &str = "application/vnd.cncf.notary.signature";

/// Publishes an image under this tag on the upstream, without signatures; returns its digest.
fn lay(upstream: &Upstream, tag: &str) -> String {
    lay_image(upstream, tag, tag)
}

fn lay_image(upstream: &Upstream, tag: &str, layer: &str) -> String {
    let image = offer(upstream, "app", Some(tag), MANIFEST, &manifest(&[layer.as_bytes()]));
    offer_blob(upstream, "app", layer.as_bytes());
    image
}

/// Publishes the manifest of a signature on the upstream; returns its descriptor, as a list of
/// referrers contains it.
fn lay_carrier(upstream: &Upstream, kind: &str, layer: &str, bytes: &[u8], image: &str) -> Value {
    offer_blob(upstream, "app", bytes);
    let carrier = carrier(kind, layer, bytes, &json!({}), Some((image, 1)));
    let own = offer(upstream, "app", None, MANIFEST, &carrier);
    json!({"mediaType": MANIFEST, "digest": own, "size": carrier.len(), "artifactType": kind})
}

fn lay_bundle(set: &AttestationServer, upstream: &Upstream, signer: &Signer, image: &str) -> Value {
    let about = statement("app", "sha256", image.strip_prefix("sha256:").unwrap());
    let bundle = set.instance.bundle(signer, &about).to_string();
    lay_carrier(upstream, BUNDLE, BUNDLE, bundle.as_bytes(), image)
}

/// Makes the upstream answer with this list of referrers from now on.
fn list(upstream: &Upstream, target: &str, entries: &[Value]) {
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).to_string();
    upstream.on(&format!("/v2/app/{target}"), Answer::ok(index).header("Content-Type", INDEX));
}

fn refer(upstream: &Upstream, image: &str, entries: &[Value]) {
    list(upstream, &format!("referrers/{image}"), entries);
}

/// Publishes a signature in cosign's older form on the upstream, under its tag.
fn lay_tag(set: &AttestationServer, upstream: &Upstream, signer: &Signer, image: &str) {
    let document = simple_signing(image);
    offer_blob(upstream, "app", document.as_bytes());
    let annotations = set.instance.annotations(signer, document.as_bytes());
    let config = "application/vnd.oci.image.config.v1+json";
    let carrier = carrier(config, SIMPLE_SIGNING, document.as_bytes(), &annotations, None);
    let tag = format!("{}.sig", image.replacen(':', "-", 1));
    offer(upstream, "app", Some(&tag), MANIFEST, &carrier);
}

#[test]
fn an_upstreams_tag_is_judged_by_its_images_signatures_there() {
    let (set, upstream) = (AttestationServer::new(), Upstream::start());
    let proxy = ImageProxy::create(&set.server, "hub", &upstream.url(), &json!({}));
    let tags = ["referred", "tagged", "listed-by-tag", "mallorys", "notation", "unsigned", "untold"];
    let [referred, tagged, by_tag, mallorys, notation, unsigned, untold] =
        tags.map(|tag| lay(&upstream, tag));
    let good = Signer::default();
    refer(&upstream, &referred, &[lay_bundle(&set, &upstream, &good, &referred)]);
    lay_tag(&set, &upstream, &good, &tagged);
    list(
        &upstream,
        &format!("manifests/{}", by_tag.replacen(':', "-", 1)),
        &[lay_bundle(&set, &upstream, &good, &by_tag)],
    );
    let mallory = Signer::called("https://github.com/mallory/x");
    refer(&upstream, &mallorys, &[lay_bundle(&set, &upstream, &mallory, &mallorys)]);
    let jws = lay_carrier(&upstream, NOTATION, "application/jose+json", b"{}", &notation);
    refer(&upstream, &notation, &[jws]);
    refer(&upstream, &unsigned, &[]);
    refer(&upstream, &untold, &[lay_bundle(&set, &upstream, &good, &untold)]);
    let whole = manifest(&[b"untold"]);
    upstream.on("/v2/app/manifests/untold", Answer::ok(whole).header("Content-Type", MANIFEST));
    let ask = |tag: &str| proxy.get(&format!("app/manifests/{tag}"));

    // Without a policy that requires provenance, the proxy fetches only resources that clients
    // request.
    ask("referred").expect(200);
    assert!(upstream.requests().iter().all(|one| !one.target.contains("referrers")));
    demand(&set, SOURCE);
    for tag in ["referred", "tagged", "listed-by-tag", "untold"] {
        ask(tag).expect(200);
        let stated = set.stated(&proxy.id, "app", tag, 1);
        assert_eq!(
            (verdicts(&stated), &stated[0]["identity"]),
            (vec!["verified"], &json!(IDENTITY)),
            "{tag}"
        );
        assert_eq!(stated[0]["file"], format!("app/manifests/{tag}"));
        proxy.get(stated[0]["path"].as_str().unwrap()).expect(200);
    }
    denied(&ask("mallorys"), "is not verified here");
    denied(&ask("notation"), "is not verified here");
    denied(&ask("unsigned"), "has no provenance");
    assert_eq!(verdicts(&set.stated(&proxy.id, "app", "mallorys", 1)), ["other_identity"]);
    assert_eq!(verdicts(&set.stated(&proxy.id, "app", "notation", 1)), ["unverifiable"]);
    // The proxy refreshes a cached list of referrers like other lists.
    let list_requests = || {
        let requests = upstream.requests();
        requests
            .iter()
            .filter(|one| one.target.contains("referrers") || one.target.contains("sha256-"))
            .count()
    };
    let before = list_requests();
    denied(&ask("mallorys"), "is not verified here");
    denied(&ask("unsigned"), "has no provenance");
    assert_eq!(list_requests(), before);

    // The proxy also serves signatures, because clients verify them. A signature is not a version,
    // so it needs no signature itself.
    let signature = format!("app/manifests/{}.sig", tagged.replacen(':', "-", 1));
    let layer = proxy.get(&signature).expect(200).json()["layers"][0]["digest"].as_str().unwrap().to_owned();
    proxy.get(&format!("app/blobs/{layer}")).expect(200);
    let listed =
        |image: &str| proxy.get(&format!("app/referrers/{image}")).expect(200).json()["manifests"].clone();
    for image in [&referred, &by_tag, &mallorys] {
        assert_eq!(listed(image)[0]["artifactType"], BUNDLE);
    }

    // The answers stay the same without the upstream.
    proxy.set(&json!({"offline": true}));
    for tag in ["referred", "tagged", "listed-by-tag", "untold"] {
        ask(tag).expect(200);
    }
    // The proxy never fetched the refused image, so it cannot serve it offline.
    ask("mallorys").expect(502);
    proxy.get(&signature).expect(200);
    for image in [&referred, &by_tag] {
        assert_eq!(listed(image)[0]["artifactType"], BUNDLE);
    }
}

#[test]
fn a_later_signature_counts_and_a_moved_tag_loses_the_old_one() {
    let (set, upstream) = (AttestationServer::new(), Upstream::start());
    let fresh = json!({"metadata_ttl_s": 0, "negative_ttl_s": 0});
    let proxy = ImageProxy::create(&set.server, "hub", &upstream.url(), &fresh);
    demand(&set, SOURCE);
    let ask = || proxy.get("app/manifests/1.0");
    let first = lay(&upstream, "1.0");
    denied(&ask(), "has no provenance");
    refer(&upstream, &first, &[lay_bundle(&set, &upstream, &Signer::default(), &first)]);
    ask().expect(200);
    // The list and the tag contain different signatures.
    lay_tag(&set, &upstream, &Signer::default(), &first);
    let mallory = Signer::called("https://github.com/mallory/x");
    let beside = lay_bundle(&set, &upstream, &mallory, &first);
    list(&upstream, &format!("manifests/{}", first.replacen(':', "-", 1)), &[beside]);
    ask().expect(200);
    let mut all = set.stated(&proxy.id, "app", "1.0", 3);
    all.sort_by_key(|one| one["verdict"].to_string());
    assert_eq!(verdicts(&all), ["other_identity", "verified", "verified"]);
    let listed = proxy.get(&format!("app/referrers/{first}")).expect(200).json();
    assert_eq!(listed["manifests"].as_array().unwrap().len(), 2);

    // Another image under the tag is unsigned, although the earlier one was signed.
    lay_image(&upstream, "1.0", "another");
    denied(&ask(), "has no provenance");
    set.api.call("GET", &format!("/v1/repositories/{}/packages/app/versions/1.0", proxy.id)).expect(404);
    // The tag leads to the signed image again.
    lay(&upstream, "1.0");
    ask().expect(200);
    set.stated(&proxy.id, "app", "1.0", 3);
}
