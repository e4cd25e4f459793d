//! The distribution specification's requests and their answers, a row each, in the order in which they are sent to one hosted
//! repository. Every kind of push, what it leaves behind, and each refusal that does not need a credential.

#[path = "conformance.rs"]
mod conformance;

use packhouse_testkit::Case;
use sha2::{Digest as _, Sha256};

pub(crate) const OCI_IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const DOCKER_IMAGE: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub(crate) const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

const CONFIG: &str = r#"{"architecture":"amd64","os":"linux"}"#;
const LAYER: &str = "a layer's bytes, which nobody looks into";
const OTHER: &str = "another layer";

/// Rows for a hosted repository called `releases` in which nothing is yet.
pub(crate) fn cases() -> Vec<Case> {
    [
        names(),
        nothing_here(),
        patch_then_empty_put(),
        body_in_put(),
        chunks(),
        whole_in_one_post(),
        empty_layers(),
        cancelled(),
        mounts(),
        manifests(),
        reads(),
        refused_manifests(),
        missing_parts(),
        docker_images(),
        foreign_layers(),
        indexes(),
        referrers(),
        several_tags_at_once(),
        tags(),
        deletions(),
        deleted_and_pushed_again(),
        conformance::cases(),
    ]
    .concat()
}

/// The digest of these bytes.
pub(crate) fn digest(bytes: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes.as_ref())))
}

/// An image of this config and these layers.
pub(crate) fn image(media_type: &str, config: &str, layers: &[&str]) -> String {
    let layers: Vec<String> = layers.iter().map(|layer| descriptor("application/x.layer", layer)).collect();
    format!(
        r#"{{"schemaVersion":2,"mediaType":"{media_type}","config":{},"layers":[{}]}}"#,
        descriptor("application/x.config", config),
        layers.join(",")
    )
}

