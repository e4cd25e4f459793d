//! Checksums of documents that the plugin makes itself: the host computes them.

use crate::checksum::Algorithm;
use packhouse_sdk::{Context, Error, Response};

/// In hex.
pub(crate) fn of(cx: &Context, bytes: &[u8], algorithm: Algorithm) -> Result<String, Error> {
    Ok(cx.write_blob(bytes)?.digest(algorithm.name())?.hex().to_owned())
}

/// Tells a checksum in a header, so that clients need not ask for it: bytes and checksum are then always of one moment.
pub(crate) fn header(response: Response, algorithm: Algorithm, hex: &str) -> Response {
    response.header(format!("x-checksum-{}", algorithm.name()), hex)
}
