//! The protocol of the distribution specification as a table of requests and expected responses.
//! The rows cover every kind of push with its results, and each error that does not depend on
//! credentials. The requests are sent in this order to one hosted repository.

#[path = "table/conformance.rs"]
mod conformance;
#[path = "table/manifests.rs"]
mod manifests;
#[path = "table/mirror.rs"]
mod mirror;
#[path = "table/uploads.rs"]
mod uploads;

use packhouse_testkit::Case;
use sha2::{Digest as _, Sha256};

pub(crate) const OCI_IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
pub(crate) const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const DOCKER_IMAGE: &str = "application/vnd.docker.distribution.manifest.v2+json";
pub(crate) const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";

const CONFIG: &str = r#"{"architecture":"amd64","os":"linux"}"#;
const LAYER: &str = "the bytes of a layer, which nothing parses";
const OTHER: &str = "another layer";

/// The cases for an empty hosted repository named `releases`.
pub(crate) fn cases() -> Vec<Case> {
    let rest = [uploads::cases(), manifests::cases(), conformance::cases(), mirror::cases()].concat();
    [names(), nothing_here(), rest].concat()
}

/// The digest of these bytes.
pub(crate) fn digest(bytes: impl AsRef<[u8]>) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes.as_ref())))
}

/// An image with this config and these layers.
pub(crate) fn image(media_type: &str, config: &str, layers: &[&str]) -> String {
    let layers: Vec<String> = layers.iter().map(|layer| descriptor("application/x.layer", layer)).collect();
    format!(
        r#"{{"schemaVersion":2,"mediaType":"{media_type}","config":{},"layers":[{}]}}"#,
        descriptor("application/x.config", config),
        layers.join(",")
    )
}

/// An index with these manifests.
pub(crate) fn index(media_type: &str, kind: &str, manifests: &[&str]) -> String {
    let parts: Vec<String> = manifests.iter().map(|manifest| descriptor(kind, manifest)).collect();
    format!(r#"{{"schemaVersion":2,"mediaType":"{media_type}","manifests":[{}]}}"#, parts.join(","))
}

/// A referrer of this artifact type.
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

/// A push of a manifest that succeeds.
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

/// A push of a layer in one request.
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
        root("the ping with HEAD", "HEAD", "/", 200),
        root("the ping with another method", "POST", "/", 405)
            .code("UNSUPPORTED")
            .contains("method not allowed")
            .header("allow", "GET, HEAD"),
        root("the catalogue is refused", "GET", "/_catalog", 405)
            .code("UNSUPPORTED")
            .contains("catalog not yet implemented")
            .header("allow", ""),
        root("a path outside repositories", "GET", "/library/app/manifests/latest", 400)
            .code("NAME_INVALID")
            .contains("Invalid OCI path"),
        root("a path without a repository", "GET", "/repositories/", 400).code("NAME_INVALID").contains(two),
        invalid("a manifest without an image", "GET", "/manifests/latest", two),
        invalid("tags without an image", "GET", "/tags/list", two),
        invalid("an upload without an image", "POST", "/blobs/uploads/", two),
        invalid("a name with a capital letter", "GET", "/App/manifests/latest", "invalid image name"),
        invalid("a name with two dots", "PUT", "/a..b/manifests/latest", "invalid image name"),
        invalid("a later part that is invalid", "GET", "/app/-b/tags/list", "invalid image name"),
        invalid(
            "a name that is too long",
            "GET",
            &format!("/{}/tags/list", "a".repeat(250)),
            "invalid image name",
        ),
        invalid("a path outside the protocol", "GET", "/app", "Invalid OCI path"),
        invalid("another path outside the protocol", "GET", "/app/layers/x", "Invalid OCI path"),
        invalid("an invalid tag", "PUT", "/app/manifests/.x", "invalid tag format"),
        invalid(
            "a tag that is too long",
            "GET",
            &format!("/app/manifests/{}", "a".repeat(129)),
            "invalid tag format",
        ),
        case("a digest of another algorithm", "GET", "/app/manifests/sha512:00", 400).code("DIGEST_INVALID"),
        case("a digest in capitals", "HEAD", &format!("/app/blobs/sha256:{}", "A".repeat(64)), 400)
            .code("DIGEST_INVALID"),
        case("deleting a layer", "DELETE", &format!("/app/blobs/{}", digest(LAYER)), 405)
            .code("UNSUPPORTED")
            .contains("method not allowed")
            .header("allow", "GET, HEAD"),
        case("an unsupported method", "PATCH", "/app/manifests/latest", 405)
            .code("UNSUPPORTED")
            .header("allow", "GET, HEAD, PUT, DELETE"),
        case("an unsupported method for tags", "DELETE", "/app/tags/list", 405)
            .code("UNSUPPORTED")
            .header("allow", "GET, HEAD"),
        case("listing sessions", "GET", "/app/blobs/uploads/", 405)
            .code("UNSUPPORTED")
            .header("allow", "POST"),
        case("posting to a session", "POST", "/app/blobs/uploads/0123", 405)
            .code("UNSUPPORTED")
            .header("allow", "GET, HEAD, PATCH, PUT, DELETE"),
        Case::new("nothing is at the repository's own address", "GET", "/", 404),
    ]
}

fn nothing_here() -> Vec<Case> {
    vec![
        get("no manifest", "/app/manifests/latest", 404)
            .code("MANIFEST_UNKNOWN")
            .contains("manifest not found"),
        case("no manifest by HEAD", "HEAD", "/app/manifests/latest", 404).code("MANIFEST_UNKNOWN"),
        get("no manifest by digest", &format!("/app/manifests/{}", digest("x")), 404)
            .code("MANIFEST_UNKNOWN"),
        case("no layer", "HEAD", &format!("/app/blobs/{}", digest(LAYER)), 404).code("BLOB_UNKNOWN"),
        get("no tags", "/app/tags/list", 404).code("NAME_UNKNOWN").contains("repository not found"),
        get("no session", "/app/blobs/uploads/0123", 404).code("BLOB_UPLOAD_UNKNOWN"),
        case("no session to append to", "PATCH", "/app/blobs/uploads/0123", 404)
            .body(LAYER)
            .code("BLOB_UPLOAD_UNKNOWN"),
        case("no session to cancel", "DELETE", "/app/blobs/uploads/0123", 404).code("BLOB_UPLOAD_UNKNOWN"),
        get("no referrers of an unknown digest", &format!("/app/referrers/{}", digest("x")), 200)
            .content(format!(r#"{{"manifests":[],"mediaType":"{OCI_INDEX}","schemaVersion":2}}"#)),
        case("nothing to delete", "DELETE", "/app/manifests/latest", 404).code("MANIFEST_UNKNOWN"),
    ]
}