/// An index of these manifests.
pub(crate) fn index(media_type: &str, kind: &str, manifests: &[&str]) -> String {
    let parts: Vec<String> = manifests.iter().map(|manifest| descriptor(kind, manifest)).collect();
    format!(r#"{{"schemaVersion":2,"mediaType":"{media_type}","manifests":[{}]}}"#, parts.join(","))
}

/// What says something of this kind about a subject.
pub(crate) fn referrer(kind: &str, subject: &str, note: &str) -> String {
    format!(
        r#"{{"schemaVersion":2,"mediaType":"{OCI_IMAGE}","artifactType":"{kind}","config":{},"layers":[],"subject":{},"annotations":{{"note":"{note}"}}}}"#,
        descriptor("application/x.config", CONFIG),
        descriptor(OCI_IMAGE, subject),
    )
}

fn descriptor(kind: &str, bytes: &str) -> String {
    format!(r#"{{"mediaType":"{kind}","digest":"{}","size":{}}}"#, digest(bytes), bytes.len())
}

fn case(name: &str, method: &str, target: &str, status: u16) -> Case {
    Case::new(name, method, target, status).claim("image")
}

fn get(name: &str, target: &str, status: u16) -> Case {
    case(name, "GET", target, status)
}

/// A manifest that is taken.
pub(crate) fn put_manifest(name: &str, target: &str, media_type: &str, manifest: &str) -> Case {
    case(name, "PUT", target, 201)
        .with("content-type", media_type)
        .body(manifest)
        .header("docker-content-digest", &digest(manifest))
}

fn refused_manifest(name: &str, media_type: &str, manifest: &str, message: &str) -> Case {
    case(name, "PUT", "/app/manifests/bad", 400)
        .with("content-type", media_type)
        .body(manifest)
        .code("MANIFEST_INVALID")
        .contains(message)
}

/// A layer pushed by one request.
pub(crate) fn push(name: &str, image: &str, layer: &str) -> Case {
    case(name, "POST", &format!("/{image}/blobs/uploads/?digest={}", digest(layer)), 201).body(layer)
}

fn begin(image: &str) -> Case {
    case("a session begins", "POST", &format!("/{image}/blobs/uploads/"), 202).header("range", "0-0")
}

fn names() -> Vec<Case> {
    let invalid = |name: &str, method: &str, target: &str, message: &str| {
        case(name, method, target, 400).code("NAME_INVALID").contains(message)
    };
    let two = "Docker image names require at least two segments: <repository>/<image>";
    let root = |name: &str, method: &str, target: &str, status: u16| {
        Case::new(name, method, target, status).claim("root")
    };
    vec![
        root("the ping", "GET", "/", 200)
            .content("{}")
            .header("docker-distribution-api-version", "registry/2.0"),
        root("by HEAD", "HEAD", "/", 200),
        root("by another method", "POST", "/", 405).code("UNSUPPORTED").contains("method not allowed"),
        root("no catalogue", "GET", "/_catalog", 405)
            .code("UNSUPPORTED")
            .contains("catalog not yet implemented"),
        root("not below repositories", "GET", "/library/app/manifests/latest", 400)
            .code("NAME_INVALID")
            .contains("Invalid OCI path"),
        root("no repository", "GET", "/repositories/", 400).code("NAME_INVALID").contains(two),
        invalid("no image: a manifest", "GET", "/manifests/latest", two),
        invalid("no image: tags", "GET", "/tags/list", two),
        invalid("no image: an upload", "POST", "/blobs/uploads/", two),
        invalid("a capital letter", "GET", "/App/manifests/latest", "invalid image name"),
        invalid("two dots", "PUT", "/a..b/manifests/latest", "invalid image name"),
        invalid("in a later part", "GET", "/app/-b/tags/list", "invalid image name"),
        invalid("too long", "GET", &format!("/{}/tags/list", "a".repeat(250)), "invalid image name"),
        invalid("none of the protocol's", "GET", "/app", "Invalid OCI path"),
        invalid("nor this", "GET", "/app/layers/x", "Invalid OCI path"),
        invalid("no tag", "PUT", "/app/manifests/.x", "invalid tag format"),
        invalid(
            "a tag too long",
            "GET",
            &format!("/app/manifests/{}", "a".repeat(129)),
            "invalid tag format",
        ),
        case("another kind of digest", "GET", "/app/manifests/sha512:00", 400).code("DIGEST_INVALID"),
        case("a digest in capitals", "HEAD", &format!("/app/blobs/sha256:{}", "A".repeat(64)), 400)
            .code("DIGEST_INVALID"),
        case("deleting a layer", "DELETE", &format!("/app/blobs/{}", digest(LAYER)), 405)
            .code("UNSUPPORTED")
            .contains("method not allowed"),
        case("an odd method", "PATCH", "/app/manifests/latest", 405).code("UNSUPPORTED"),
        case("another on tags", "DELETE", "/app/tags/list", 405).code("UNSUPPORTED"),
        Case::new("nothing is at the repository's own address", "GET", "/", 404),
    ]
}

fn nothing_here() -> Vec<Case> {
    vec![
        get("no manifest", "/app/manifests/latest", 404)
            .code("MANIFEST_UNKNOWN")
            .contains("manifest not found"),
        case("no manifest by HEAD", "HEAD", "/app/manifests/latest", 404).code("MANIFEST_UNKNOWN"),
        get("none by digest", &format!("/app/manifests/{}", digest("x")), 404).code("MANIFEST_UNKNOWN"),
        case("no layer", "HEAD", &format!("/app/blobs/{}", digest(LAYER)), 404).code("BLOB_UNKNOWN"),
        get("no tags", "/app/tags/list", 404).code("NAME_UNKNOWN").contains("repository not found"),
        get("no session", "/app/blobs/uploads/0123", 404).code("BLOB_UPLOAD_UNKNOWN"),
        case("none to add to", "PATCH", "/app/blobs/uploads/0123", 404)
            .body(LAYER)
            .code("BLOB_UPLOAD_UNKNOWN"),
        case("none to cancel", "DELETE", "/app/blobs/uploads/0123", 404).code("BLOB_UPLOAD_UNKNOWN"),
        get("referrers of nothing are none", &format!("/app/referrers/{}", digest("x")), 200)
            .content(format!(r#"{{"manifests":[],"mediaType":"{OCI_INDEX}","schemaVersion":2}}"#)),
        case("nothing to delete", "DELETE", "/app/manifests/latest", 404).code("MANIFEST_UNKNOWN"),
    ]
}

/// As docker, podman and crane do it.
fn patch_then_empty_put() -> Vec<Case> {
    let blob = format!("/v2/repositories/releases/app/blobs/{}", digest(LAYER));
    vec![
        begin("app"),
        case("all of it in one stream", "PATCH", "/app/blobs/uploads/{last}", 202)
            .with("transfer-encoding", "chunked")
            .body(LAYER)
            .header("range", &format!("0-{}", LAYER.len() - 1)),
        get("how far it has come", "/app/blobs/uploads/{last}", 204)
            .header("range", &format!("0-{}", LAYER.len() - 1)),
        case("another image's session it is not", "PATCH", "/other/blobs/uploads/{last}", 404).body(LAYER),
    ]
    .into_iter()
    .chain([
        begin("app"),
        case("the stream", "PATCH", "/app/blobs/uploads/{last}", 202).body(LAYER),
        case("the end", "PUT", &format!("/app/blobs/uploads/{{last}}?digest={}", digest(LAYER)), 201)
            .header("location", &blob)
            .header("docker-content-digest", &digest(LAYER)),
        case("is there", "HEAD", &format!("/app/blobs/{}", digest(LAYER)), 200)
            .header("docker-content-digest", &digest(LAYER))
            .header("content-type", "application/octet-stream"),
        get("is what was sent", &format!("/app/blobs/{}", digest(LAYER)), 200).content(LAYER),
        get("for every image of the repository", &format!("/team/b/blobs/{}", digest(LAYER)), 200),
    ])
    .collect()
}

/// As containerd, oras and helm do it.
fn body_in_put() -> Vec<Case> {
    let end = |bytes: &str| format!("/app/blobs/uploads/{{last}}?digest={}", digest(bytes));
    vec![
        begin("app"),
        case("no digest", "PUT", "/app/blobs/uploads/{last}", 400).body(OTHER).code("DIGEST_INVALID"),
        begin("app"),
        case("all of it with the end", "PUT", &end(OTHER), 201).body(OTHER),
        get("is there", &format!("/app/blobs/{}", digest(OTHER)), 200).content(OTHER),
        begin("app"),
        case("other bytes than announced", "PUT", &end("x"), 400)
            .body("y")
            .code("DIGEST_INVALID")
            .contains("provided digest did not match uploaded content"),
        case("are not kept", "HEAD", &format!("/app/blobs/{}", digest("y")), 404),
    ]
}

/// As regclient does it.
fn chunks() -> Vec<Case> {
    let whole = "0123456789";
    let add = |name: &str, range: &str, body: &str, status: u16| {
        case(name, "PATCH", "/app/blobs/uploads/{last}", status).with("content-range", range).body(body)
    };
    let end = format!("/app/blobs/uploads/{{last}}?digest={}", digest(whole));
    vec![
        begin("app"),
        add("the first chunk", "0-3", "0123", 202).header("range", "0-3"),
        add("the first again", "0-3", "0123", 416).code("RANGE_INVALID").header("range", "0-3"),
        add("one too far", "8-9", "89", 416).header("range", "0-3"),
        get("where to go on", "/app/blobs/uploads/{last}", 204).header("range", "0-3"),
        add("with another length than it says", "4-5", "456", 400).code("SIZE_INVALID"),
        add("no range", "four", "4", 400).code("BLOB_UPLOAD_INVALID"),
        add("backwards", "5-4", "4", 400).code("BLOB_UPLOAD_INVALID"),
        add("without content", "4-6", "", 400).code("BLOB_UPLOAD_INVALID"),
        add("as HTTP writes it", "bytes 4-6/10", "456", 202).header("range", "0-6"),
        case("the last with the end, too far", "PUT", &end, 416).with("content-range", "8-9").body("89"),
        case("the last with the end", "PUT", &end, 201).with("content-range", "7-9").body("789"),
        get("is whole", &format!("/app/blobs/{}", digest(whole)), 200).content(whole),
        case("the session is over", "PUT", &end, 404).body("x").code("BLOB_UPLOAD_UNKNOWN"),
    ]
}

fn whole_in_one_post() -> Vec<Case> {
    let target = |digest: &str| format!("/app/blobs/uploads/?digest={digest}");
    vec![
        push("at once", "app", "at once").header("docker-content-digest", &digest("at once")),
        get("is there", &format!("/app/blobs/{}", digest("at once")), 200).content("at once"),
        case("other bytes", "POST", &target(&digest("a")), 400).body("b").code("DIGEST_INVALID"),
        case("another algorithm", "POST", &target("sha512:00"), 400).body("b").code("DIGEST_INVALID"),
        case("without the last slash", "POST", "/app/blobs/uploads", 202),
    ]
}

fn empty_layers() -> Vec<Case> {
    let end = format!("/app/blobs/uploads/{{last}}?digest={}", digest(""));
    let streamed = |name: &str| {
        case(name, "PATCH", "/app/blobs/uploads/{last}", 202).with("transfer-encoding", "chunked")
    };
    vec![
        begin("app"),
        case("a chunk without content", "PATCH", "/app/blobs/uploads/{last}", 400)
            .with("content-length", "0")
            .code("BLOB_UPLOAD_INVALID"),
        begin("app"),
        streamed("a stream that turns out empty").header("range", "0-0"),
        case("its end", "PUT", &end, 201),
        begin("app"),
        case("without a chunk", "PUT", &end, 201),
        push("at once", "app", ""),
        get("is there", &format!("/app/blobs/{}", digest("")), 200).content(""),
    ]
}

fn cancelled() -> Vec<Case> {
    vec![
        begin("app"),
        case("cancelled", "DELETE", "/app/blobs/uploads/{last}", 204),
        begin("app"),
        case("some bytes", "PATCH", "/app/blobs/uploads/{last}", 202).body("some"),
        case("cancelled after them", "DELETE", "/app/blobs/uploads/{last}", 204),
    ]
}

fn mounts() -> Vec<Case> {
    let target = |digest: &str, from: &str| format!("/team/b/blobs/uploads/?mount={digest}&from={from}");
    vec![
        case("within the repository", "POST", &target(&digest(LAYER), "repositories/releases/app"), 201)
            .header("location", &format!("/v2/repositories/releases/team/b/blobs/{}", digest(LAYER)))
            .header("docker-content-digest", &digest(LAYER)),
        case("from wherever it is", "POST", &format!("/team/b/blobs/uploads/?mount={}", digest(LAYER)), 201),
        case(
            "what is nowhere begins a session",
            "POST",
            &target(&digest("no"), "repositories/releases/app"),
            202,
        ),
        case("so does an unknown source", "POST", &target(&digest("no"), "repositories/nowhere/app"), 202),
        case("and one that makes no sense", "POST", &target(&digest("no"), "app"), 202),
        case("no digest", "POST", &target("latest", "repositories/releases/app"), 400).code("DIGEST_INVALID"),
    ]
}

fn manifests() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER, OTHER]);
    let location = format!("/v2/repositories/releases/team/app/manifests/{}", digest(&manifest));
    vec![
        push("a config", "team/app", CONFIG),
        put_manifest("by tag", "/team/app/manifests/latest", OCI_IMAGE, &manifest)
            .header("location", &location)
            .no_header("oci-subject"),
        put_manifest("the same again", "/team/app/manifests/latest", OCI_IMAGE, &manifest),
        put_manifest(
            "by digest",
            &format!("/team/app/manifests/{}", digest(&manifest)),
            OCI_IMAGE,
            &manifest,
        ),
        put_manifest(
            "with a parameter",
            "/team/app/manifests/1.0",
            &format!("{OCI_IMAGE}; charset=utf-8"),
            &manifest,
        ),
        case(
            "with the digest of something else",
            "PUT",
            &format!("/team/app/manifests/{}", digest("x")),
            400,
        )
        .with("content-type", OCI_IMAGE)
        .body(&manifest)
        .code("MANIFEST_INVALID")
        .contains("computed digest does not match reference"),
    ]
}

fn reads() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER, OTHER]);
    let by_digest = format!("/team/app/manifests/{}", digest(&manifest));
    let told = |case: Case| {
        case.header("docker-content-digest", &digest(&manifest)).header("content-type", OCI_IMAGE)
    };
    vec![
        told(get("by tag, byte for byte", "/team/app/manifests/latest", 200)).content(&manifest),
        told(get("by digest", &by_digest, 200)).content(&manifest),
        told(case("by HEAD", "HEAD", "/team/app/manifests/latest", 200)).content(""),
        told(get("whatever is accepted", "/team/app/manifests/latest", 200)).with("accept", DOCKER_IMAGE),
        get("not under another image's name", &by_digest.replace("team/app", "team/b"), 404)
            .code("MANIFEST_UNKNOWN"),
    ]
}

