//! Statements about images: in referrers, and in signatures under cosign's tags.

use super::{AttestationServer, verdicts};
use packhouse_tests::images::{ImageRepository, MANIFEST, digest};
use packhouse_tests::sigstore::{self, BUNDLE, IDENTITY, Signer, statement};
use serde_json::{Value, json};

pub(crate) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";

/// A manifest with one layer, as clients store a signature.
pub(crate) fn carrier(
    kind: &str,
    layer: &str,
    bytes: &[u8],
    annotations: &Value,
    subject: Option<(&str, usize)>,
) -> String {
    let mut manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST,
        "config": {"mediaType": kind, "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": layer, "digest": digest(bytes), "size": bytes.len(), "annotations": annotations}],
    });
    if let Some((subject, size)) = subject {
        manifest["artifactType"] = json!(kind);
        manifest["subject"] = json!({"mediaType": MANIFEST, "digest": subject, "size": size});
    }
    manifest.to_string()
}

pub(crate) fn refer(
    images: &ImageRepository,
    layer: &str,
    kind: &str,
    bytes: &[u8],
    subject: &str,
) -> String {
    images.push_blob("app", bytes).expect(201);
    let manifest = carrier(kind, layer, bytes, &json!({}), Some((subject, 1)));
    let own = digest(manifest.as_bytes());
    images.push_manifest("app", &own, MANIFEST, &manifest).expect(201);
    own
}

#[test]
fn referrers_and_cosigns_tags_are_judged() {
    let set = AttestationServer::new();
    let images = ImageRepository::create(&set.server, "images", &json!({}));
    let image = digest(images.push("app", "1.0", &[b"a layer"]).unwrap().as_bytes());
    let hex = image.strip_prefix("sha256:").unwrap();
    let good = set.instance.bundle(&Signer::default(), &statement("app", "sha256", hex)).to_string();
    let referrer = refer(&images, BUNDLE, BUNDLE, good.as_bytes(), &image);
    let stated = set.stated(&images.id, "app", "1.0", 1);
    assert_eq!(
        (verdicts(&stated), &stated[0]["identity"]),
        (vec!["verified"], &json!(IDENTITY)),
        "{stated:#?}"
    );
    assert_eq!(
        (&stated[0]["subject"], &stated[0]["path"]),
        (&json!(image), &json!(format!("app/manifests/{referrer}")))
    );
    let listed = images.get(&format!("app/referrers/{image}")).expect(200).json();
    assert_eq!(listed["manifests"][0]["artifactType"], BUNDLE);

    // Pushes three statements: one about another image, one that a key signed, and one in a form
    // that the server cannot verify.
    let elsewhere =
        set.instance.bundle(&Signer::default(), &statement("app", "sha256", &"ab".repeat(32))).to_string();
    refer(&images, BUNDLE, BUNDLE, elsewhere.as_bytes(), &image);
    refer(
        &images,
        BUNDLE,
        BUNDLE,
        sigstore::by_key(&set.key, &statement("app", "sha256", hex)).to_string().as_bytes(),
        &image,
    );
    refer(&images, "application/jose+json", "application/vnd.cncf.notary.signature", b"{}", &image);
    let stated = set.stated(&images.id, "app", "1.0", 4);
    assert_eq!(verdicts(&stated), ["verified", "failed", "verified", "unverifiable"], "{stated:#?}");
    assert!(stated[2]["key"].as_str().unwrap().starts_with("SHA256:"));

    // A signature in cosign's older form, under a tag.
    let document = sigstore::simple_signing(&image);
    images.push_blob("app", document.as_bytes()).expect(201);
    let annotations = set.instance.annotations(&Signer::default(), document.as_bytes());
    let older = carrier(
        "application/vnd.oci.image.config.v1+json",
        SIMPLE_SIGNING,
        document.as_bytes(),
        &annotations,
        None,
    );
    images.push_manifest("app", &format!("sha256-{hex}.sig"), MANIFEST, &older).expect(201);
    let stated = set.stated(&images.id, "app", "1.0", 5);
    assert_eq!(
        (&stated[4]["verdict"], &stated[4]["media_type"]),
        (&json!("verified"), &json!(SIMPLE_SIGNING))
    );

    // Another tag of the same image has all of the statements. A new image under the first tag has
    // none.
    images.push("app", "latest", &[b"a layer"]).unwrap();
    set.stated(&images.id, "app", "latest", 5);
    images.push("app", "latest", &[b"another layer"]).unwrap();
    set.stated(&images.id, "app", "latest", 0);

    // The server no longer lists a deleted statement.
    images.ask("DELETE", &format!("app/manifests/{referrer}")).expect(202);
    images.ask("DELETE", &format!("app/manifests/sha256-{hex}.sig")).expect(202);
    assert_eq!(verdicts(&set.stated(&images.id, "app", "1.0", 3)), ["failed", "verified", "unverifiable"]);
}
