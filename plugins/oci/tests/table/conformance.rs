//! What the official conformance suite of the distribution specification asks that the table does not ask already: every kind of
//! data that it pushes, pulled by digest and by tag and deleted again, and wrong bytes by every way of pushing. What is of the
//! server's own, such as ranges of a layer, is in the workspace's tests.

use super::*;

const EMPTY: &str = "{}";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const KIND: &str = "application/vnd.example.kind";
const OTHER_KIND: &str = "application/vnd.example.other";

/// Rows for a hosted repository called `releases`.
pub(super) fn cases() -> Vec<Case> {
    [parts(), data(), subjects(), wrong_bytes(), no_digest()].concat()
}

fn target(rest: &str) -> String {
    format!("/data/{rest}")
}

fn by_digest(manifest: &str) -> String {
    target(&format!("manifests/{}", digest(manifest)))
}

/// What the manifests below are made of.
fn parts() -> Vec<Case> {
    let missing = format!("blobs/{}", digest("never pushed"));
    let blobs = [CONFIG, LAYER, OTHER, EMPTY].map(|blob| push("a part", "data", blob));
    [vec![get("what was never pushed", &target(&missing), 404).code("BLOB_UNKNOWN")], blobs.to_vec()].concat()
}

/// Each kind of data is pushed, found under its digest and its tag, and goes by tag and by digest.
fn data() -> Vec<Case> {
    let plain = image(OCI_IMAGE, CONFIG, &[LAYER]);
    let both = index(OCI_INDEX, OCI_IMAGE, &[&plain]);
    let with = |manifest: &str, field: &str| manifest.replacen('{', &format!("{{{field},"), 1);
    // Base64 of `{}`, which the config is.
    let inline = descriptor(EMPTY_TYPE, EMPTY).replacen('{', r#"{"data":"e30=","#, 1);
    let elsewhere = |kind: &str| {
        let foreign = descriptor(kind, "never pushed");
        foreign.replacen('{', r#"{"urls":["https://store.example.com/layer"],"#, 1)
    };
    let of = |config: &str, layers: &[String]| {
        format!(
            r#"{{"schemaVersion":2,"mediaType":"{OCI_IMAGE}","config":{config},"layers":[{}]}}"#,
            layers.join(",")
        )
    };
    let nondistributable = [
        elsewhere("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"),
        elsewhere("application/vnd.oci.image.layer.nondistributable.v1.tar"),
        descriptor("application/vnd.oci.image.layer.v1.tar", LAYER),
    ];
    let notes: Vec<String> =
        (0..390).map(|note| format!(r#""note-{note}":"{}""#, "A".repeat(10_000))).collect();
    let artifact = with(
        &of(&descriptor(EMPTY_TYPE, EMPTY), &[descriptor(KIND, LAYER)]),
        &format!(r#""artifactType":"{KIND}""#),
    );
    let kept = ("what an index is made of", OCI_IMAGE, plain.clone());
    let pushed = put_manifest(kept.0, &by_digest(&kept.2), kept.1, &kept.2);
    let kinds = [
        (
            "nearly four MiB of annotations",
            OCI_IMAGE,
            with(&plain, &format!(r#""annotations":{{{}}}"#, notes.join(","))),
        ),
        ("an index of nothing", OCI_INDEX, index(OCI_INDEX, OCI_IMAGE, &[])),
        ("an artifact", OCI_IMAGE, artifact),
        ("an index with an artifact's type", OCI_INDEX, with(&both, &format!(r#""artifactType":"{KIND}""#))),
        (
            "an artifact of nothing but its kind",
            OCI_IMAGE,
            of(&descriptor(EMPTY_TYPE, EMPTY), &[descriptor(EMPTY_TYPE, EMPTY)]),
        ),
        ("bytes within a descriptor", OCI_IMAGE, of(&inline, &[descriptor(KIND, LAYER)])),
        ("layers that are not distributed", OCI_IMAGE, of(&descriptor(KIND, CONFIG), &nondistributable)),
        ("an image with fields of its own", OCI_IMAGE, with(&plain, r#""org.example.field":{"a":[1,null]}"#)),
        ("an index with fields of its own", OCI_INDEX, with(&both, r#""org.example.field":"kept""#)),
        ("no layers", OCI_IMAGE, image(OCI_IMAGE, CONFIG, &[])),
    ];
    let rows = kinds.iter().flat_map(|(name, kind, manifest)| comes_and_goes(name, kind, manifest));
    std::iter::once(pushed).chain(rows).collect()
}

fn comes_and_goes(name: &str, kind: &str, manifest: &str) -> Vec<Case> {
    let tagged = target("manifests/tag");
    let told =
        |case: Case| case.header("content-type", kind).header("docker-content-digest", &digest(manifest));
    let head = |target: &str, status| case(name, "HEAD", target, status);
    let digested = by_digest(manifest);
    vec![
        put_manifest(name, &digested, kind, manifest),
        put_manifest(name, &tagged, kind, manifest),
        get(name, &target("tags/list"), 200).contains(r#""tags":["tag"]"#),
        told(head(&tagged, 200)),
        told(head(&digested, 200)),
        told(get(name, &tagged, 200)).content(manifest),
        told(get(name, &digested, 200)).content(manifest),
        case(name, "DELETE", &tagged, 202),
        head(&tagged, 404),
        head(&digested, 200),
        case(name, "DELETE", &digested, 202),
        head(&digested, 404),
    ]
}

/// What refers to an image, an index or nothing: listed with its own type, or the config's, its size and its annotations.
fn subjects() -> Vec<Case> {
    let plain = image(OCI_IMAGE, CONFIG, &[LAYER]);
    let both = index(OCI_INDEX, OCI_IMAGE, &[&plain]);
    let about = |manifest: &str, kind: &str, subject: &str| {
        let subject = descriptor(kind, subject);
        let notes = r#"{"org.example.note":"hello"}"#;
        manifest.replacen('{', &format!(r#"{{"subject":{subject},"annotations":{notes},"#), 1)
    };
    let typed =
        |kind: &str, manifest: String| manifest.replacen('{', &format!(r#"{{"artifactType":"{kind}","#), 1);
    let untyped = about(&image(OCI_IMAGE, CONFIG, &[]), OCI_IMAGE, &plain);
    let one = typed(KIND, about(&plain, OCI_IMAGE, &plain));
    let other = typed(OTHER_KIND, about(&plain, OCI_IMAGE, &plain));
    let list = typed(KIND, about(&both, OCI_INDEX, &both));
    let listed = |manifest: &str, media_type: &str, kind: &str| {
        let entry = serde_json::json!({
            "mediaType": media_type, "digest": digest(manifest), "size": manifest.len(), "artifactType": kind,
            "annotations": {"org.example.note": "hello"},
        });
        serde_json::json!({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]}).to_string()
    };
    let referrers =
        |subject: &str, kind: &str| target(&format!("referrers/{}?artifactType={kind}", digest(subject)));
    let refer = |name: &str, media_type: &str, manifest: &str, subject: &str| {
        put_manifest(name, &by_digest(manifest), media_type, manifest).header("oci-subject", &digest(subject))
    };
    let filtered = |name: &str, target: &str, index: &str| {
        get(name, target, 200).header("oci-filters-applied", "artifactType").content(index)
    };
    let all = target(&format!("referrers/{}", digest(&plain)));
    vec![
        put_manifest("an index that is a subject", &target("manifests/both"), OCI_INDEX, &both),
        refer("an image without a type", OCI_IMAGE, &untyped, &plain),
        refer("of one kind", OCI_IMAGE, &one, &plain),
        refer("of another", OCI_IMAGE, &other, &plain),
        refer("an index about an index", OCI_INDEX, &list, &both),
        get("all of them", &all, 200)
            .contains(&digest(&untyped))
            .contains(&digest(&one))
            .contains(&digest(&other))
            .lacks(&digest(&list)),
        filtered(
            "by the config's type",
            &referrers(&plain, "application/x.config"),
            &listed(&untyped, OCI_IMAGE, "application/x.config"),
        ),
        filtered("one kind", &referrers(&plain, KIND), &listed(&one, OCI_IMAGE, KIND)),
        filtered("the other", &referrers(&plain, OTHER_KIND), &listed(&other, OCI_IMAGE, OTHER_KIND)),
        filtered("of an index", &referrers(&both, KIND), &listed(&list, OCI_INDEX, KIND)),
    ]
}

/// Bytes that are not what their digest says, by each way in which the table sends right ones.
fn wrong_bytes() -> Vec<Case> {
    let end = |name: &str, bytes: &str| {
        let target = format!("/data/blobs/uploads/{{last}}?digest={}", digest("announced"));
        let end = case(name, "PUT", &target, 400).code("DIGEST_INVALID");
        if bytes.is_empty() { end } else { end.with("content-range", "4-6").body(bytes) }
    };
    let chunk = |range: &str, bytes: &str| {
        case("a chunk", "PATCH", "/data/blobs/uploads/{last}", 202).with("content-range", range).body(bytes)
    };
    let stream =
        case("a stream", "PATCH", "/data/blobs/uploads/{last}", 202).with("transfer-encoding", "chunked");
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    let spaced = format!("{manifest}  ");
    vec![
        begin("data"),
        chunk("0-3", "oh n"),
        chunk("4-6", "o n"),
        end("wrong by chunks", ""),
        begin("data"),
        chunk("0-3", "oh n"),
        end("wrong by chunks and a last one", "o n"),
        begin("data"),
        stream.body("oh no"),
        end("wrong by a stream", ""),
        case("none of it is here", "HEAD", &target(&format!("blobs/{}", digest("announced"))), 404),
        case("a manifest with spaces behind it", "PUT", &by_digest(&manifest), 400)
            .with("content-type", OCI_IMAGE)
            .body(&spaced)
            .code("MANIFEST_INVALID"),
        case("is not here", "HEAD", &by_digest(&spaced), 404),
    ]
}

fn no_digest() -> Vec<Case> {
    let bad = target("manifests/sha256:baddigeststring");
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    vec![
        case("pushed by what is no digest", "PUT", &bad, 400)
            .with("content-type", OCI_IMAGE)
            .body(&manifest)
            .code("DIGEST_INVALID"),
        get("pulled by it", &bad, 400).code("DIGEST_INVALID"),
        case("deleted by it", "DELETE", &bad, 400).code("DIGEST_INVALID"),
    ]
}
