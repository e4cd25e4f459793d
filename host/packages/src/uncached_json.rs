//! JSON responses of the host that contain secrets. Caches between the server and the client must
//! not store them.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use packhouse_wire::body::Body;
use serde_json::Value;

/// Returns a JSON response with `no-store`. For HEAD, the response has no body.
pub(crate) fn uncached_json(status: StatusCode, value: &Value, head: bool) -> Response<Body> {
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
