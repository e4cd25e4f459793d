//! Compression of lists and documents for clients that accept it.

use axum::Router;
use axum::extract::Request;
use axum::middleware::map_request;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE};
use http::{Extensions, HeaderMap, HeaderValue, Method, StatusCode, Version};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate as _, SizeAbove};

/// A smaller response fits into one or two packets anyway.
const LEAST_BYTES: u16 = 1024;

/// Compresses JSON responses to GET and HEAD. They contain no secret: sessions, tokens and
/// confirmations are only in responses to POST, and a browser's CSRF token is in a header.
pub(crate) fn compressed(router: Router) -> Router {
    let layer = CompressionLayer::new().compress_when(SizeAbove::new(LEAST_BYTES).and(is_document));
    // The layer that is added last handles a request first.
    router.layer(layer).layer(map_request(only_reads))
}

fn is_document(status: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions) -> bool {
    let kind = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or(kind);
    status == StatusCode::OK && essence.trim_ascii() == b"application/json"
}

async fn only_reads(mut request: Request) -> Request {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        request.headers_mut().remove(ACCEPT_ENCODING);
    }
    request
}
