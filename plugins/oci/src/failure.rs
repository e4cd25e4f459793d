//! The refusals of the distribution specification, in the words that the product's specification gives them.

use packhouse_sdk::{Digest, Failure};
use serde_json::json;

/// 400 `NAME_INVALID` for an address without an image's name.
pub(crate) fn no_image() -> Failure {
    name("Docker image names require at least two segments: <repository>/<image>")
}

/// 400 `NAME_INVALID` for a part of an image's name, or all of it too long.
pub(crate) fn bad_image() -> Failure {
    name("invalid image name")
}

/// 400 `NAME_INVALID` for a name that no repository can have.
pub(crate) fn bad_repository() -> Failure {
    name("invalid repository name")
}

/// 400 `NAME_INVALID` for an address that is none of the protocol's.
pub(crate) fn bad_path() -> Failure {
    name("Invalid OCI path")
}

/// 400 `NAME_INVALID` for what is no tag.
pub(crate) fn bad_tag() -> Failure {
    name("invalid tag format")
}

fn name(message: &str) -> Failure {
    Failure::new(400, "NAME_INVALID", message)
}

/// 404 `NAME_UNKNOWN` for an image of which nothing is here.
pub(crate) fn unknown_image() -> Failure {
    Failure::new(404, "NAME_UNKNOWN", "repository not found")
}

/// 404 `MANIFEST_UNKNOWN`.
pub(crate) fn unknown_manifest() -> Failure {
    Failure::new(404, "MANIFEST_UNKNOWN", "manifest not found")
}

/// 404 `BLOB_UNKNOWN`.
pub(crate) fn unknown_blob() -> Failure {
    Failure::new(404, "BLOB_UNKNOWN", "blob unknown to registry")
}

/// 400 `MANIFEST_INVALID`.
pub(crate) fn manifest(message: impl Into<String>) -> Failure {
    Failure::new(400, "MANIFEST_INVALID", message)
}

/// 400 `MANIFEST_INVALID` for more than 4 MiB.
pub(crate) fn manifest_too_large() -> Failure {
    manifest("manifest exceeds maximum size")
}

/// 400 with one `MANIFEST_BLOB_UNKNOWN` for each of these.
pub(crate) fn missing(digests: &[Digest]) -> Failure {
    let mut failure = manifest("");
    failure.problems.clear();
    for digest in digests {
        failure = failure
            .and("MANIFEST_BLOB_UNKNOWN", "manifest names a blob that was never uploaded")
            .detail(&json!({"digest": digest.as_str()}));
    }
    failure
}

/// 400 `DIGEST_INVALID` for what is no SHA-256 digest.
pub(crate) fn bad_digest() -> Failure {
    Failure::new(400, "DIGEST_INVALID", "a digest is `sha256:` and 64 characters of lower-case hex")
}

/// 400 `DIGEST_INVALID` for bytes of another digest.
pub(crate) fn wrong_digest() -> Failure {
    Failure::new(400, "DIGEST_INVALID", "provided digest did not match uploaded content")
}

/// 400 `SIZE_INVALID` for another number of bytes than was announced.
pub(crate) fn wrong_size() -> Failure {
    Failure::new(400, "SIZE_INVALID", "provided length did not match content length")
}

/// 404 `BLOB_UPLOAD_UNKNOWN`.
pub(crate) fn unknown_upload() -> Failure {
    Failure::new(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
}

/// 400 `BLOB_UPLOAD_INVALID`.
pub(crate) fn bad_upload(message: &str) -> Failure {
    Failure::new(400, "BLOB_UPLOAD_INVALID", message)
}

/// 405 `UNSUPPORTED` for a method that the address does not have, with `Allow` (RFC 9110 §15.5.6) for those that it has.
pub(crate) fn bad_method(allowed: &str) -> Failure {
    Failure::new(405, "UNSUPPORTED", "method not allowed").header("allow", allowed)
}

/// 400 `PAGINATION_NUMBER_INVALID`.
pub(crate) fn bad_page() -> Failure {
    Failure::new(400, "PAGINATION_NUMBER_INVALID", "`n` is a whole number, not negative")
}
