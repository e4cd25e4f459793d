//! Tests of the statements that a proxy hands to the host. It hands over each statement once, and
//! only if it is about the current manifest of a tag. The upstream is in memory.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests must fail loudly")]

use super::table;

use packhouse_oci::Oci;
use packhouse_testkit::{Answer, MemoryHost, Mount};
use serde_json::{Value, json};
use table::{OCI_IMAGE, OCI_INDEX, digest, image};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";

fn proxy(host: &MemoryHost, judged: bool) -> Mount<Oci> {
    let settings = json!({"upstream": "https://upstream.test", "judged_by_provenance": judged});
    host.mount::<Oci>("hub", "proxy", settings)
}

fn get(mount: &Mount<Oci>, target: &str) -> Answer {
    mount.request("GET", target).claim("image").send()
}

fn answer_manifest(host: &MemoryHost, reference: &str, manifest: &str) {
    let digest = digest(manifest);
    let headers = [("content-type", OCI_IMAGE), ("docker-content-digest", &digest)];
    for reference in [reference, &digest] {
        for method in ["HEAD", "GET"] {
            host.answer_upstream(
                method,
                &format!("v2/app/manifests/{reference}"),
                200,
                &headers,
                manifest.as_bytes(),
            );
        }
    }
}

/// Adds a referrer of this manifest with this bundle to the upstream. Returns its entry for a list
/// of referrers.
fn answer_carrier(host: &MemoryHost, manifest: &str, bundle: &str) -> Value {
    let carrier = json!({
        "schemaVersion": 2, "mediaType": OCI_IMAGE, "artifactType": BUNDLE,
        "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": digest("{}"), "size": 2},
        "layers": [{"mediaType": BUNDLE, "digest": digest(bundle), "size": bundle.len()}],
        "subject": {"mediaType": OCI_IMAGE, "digest": digest(manifest), "size": manifest.len()},
    });
    let carrier = carrier.to_string();
    answer_manifest(host, &digest(&carrier), &carrier);
    host.answer_upstream("GET", &format!("v2/app/blobs/{}", digest(bundle)), 200, &[], bundle.as_bytes());
    json!({"mediaType": OCI_IMAGE, "digest": digest(&carrier), "size": carrier.len(), "artifactType": BUNDLE})
}

fn answer_referrers(host: &MemoryHost, manifest: &str, entries: &[Value]) {
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}).to_string();
    let headers = [("content-type", OCI_INDEX)];
    host.answer_upstream(
        "GET",
        &format!("v2/app/referrers/{}", digest(manifest)),
        200,
        &headers,
        index.as_bytes(),
    );
}

#[test]
fn statements_are_handed_over_once_and_only_for_the_current_manifest() {
    let host = MemoryHost::new();
    let hub = proxy(&host, true);
    let (first, second) = (image(OCI_IMAGE, "{}", &["first"]), image(OCI_IMAGE, "{}", &["second"]));
    answer_manifest(&host, "1.0", &first);
    let stated = || {
        let mut stated: Vec<_> = host.statements("hub").into_iter().map(|one| one.bundle).collect();
        stated.sort();
        stated
    };

    // The manifest is not signed, so the proxy records nothing.
    get(&hub, "/app/manifests/1.0").expect(200);
    assert!(stated().is_empty() && hub.effects().records.is_empty());
    let one = answer_carrier(&host, &first, "one");
    answer_referrers(&host, &first, std::slice::from_ref(&one));
    get(&hub, "/app/manifests/1.0").expect(200);
    assert_eq!(stated(), [b"one"]);
    let revision = host.revision("hub");
    get(&hub, "/app/manifests/1.0").expect(200);
    assert_eq!((stated().len(), host.revision("hub")), (1, revision));

    // A second carrier is listed only under the tag. A third one cannot be fetched yet and is
    // requested again later.
    let two = answer_carrier(&host, &first, "two");
    let three =
        json!({"mediaType": OCI_IMAGE, "digest": digest("nowhere"), "size": 7, "artifactType": BUNDLE});
    let index = json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [two, three]}).to_string();
    let tag = format!("v2/app/manifests/{}", digest(&first).replace(':', "-"));
    host.answer_upstream("GET", &tag, 200, &[("content-type", OCI_INDEX)], index.as_bytes());
    for _ in 0..2 {
        get(&hub, "/app/manifests/1.0").expect(200);
        assert_eq!(stated(), [b"one", b"two"]);
    }
    let listed = get(&hub, &format!("/app/referrers/{}", digest(&first))).expect(200).json();
    assert_eq!(listed["manifests"].as_array().unwrap().len(), 3);

    // The tag moves: statements about the first manifest do not apply to the second.
    answer_manifest(&host, "1.0", &second);
    get(&hub, "/app/manifests/1.0").expect(200);
    assert!(stated().is_empty());
    answer_manifest(&host, "1.0", &first);
    // The tag moves back, and the statements about the first manifest return. They stay if the
    // upstream then fails.
    answer_referrers(&host, &first, &[one]);
    get(&hub, "/app/manifests/1.0").expect(200);
    assert_eq!(stated(), [b"one", b"two"]);
    let list = format!("v2/app/referrers/{}", digest(&first));
    for target in [&list, &tag] {
        host.fail_upstream("GET", target, packhouse_sdk::Error::Unavailable("gone".to_owned()));
    }
    get(&hub, "/app/manifests/1.0").expect(200);
    assert_eq!(stated(), [b"one", b"two"]);
}

