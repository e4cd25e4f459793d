//! Checksums of generated documents, which the host computes.

use crate::checksum::Algorithm;
use packhouse_sdk::{Context, Error, Response};

/// Computes a checksum in hex.
pub(crate) fn of(cx: &Context, bytes: &[u8], algorithm: Algorithm) -> Result<String, Error> {
    Ok(cx.write_blob(bytes)?.digest(algorithm.name())?.hex().to_owned())
}

/// Adds a checksum to the headers, so that clients need not request it. The bytes and the checksum
/// always match, because they come in one response.
pub(crate) fn header(response: Response, algorithm: Algorithm, hex: &str) -> Response {
    response.header(format!("x-checksum-{}", algorithm.name()), hex)
}
