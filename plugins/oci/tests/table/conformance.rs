//! Cases of the distribution specification's official conformance suite that the other tables lack.
//! The cases push every kind of data of the suite, pull it by digest and by tag, and delete it.
//! They also send wrong bytes in every kind of push. The workspace's tests cover features of the
//! server itself, such as ranges of a layer.

use super::*;

const EMPTY: &str = "{}";
const EMPTY_TYPE: &str = "application/vnd.oci.empty.v1+json";
const KIND: &str = "application/vnd.example.kind";
const OTHER_KIND: &str = "application/vnd.example.other";

/// The cases for a hosted repository named `releases`.
pub(super) fn cases() -> Vec<Case> {
    [parts(), data(), subjects(), wrong_bytes(), invalid_digests()].concat()
}

fn target(rest: &str) -> String {
    format!("/data/{rest}")
}

fn by_digest(manifest: &str) -> String {
    target(&format!("manifests/{}", digest(manifest)))
}

/// The blobs of the manifests below.
fn parts() -> Vec<Case> {
    let missing = format!("blobs/{}", digest("never pushed"));
    let blobs = [CONFIG, LAYER, OTHER, EMPTY].map(|blob| push("a part", "data", blob));
    [vec![get("a blob that was never pushed", &target(&missing), 404).code("BLOB_UNKNOWN")], blobs.to_vec()]
        .concat()
}

/// Each kind of data is pushed, pulled by digest and by tag, and deleted by tag and by digest.
fn data() -> Vec<Case> {
    let plain = image(OCI_IMAGE, CONFIG, &[LAYER]);
    let both = index(OCI_INDEX, OCI_IMAGE, &[&plain]);
    let with = |manifest: &str, field: &str| manifest.replacen('{', &format!("{{{field},"), 1);
    // The base64 form of `{}`, which is the config.
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
    let base = ("the manifest of an index", OCI_IMAGE, plain.clone());
    let pushed = put_manifest(base.0, &by_digest(&base.2), base.1, &base.2);
    let kinds = [
        (
            "annotations of nearly 4 MiB",
            OCI_IMAGE,
            with(&plain, &format!(r#""annotations":{{{}}}"#, notes.join(","))),
        ),
        ("an empty index", OCI_INDEX, index(OCI_INDEX, OCI_IMAGE, &[])),
        ("an artifact", OCI_IMAGE, artifact),
        ("an index with an artifact's type", OCI_INDEX, with(&both, &format!(r#""artifactType":"{KIND}""#))),
        (
            "an artifact that has only a type",
            OCI_IMAGE,
            of(&descriptor(EMPTY_TYPE, EMPTY), &[descriptor(EMPTY_TYPE, EMPTY)]),
        ),
        ("bytes inside a descriptor", OCI_IMAGE, of(&inline, &[descriptor(KIND, LAYER)])),
        ("layers that are not distributed", OCI_IMAGE, of(&descriptor(KIND, CONFIG), &nondistributable)),
        ("an image with fields of its own", OCI_IMAGE, with(&plain, r#""org.example.field":{"a":[1,null]}"#)),
        ("an index with fields of its own", OCI_INDEX, with(&both, r#""org.example.field":"kept""#)),
        ("an image without layers", OCI_IMAGE, image(OCI_IMAGE, CONFIG, &[])),
    ];
    let rows = kinds.iter().flat_map(|(name, kind, manifest)| push_pull_delete(name, kind, manifest));
    std::iter::once(pushed).chain(rows).collect()
}

fn push_pull_delete(name: &str, kind: &str, manifest: &str) -> Vec<Case> {
    let tagged = target("manifests/tag");
    let with_headers =
        |case: Case| case.header("content-type", kind).header("docker-content-digest", &digest(manifest));
    let head = |target: &str, status| case(name, "HEAD", target, status);
    let digested = by_digest(manifest);
    vec![
        put_manifest(name, &digested, kind, manifest),
        put_manifest(name, &tagged, kind, manifest),
        get(name, &target("tags/list"), 200).contains(r#""tags":["tag"]"#),
        with_headers(head(&tagged, 200)),
        with_headers(head(&digested, 200)),
        with_headers(get(name, &tagged, 200)).content(manifest),
        with_headers(get(name, &digested, 200)).content(manifest),
        case(name, "DELETE", &tagged, 202),
        head(&tagged, 404),
        head(&digested, 200),
        case(name, "DELETE", &digested, 202),
        head(&digested, 404),
    ]
}

/// Referrers of an image, an index or an unknown digest. Each is listed with its size, its
/// annotations, and its own type or the type of its config.
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
        refer("an image of one type", OCI_IMAGE, &one, &plain),
        refer("an image of another type", OCI_IMAGE, &other, &plain),
        refer("an index about an index", OCI_INDEX, &list, &both),
        get("all referrers", &all, 200)
            .contains(&digest(&untyped))
            .contains(&digest(&one))
            .contains(&digest(&other))
            .lacks(&digest(&list)),
        filtered(
            "by the config's type",
            &referrers(&plain, "application/x.config"),
            &listed(&untyped, OCI_IMAGE, "application/x.config"),
        ),
        filtered("by one type", &referrers(&plain, KIND), &listed(&one, OCI_IMAGE, KIND)),
        filtered("by the other type", &referrers(&plain, OTHER_KIND), &listed(&other, OCI_IMAGE, OTHER_KIND)),
        filtered("referrers of an index", &referrers(&both, KIND), &listed(&list, OCI_INDEX, KIND)),
    ]
}

/// Bytes that do not match their digest, in each kind of push.
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
        end("wrong bytes in chunks", ""),
        begin("data"),
        chunk("0-3", "oh n"),
        end("wrong bytes in chunks and in the last request", "o n"),
        begin("data"),
        stream.body("oh no"),
        end("wrong bytes in a stream", ""),
        case("none of the bytes are stored", "HEAD", &target(&format!("blobs/{}", digest("announced"))), 404),
        case("a manifest followed by spaces", "PUT", &by_digest(&manifest), 400)
            .with("content-type", OCI_IMAGE)
            .body(&spaced)
            .code("MANIFEST_INVALID"),
        case("it is not stored", "HEAD", &by_digest(&spaced), 404),
    ]
}

fn invalid_digests() -> Vec<Case> {
    let bad = target("manifests/sha256:baddigeststring");
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    vec![
        case("a push by an invalid digest", "PUT", &bad, 400)
            .with("content-type", OCI_IMAGE)
            .body(&manifest)
            .code("DIGEST_INVALID"),
        get("a pull by it", &bad, 400).code("DIGEST_INVALID"),
        case("a deletion by it", "DELETE", &bad, 400).code("DIGEST_INVALID"),
    ]
}