#[test]
fn a_layer_of_several_versions_is_judged_as_the_latest_recorded_ones() {
    let host = MemoryHost::new();
    let settings = json!({"upstream": "https://upstream.test", "judged_by_policies": true});
    let hub = host.mount::<Oci>("hub", "proxy", settings);
    let tags: Vec<String> = (0..10).map(|number| format!("1.{number}")).collect();
    for tag in &tags {
        answer_manifest(&host, tag, &image(OCI_IMAGE, "{}", &["base", tag.as_str()]));
    }
    for layer in ["base", "1.0"] {
        let target = format!("v2/app/blobs/{}", digest(layer));
        host.answer_upstream("GET", &target, 200, &[], layer.as_bytes());
    }
    let pull = |tag: &str| {
        get(&hub, &format!("/app/manifests/{tag}")).expect(200);
    };
    let judged_as = |layer: &str| -> Vec<String> {
        get(&hub, &format!("/app/blobs/{}", digest(layer))).expect(200);
        let fetch = host.fetches().pop().unwrap();
        fetch.part_of.into_iter().map(|(_, version, _)| version).collect()
    };

    for tag in ["1.0", "1.1"] {
        pull(tag);
    }
    assert_eq!(judged_as("base"), ["1.1", "1.0"]);
    assert_eq!(judged_as("1.0"), ["1.0"], "only one image has this layer");
    let revision = host.revision("hub");
    for tag in ["1.0", "1.1", "1.0"] {
        pull(tag);
    }
    assert_eq!(host.revision("hub"), revision, "a known version was recorded again");
    tags.iter().for_each(|tag| pull(tag));
    let latest: Vec<String> = tags.iter().rev().take(8).cloned().collect();
    assert_eq!(judged_as("base"), latest);
}

#[test]
fn more_referrers_than_one_change_can_record_are_listed() {
    let host = MemoryHost::new();
    let settings = json!({"upstream": "https://upstream.test", "judged_by_policies": true});
    let hub = host.mount::<Oci>("hub", "proxy", settings);
    let manifest = image(OCI_IMAGE, "{}", &["layer"]);
    answer_manifest(&host, "1.0", &manifest);
    get(&hub, "/app/manifests/1.0").expect(200);
    let before = hub.effects().records.len();
    let one =
        |number: usize| json!({"mediaType": OCI_IMAGE, "digest": digest(number.to_string()), "size": 1});
    answer_referrers(&host, &manifest, &(0..10_001).map(one).collect::<Vec<_>>());
    let listed = get(&hub, &format!("/app/referrers/{}", digest(&manifest))).expect(200).json();
    assert_eq!(listed["manifests"].as_array().unwrap().len(), 1_000, "one page of referrers");
    assert_eq!(hub.effects().records.len() - before, 7_000);
}

#[test]
fn without_a_policy_for_statements_nothing_more_is_requested() {
    let host = MemoryHost::new();
    let hub = proxy(&host, false);
    let manifest = image(OCI_IMAGE, "{}", &["layer"]);
    answer_manifest(&host, "1.0", &manifest);
    answer_referrers(&host, &manifest, &[answer_carrier(&host, &manifest, "one")]);
    get(&hub, "/app/manifests/1.0").expect(200);
    let fetched: Vec<String> = host.fetched();
    assert_eq!(
        fetched,
        ["HEAD v2/app/manifests/1.0".to_owned(), format!("GET v2/app/manifests/{}", digest(&manifest))]
    );
    assert!(host.statements("hub").is_empty());
}

#[test]
fn a_signature_tag_is_not_judged_as_a_version() {
    let host = MemoryHost::new();
    let hub = proxy(&host, true);
    let tag = format!("sha256-{}.sig", "ab".repeat(32));
    answer_manifest(&host, &tag, &image(OCI_IMAGE, "{}", &["layer"]));
    answer_manifest(&host, "1.0", &image(OCI_IMAGE, "{}", &["other"]));
    for tag in [tag.as_str(), "1.0"] {
        get(&hub, &format!("/app/manifests/{tag}")).expect(200);
    }
    let listed: Vec<String> =
        host.fetches().into_iter().filter_map(|one| one.show_as).map(|version| version.1).collect();
    assert_eq!(listed, ["1.0"]);
}
