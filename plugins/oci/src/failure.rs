//! The errors of the distribution specification, with the messages of the product's specification.

use packhouse_sdk::{Digest, Failure};
use serde_json::json;

/// 400 `NAME_INVALID` for a path without the name of an image.
pub(crate) fn no_image() -> Failure {
    name("Docker image names require at least two segments: <repository>/<image>")
}

/// 400 `NAME_INVALID` for an invalid or too long name of an image.
pub(crate) fn bad_image() -> Failure {
    name("invalid image name")
}

/// 400 `NAME_INVALID` for a name that no repository can have.
pub(crate) fn bad_repository() -> Failure {
    name("invalid repository name")
}

/// 400 `NAME_INVALID` for a path outside the protocol.
pub(crate) fn bad_path() -> Failure {
    name("Invalid OCI path")
}

/// 400 `NAME_INVALID` for an invalid tag.
pub(crate) fn bad_tag() -> Failure {
    name("invalid tag format")
}

fn name(message: &str) -> Failure {
    Failure::new(400, "NAME_INVALID", message)
}

/// 404 `NAME_UNKNOWN` for an image without any content here.
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

/// 400 `MANIFEST_INVALID` for a manifest over 4 MiB.
pub(crate) fn manifest_too_large() -> Failure {
    manifest("manifest exceeds maximum size")
}

/// 400 with one `MANIFEST_BLOB_UNKNOWN` for each of these digests.
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

/// 400 `DIGEST_INVALID` for a text that is not a SHA-256 digest.
pub(crate) fn bad_digest() -> Failure {
    Failure::new(400, "DIGEST_INVALID", "a digest must be `sha256:` followed by 64 lower-case hex digits")
}

/// 400 `DIGEST_INVALID` for content with another digest.
pub(crate) fn wrong_digest() -> Failure {
    Failure::new(400, "DIGEST_INVALID", "provided digest did not match uploaded content")
}

/// 400 `SIZE_INVALID` for content of another length than announced.
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

/// 405 `UNSUPPORTED` for a method that the path does not support. `Allow` lists the supported ones
/// (RFC 9110 §15.5.6).
pub(crate) fn bad_method(allowed: &str) -> Failure {
    Failure::new(405, "UNSUPPORTED", "method not allowed").header("allow", allowed)
}

/// 400 `PAGINATION_NUMBER_INVALID`.
pub(crate) fn bad_page() -> Failure {
    Failure::new(400, "PAGINATION_NUMBER_INVALID", "`n` must be a non-negative integer")
}
