//! `/livez`, `/readyz`, `/metrics`: for machines, without a session.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use serde::Serialize;

use crate::error_response::name_request;
use packhouse_app::App;
use packhouse_app::readiness::{Report, Status};
use packhouse_wire::catalogue;

/// 200 as long as the process answers.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// The answer of `/readyz`: the report, and where nothing can be served what every error has.
#[derive(Serialize)]
struct Ready {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
    request_id: String,
}

/// 200 once both hosts serve all that there is, with what is degraded; 503 before, while nothing can be served, and once the server is
/// about to stop.
/// It reads what was found out in the background, and asks nothing of storage itself.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Response {
    let report = app.report();
    let request_id = packhouse_wire::request_id::next();
    let row = if app.draining.is_cancelled() {
        &catalogue::SERVER_STOPPING
    } else if app.runtime.is_whole() {
        &catalogue::DDB_UNAVAILABLE
    } else {
        &catalogue::SERVER_STARTING
    };
    let refused = (report.status == Status::Unavailable).then_some(row);
    let status = if refused.is_some() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let body = Ready {
        report,
        error: refused.map(|row| row.code),
        message: refused.map(|row| row.sentence),
        request_id: request_id.to_string(),
    };
    let mut answer = (status, Json(body)).into_response();
    if let Some(seconds) = refused.and_then(catalogue::Code::retry_after) {
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    name_request(&mut answer, &request_id);
    answer
}

/// What was measured, as Prometheus' text.
pub(super) async fn metrics() -> Response {
    let kind = (CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    ([kind], packhouse_app::metrics::render()).into_response()
}
