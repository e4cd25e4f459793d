//! Health: `/livez` and `/readyz` of the repository host, for what stands before it and spreads its requests. Like the bare host they
//! check no credential, so they say in a word how it is and nothing of why: that stands on the API's listener.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::json;

use crate::error_response::HttpError;
use packhouse_app::App;
use packhouse_app::readiness::Status;
use packhouse_wire::body::Body;
use packhouse_wire::catalogue;

/// A question about the server's health.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Health {
    /// Whether the process answers.
    Live,
    /// Whether it can serve.
    Ready,
}

/// The question that a path at the root stands for; none for another path.
pub(crate) fn find(segments: &[String]) -> Option<Health> {
    match segments {
        [one] if one == "livez" => Some(Health::Live),
        [one] if one == "readyz" => Some(Health::Ready),
        _ => None,
    }
}

/// The answer: 200 with `{"status": "ready"}` or `{"status": "degraded"}`, 503 with `{"status": "unavailable"}`.
pub(crate) fn answer(app: &App, health: Health, parts: &Parts) -> Result<Response<Body>, HttpError> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(HttpError::method_not_allowed("GET, HEAD"));
    }
    let status = match health {
        Health::Live => None,
        Health::Ready => Some(app.report().status),
    };
    let (kind, text) = match status {
        None => ("text/plain; charset=utf-8", "ok\n".to_owned()),
        Some(status) => ("application/json", json!({"status": status}).to_string()),
    };
    let body = if parts.method == Method::HEAD { Body::empty() } else { Body::full(Bytes::from(text)) };
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == Some(Status::Unavailable) {
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        let seconds = catalogue::DDB_UNAVAILABLE.retry_after().unwrap_or_default();
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}