fn refused_manifests() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    let bad = refused_manifest;
    vec![
        bad("another type", "application/json", &manifest, "unsupported manifest media type"),
        bad("the first schema", "application/vnd.docker.distribution.manifest.v1+json", "{}", "unsupported"),
        bad("a type that is not its own", DOCKER_IMAGE, &manifest, "is not its Content-Type"),
        bad("no JSON", OCI_IMAGE, "{", "manifest body is not valid JSON"),
        bad("nothing", OCI_IMAGE, "", "manifest body is not valid JSON"),
        bad(
            "both kinds at once",
            OCI_IMAGE,
            &manifest.replacen("{", r#"{"manifests":[],"#, 1),
            "no `manifests`",
        ),
        bad(
            "both kinds the other way",
            OCI_INDEX,
            &index(OCI_INDEX, OCI_IMAGE, &[]).replacen("{", r#"{"layers":[],"#, 1),
            "no `layers`",
        ),
        bad(
            "over 4 MiB by its length",
            OCI_IMAGE,
            &" ".repeat((4 << 20) + 1),
            "manifest exceeds maximum size",
        ),
        bad("deep as a well", OCI_IMAGE, &"[".repeat(100_000), "manifest body is not valid JSON"),
        get("none of them is here", "/app/manifests/bad", 404),
    ]
}

fn missing_parts() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER, "missing one", "missing two"]);
    let list = index(OCI_INDEX, OCI_IMAGE, &["no manifest", LAYER]);
    let put = |name: &str, kind: &str, manifest: &str| {
        case(name, "PUT", "/app/manifests/bad", 400)
            .with("content-type", kind)
            .body(manifest)
            .code("MANIFEST_BLOB_UNKNOWN")
            .contains("manifest names a blob that was never uploaded")
    };
    let each = "manifest names a blob that was never uploaded\nmanifest names a blob that was never uploaded";
    vec![
        put("each missing layer is told", OCI_IMAGE, &manifest).contains(each),
        put("each missing manifest too", OCI_INDEX, &list).contains(each),
        get("nothing of it is here", "/app/manifests/bad", 404),
    ]
}

