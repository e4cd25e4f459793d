//! The host's own answers that hold a secret: JSON that nobody between here and the client may keep.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use packhouse_wire::body::Body;
use serde_json::Value;

/// Without its body for a HEAD.
pub(crate) fn unkept_json(status: StatusCode, value: &Value, head: bool) -> Response<Body> {
    let bytes = Bytes::from(value.to_string());
    let length = HeaderValue::from(bytes.len());
    let mut response = Response::new(if head { Body::empty() } else { Body::full(bytes) });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_LENGTH, length);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
