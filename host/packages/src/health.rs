//! Health endpoints of the repository host for load balancers: `/livez` and `/readyz`. They require
//! no credential, so they return only a state. The API's listener serves the details.

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

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HealthEndpoint {
    /// `/livez`: reports that the process responds.
    Live,
    /// `/readyz`: reports whether the server can serve requests.
    Ready,
}

/// Returns the health endpoint at this path, or `None` if the path is not one.
pub(crate) fn find(segments: &[String]) -> Option<HealthEndpoint> {
    match segments {
        [one] if one == "livez" => Some(HealthEndpoint::Live),
        [one] if one == "readyz" => Some(HealthEndpoint::Ready),
        _ => None,
    }
}

/// Answers a health request. The status in `/readyz` is `ready` or `degraded` (both 200), or
/// `unavailable` (503).
pub(crate) fn answer(app: &App, health: HealthEndpoint, parts: &Parts) -> Result<Response<Body>, HttpError> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return Err(HttpError::method_not_allowed("GET, HEAD"));
    }
    let status = match health {
        HealthEndpoint::Live => None,
        HealthEndpoint::Ready => Some(app.report().status),
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
