//! Metrics of the requests to S3, by method and status, and of retries after failures.

use std::cell::Cell;
use std::pin::Pin;
use std::time::Instant;

use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::{ClientOptions, Result};
use tracing::Instrument as _;

use crate::part_span;

const SECONDS: &str = "packhouse_s3_request_seconds";
const REQUESTS: &str = "packhouse_s3_requests_total";
const RETRIES: &str = "packhouse_s3_retries_total";

tokio::task_local! {
    /// Number of requests made so far by the current call.
    static MADE: Cell<u32>;
}

/// Runs a call that normally needs one request. Further requests are counted as retries.
pub(super) async fn one_request<T>(call: impl Future<Output = T>) -> T {
    MADE.scope(Cell::new(0), call).await
}

/// Factory of HTTP clients that count their requests.
#[derive(Debug)]
pub(super) struct Counting;

impl Counting {
    /// Registers the counter of retries before the first request.
    pub(super) fn announce() -> Self {
        metrics::counter!(RETRIES).increment(0);
        Self
    }
}

impl HttpConnector for Counting {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        Ok(HttpClient::new(Counted(ReqwestConnector::default().connect(options)?)))
    }
}

#[derive(Debug)]
struct Counted(HttpClient);

type ResponseFuture<'a> =
    Pin<Box<dyn Future<Output = std::result::Result<HttpResponse, HttpError>> + Send + 'a>>;

impl HttpService for Counted {
    fn call<'life, 'answer>(&'life self, request: HttpRequest) -> ResponseFuture<'answer>
    where
        'life: 'answer,
        Self: 'answer,
    {
        Box::pin(async move {
            // Outside `one_request`, for example in a listing with several pages, retries look like
            // first requests, so they are not counted.
            let before = MADE.try_with(|made| made.replace(made.get() + 1)).unwrap_or_default();
            if before > 0 {
                metrics::counter!(RETRIES).increment(1);
            }
            let method = method(request.method().as_str());
            let began = Instant::now();
            let span = part_span!(
                "s3.request",
                otel.kind = "client",
                http.request.method = method,
                http.response.status_code = tracing::field::Empty
            );
            let answer = self.0.execute(request).instrument(span.clone()).await;
            if let Ok(answer) = &answer {
                span.record("http.response.status_code", answer.status().as_u16());
            }
            metrics::histogram!(SECONDS, "method" => method).record(began.elapsed().as_secs_f64());
            let status = answer.as_ref().map_or("none", |answer| class(answer.status().as_u16()));
            metrics::counter!(REQUESTS, "method" => method, "status" => status).increment(1);
            answer
        })
    }
}

fn method(method: &str) -> &'static str {
    let known = ["GET", "HEAD", "PUT", "POST", "DELETE"].into_iter().find(|known| *known == method);
    known.unwrap_or("other")
}

fn class(status: u16) -> &'static str {
    match status / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
