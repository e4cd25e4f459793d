//! The span of a request, from which a trace begins, or with which it goes on where a proxy that is trusted has begun it.

use std::net::IpAddr;
use std::sync::OnceLock;

use http::{HeaderMap, Method};
use packhouse_config::Network;
use packhouse_store::trace::TARGET;
use tracing::Span;
use tracing::field::Empty;

/// Makes a span part of the trace that a request's headers name.
pub type Adopt = fn(&Span, &HeaderMap);

static ADOPT: OnceLock<Adopt> = OnceLock::new();

/// Says how `traceparent` and `tracestate` are read. Once in a process; without it they are not.
pub fn read_parents_by(adopt: Adopt) {
    // Set once: a process has one log.
    let _ = ADOPT.set(adopt);
}

/// The span of a request to this host from this peer, whose headers count where it is a trusted proxy; disabled where no traces are
/// wanted. The path is added by who knows whether it holds a secret.
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

/// What is known of a request when its answer's head is ready.
pub fn answered(span: &Span, status: u16, request_id: &str) {
    span.record("http.response.status_code", status);
    span.record("request_id", request_id);
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
}
