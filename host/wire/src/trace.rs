//! Span of a request. The span starts a trace, or continues the trace of a trusted proxy.

use std::net::IpAddr;
use std::sync::OnceLock;

use http::{HeaderMap, Method};
use packhouse_config::Network;
use packhouse_store::trace::TARGET;
use tracing::Span;
use tracing::field::Empty;

/// Function that makes a span part of the trace that the request headers name.
pub type Adopt = fn(&Span, &HeaderMap);

static ADOPT: OnceLock<Adopt> = OnceLock::new();

/// Sets the function that reads `traceparent` and `tracestate`, once per process. Without this
/// function, the server ignores both headers.
pub fn read_parents_by(adopt: Adopt) {
    // A second call changes nothing, because a process has only one log.
    let _ = ADOPT.set(adopt);
}

/// Creates the span of a request to this host; it is disabled if tracing is off. Trace headers are
/// used only if the peer is a trusted proxy. The caller adds the path, because only it knows
/// whether the path contains a secret.
pub fn request(
    host: &'static str,
    method: &Method,
    headers: &HeaderMap,
    peer: IpAddr,
    trusted: &[Network],
) -> Span {
    let span = tracing::info_span!(
        target: TARGET,
        "request",
        otel.kind = "server",
        otel.name = Empty,
        otel.status_code = Empty,
        host,
        http.request.method = %method,
        http.response.status_code = Empty,
        http.route = Empty,
        url.path = Empty,
        request_id = Empty,
    );
    if !span.is_disabled()
        && let Some(adopt) = ADOPT.get()
        && trusted.iter().any(|network| network.contains(peer))
    {
        adopt(&span, headers);
    }
    span
}

/// Records the status and the id of a request when its response head is ready.
pub fn answered(span: &Span, status: u16, request_id: &str) {
    span.record("http.response.status_code", status);
    span.record("request_id", request_id);
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
}
