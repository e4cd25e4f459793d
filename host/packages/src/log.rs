//! One line in the log for each request. No credential is ever in it.

use std::time::Duration;

use http::Response;
use http::request::Parts;
use http_body::Body as _;

use crate::request_context::RequestContext;
use packhouse_identity as identity;
use packhouse_wire::body::Body;

/// The line.
pub(crate) fn line(parts: &Parts, response: &Response<Body>, context: &RequestContext, took: Duration) {
    if !tracing::enabled!(target: "packhouse::access", tracing::Level::INFO) {
        return;
    }
    tracing::info!(
        target: "packhouse::access",
        method = parts.method.as_str(),
        path = path(parts.uri.path()),
        status = response.status().as_u16(),
        bytes = response.body().size_hint().exact().unwrap_or_default(),
        ms = took.as_secs_f64() * 1000.0,
        request_id = &*context.request_id,
        credential = context.credential.as_deref(),
        peer = %context.peer,
        "request"
    );
}

/// The path as it was sent, unless it may hold a secret: an escape in it may hide one.
pub(crate) fn path(raw: &str) -> &str {
    let decoded = percent_encoding::percent_decode_str(raw).decode_utf8_lossy();
    if identity::holds_secret(&decoded) { "***" } else { raw }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_a_path_is_not_written_down() {
        assert_eq!(path("/repositories/r/a%20b"), "/repositories/r/a%20b");
        assert_eq!(path("/-/user/token/pkh_abc"), "***");
        assert_eq!(path("/-/user/token/%70kh_abc"), "***");
        assert_eq!(path(&format!("/-/v1/login/{}", identity::mint_poll())), "***");
    }
}