fn docker_images() -> Vec<Case> {
    let manifest = image(DOCKER_IMAGE, CONFIG, &[LAYER]);
    let list = index(DOCKER_LIST, DOCKER_IMAGE, &[&manifest]);
    vec![
        put_manifest("an image", "/app/manifests/docker", DOCKER_IMAGE, &manifest),
        get("keeps its type", "/app/manifests/docker", 200).header("content-type", DOCKER_IMAGE),
        put_manifest("a list", "/app/manifests/list", DOCKER_LIST, &list),
        get("keeps its type too", "/app/manifests/list", 200)
            .header("content-type", DOCKER_LIST)
            .content(&list),
    ]
}

fn foreign_layers() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &["elsewhere"])
        .replace("application/x.layer", "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip");
    vec![put_manifest("its layer is not here", "/app/manifests/foreign", OCI_IMAGE, &manifest)]
}

fn indexes() -> Vec<Case> {
    let (one, two) = (image(OCI_IMAGE, CONFIG, &[LAYER]), image(OCI_IMAGE, CONFIG, &[OTHER]));
    let both = index(OCI_INDEX, OCI_IMAGE, &[&one, &two]);
    let nested = index(OCI_INDEX, OCI_INDEX, &[&both]);
    let cache = index(OCI_INDEX, "application/x.layer", &[LAYER, OTHER]);
    let by_digest = |manifest: &str| format!("/multi/manifests/{}", digest(manifest));
    vec![
        put_manifest("one platform", &by_digest(&one), OCI_IMAGE, &one),
        put_manifest("another", &by_digest(&two), OCI_IMAGE, &two),
        put_manifest("both", "/multi/manifests/latest", OCI_INDEX, &both),
        put_manifest("an index of indexes", "/multi/manifests/nested", OCI_INDEX, &nested),
        put_manifest(
            "layers in an index, as a build's cache has them",
            "/multi/manifests/cache",
            OCI_INDEX,
            &cache,
        ),
        get("is served", "/multi/manifests/latest", 200).content(&both).header("content-type", OCI_INDEX),
        get("with its parts", &by_digest(&two), 200).content(&two),
        get("one tag each", "/multi/tags/list", 200)
            .content(r#"{"name":"repositories/releases/multi","tags":["cache","latest","nested"]}"#),
    ]
}

fn referrers() -> Vec<Case> {
    let subject = image(OCI_IMAGE, CONFIG, &[LAYER, OTHER]);
    let signature = referrer("application/x.signature", &subject, "signed");
    let sbom = referrer("application/x.sbom", &subject, "listed");
    let early = referrer("application/x.signature", "not here yet", "early");
    let by_digest = |manifest: &str| format!("/team/app/manifests/{}", digest(manifest));
    let list = format!("/team/app/referrers/{}", digest(&subject));
    let first = std::cmp::min(digest(&signature), digest(&sbom));
    vec![
        put_manifest("a signature", &by_digest(&signature), OCI_IMAGE, &signature)
            .header("oci-subject", &digest(&subject)),
        put_manifest("a bill of materials", "/team/app/manifests/sbom", OCI_IMAGE, &sbom),
        put_manifest("before its subject", &by_digest(&early), OCI_IMAGE, &early)
            .header("oci-subject", &digest("not here yet")),
        get("both are listed", &list, 200)
            .header("content-type", OCI_INDEX)
            .no_header("oci-filters-applied")
            .contains(&digest(&signature))
            .contains(&digest(&sbom))
            .contains(r#""annotations":{"note":"signed"}"#)
            .lacks(&digest(&early)),
        get("one kind of them", &format!("{list}?artifactType=application%2Fx.sbom"), 200)
            .header("oci-filters-applied", "artifactType")
            .contains(&digest(&sbom))
            .lacks(&digest(&signature)),
        get("after the first", &format!("{list}?last={first}"), 200).lacks(&first),
        get("of no kind that there is", &format!("{list}?artifactType=x"), 200).contains(r#""manifests":[]"#),
        get(
            "of what came before its subject",
            &format!("/team/app/referrers/{}", digest("not here yet")),
            200,
        )
        .contains(&digest(&early)),
        get("of no digest", "/team/app/referrers/latest", 400).code("DIGEST_INVALID"),
        case("deleting one", "DELETE", &by_digest(&signature), 202),
        get("it is listed no more", &list, 200).contains(&digest(&sbom)).lacks(&digest(&signature)),
    ]
}

fn several_tags_at_once() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    let many: Vec<String> = (0..101).map(|number| format!("tag=t{number}")).collect();
    let target = |tags: &str| format!("/several/manifests/{}?{tags}", digest(&manifest));
    vec![
        put_manifest("by digest with tags", &target("tag=b&tag=a&tag=b"), OCI_IMAGE, &manifest)
            .header("oci-tag", "a, b"),
        get("each is there", "/several/manifests/a", 200).content(&manifest),
        case("too many", "PUT", &target(&many.join("&")), 414).body(&manifest),
        case("one that is none", "PUT", &target("tag=."), 400).body(&manifest).code("NAME_INVALID"),
    ]
}

fn tags() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    let list = |name: &str, query: &str, tags: &str| {
        get(name, &format!("/many/tags/list{query}"), 200)
            .content(format!(r#"{{"name":"repositories/releases/many","tags":[{tags}]}}"#))
    };
    let put = |tag: &str| put_manifest("a tag", &format!("/many/manifests/{tag}"), OCI_IMAGE, &manifest);
    let next = |n: u32, last: &str| {
        format!("</v2/repositories/releases/many/tags/list?n={n}&last={last}>; rel=\"next\"")
    };
    vec![
        put("b"),
        put("A"),
        put("_c"),
        put("a"),
        list("in the order of their bytes", "", r#""A","_c","a","b""#).no_header("link"),
        list("a page", "?n=2", r#""A","_c""#).header("link", &next(2, "_c")),
        list("the next, which is the last", "?n=2&last=_c", r#""a","b""#).no_header("link"),
        list("beyond it", "?n=2&last=b", "").no_header("link"),
        list("none", "?n=0", "").no_header("link"),
        list("after one that is not there", "?last=B", r#""_c","a","b""#),
        list("more than anyone has", "?n=99999999999999999999999", r#""A","_c","a","b""#),
        get("fewer than none", "/many/tags/list?n=-1", 400).code("PAGINATION_NUMBER_INVALID"),
        get("no number", "/many/tags/list?n=abc", 400).code("PAGINATION_NUMBER_INVALID"),
        get("a control character", "/many/tags/list?last=%00", 400).code("PAGINATION_NUMBER_INVALID"),
    ]
}

fn deletions() -> Vec<Case> {
    let (one, two) = (image(OCI_IMAGE, CONFIG, &[LAYER]), image(OCI_IMAGE, CONFIG, &[OTHER]));
    let by_digest = |manifest: &str| format!("/gone/manifests/{}", digest(manifest));
    let delete = |name: &str, target: &str, status: u16| case(name, "DELETE", target, status);
    vec![
        put_manifest("a tag", "/gone/manifests/a", OCI_IMAGE, &one),
        put_manifest("another of the same", "/gone/manifests/b", OCI_IMAGE, &one),
        put_manifest("of another", "/gone/manifests/c", OCI_IMAGE, &two),
        delete("by tag", "/gone/manifests/a", 202),
        get("the tag is gone", "/gone/manifests/a", 404),
        get("the manifest is not", &by_digest(&one), 200),
        get("nor its other tag", "/gone/manifests/b", 200),
        delete("once", "/gone/manifests/a", 404).code("MANIFEST_UNKNOWN"),
        put_manifest("a tag moves", "/gone/manifests/c", OCI_IMAGE, &one),
        get("what it was of stays", &by_digest(&two), 200),
        delete("by digest", &by_digest(&one), 202),
        get("the manifest is gone", &by_digest(&one), 404),
        get("its tags too", "/gone/tags/list", 200).contains(r#""tags":[]"#),
        delete("once by digest", &by_digest(&one), 404),
        delete("the last one", &by_digest(&two), 202),
        get("nothing is left of the image", "/gone/tags/list", 404).code("NAME_UNKNOWN"),
    ]
}

fn deleted_and_pushed_again() -> Vec<Case> {
    let manifest = image(OCI_IMAGE, CONFIG, &[LAYER]);
    vec![
        put_manifest("again", "/gone/manifests/a", OCI_IMAGE, &manifest),
        get("is back", "/gone/manifests/a", 200).content(&manifest),
        get("alone", "/gone/tags/list", 200).contains(r#""tags":["a"]"#),
    ]
}
