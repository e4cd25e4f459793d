//! `/livez`, `/readyz`, `/metrics`: for machines, without a session.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::CONTENT_TYPE;

use super::error::ApiError;
use crate::app::App;
use crate::catalogue;

/// 200 as long as the process answers.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// 200 once both hosts serve, 503 before, and while storage cannot be reached.
pub(super) async fn ready(State(app): State<Arc<App>>) -> Response {
    let unavailable =
        || ApiError::from(&catalogue::DDB_UNAVAILABLE).into_answer(&crate::wire::request_id::next());
    if !app.serving() {
        return unavailable();
    }
    match app.store.ready().await {
        Ok(()) => (StatusCode::OK, "ready\n").into_response(),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            unavailable()
        }
    }
}

/// What was measured, as Prometheus' text.
pub(super) async fn metrics() -> Response {
    let kind = (CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    ([kind], crate::metrics::render()).into_response()
}
