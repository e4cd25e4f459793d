//! One line in the log and one count in the metrics for each request. No credential is ever in either.

use std::time::Duration;

use http::request::Parts;
use http::{Method, Response, StatusCode};
use http_body::Body as _;
use metrics::{Counter, Histogram};

use super::Visit;
use crate::identity;
use crate::wire::body::Body;

/// The methods that have a label of their own; all others share one, so that nobody can make labels.
const METHODS: [&str; 7] = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "other"];
/// The first digits of a status.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Counters and histograms, looked up once.
pub(crate) struct Meters {
    requests: Vec<Counter>,
    seconds: Vec<Histogram>,
}

impl Meters {
    /// One of each for every method and class of status.
    pub(crate) fn new() -> Self {
        let requests = METHODS.iter().flat_map(|method| {
            CLASSES.iter().map(move |class| {
                metrics::counter!("packhouse_requests_total", "host" => "packages", "method" => *method, "status" => *class)
            })
        });
        let seconds = METHODS.iter().map(
            |method| metrics::histogram!("packhouse_request_seconds", "host" => "packages", "method" => *method),
        );
        Self { requests: requests.collect(), seconds: seconds.collect() }
    }

    /// Counts a request that took this long until its answer's head was ready.
    pub(crate) fn answered(&self, method: &Method, status: StatusCode, took: Duration) {
        let last = METHODS.len() - 1;
        let method = METHODS.iter().position(|known| *known == method.as_str()).unwrap_or(last);
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(requests) = self.requests.get(method * CLASSES.len() + class) {
            requests.increment(1);
        }
        if let Some(seconds) = self.seconds.get(method) {
            seconds.record(took.as_secs_f64());
        }
    }
}

/// The line.
pub(super) fn line(parts: &Parts, response: &Response<Body>, visit: &Visit, took: Duration) {
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
        request_id = visit.request_id,
        credential = visit.credential,
        peer = %visit.peer,
        "request"
    );
}

/// The path as it was sent, unless it may hold a secret: an escape in it may hide one.
fn path(raw: &str) -> &str {
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

    #[test]
    fn every_method_and_status_has_a_place() {
        let meters = Meters::new();
        for method in [Method::GET, Method::TRACE, Method::from_bytes(b"ODD").unwrap()] {
            for status in [200, 304, 404, 503] {
                meters.answered(&method, StatusCode::from_u16(status).unwrap(), Duration::ZERO);
            }
        }
        assert_eq!(meters.requests.len(), METHODS.len() * CLASSES.len());
    }
}
