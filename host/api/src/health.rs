//! `/livez`, `/readyz` and `/metrics`, for monitoring without a session.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::request::Parts;
use serde::Serialize;

use crate::Peer;
use crate::call::bearer;
use crate::error::ApiError;
use crate::error_response::name_request;
use crate::operations::{Caller, CallerCredential};
use crate::scope::Family;
use packhouse_app::App;
use packhouse_app::readiness::{Report, Status};
use packhouse_identity::permissions::Permission;
use packhouse_identity::says_api_token;
use packhouse_wire::catalogue;
use packhouse_wire::client_address::proven_caller;

/// 200 while the process runs.
pub(super) async fn live() -> &'static str {
    "ok\n"
}

/// Response of `/readyz`: the report, and the fields of an error if the server cannot serve.
#[derive(Serialize)]
struct ReadinessBody {
    #[serde(flatten)]
    report: Report,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
    request_id: String,
}

/// 200 once both hosts serve everything, with a list of degraded parts. 503 before that, while the
/// server cannot serve, and shortly before it stops. It reports the results of background checks
/// and does not access the storage itself.
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
    let body = ReadinessBody {
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

/// Metrics for allowed clients; 403 `metrics_not_allowed` for others.
pub(super) async fn guarded_metrics(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match may_read_metrics(&app, &parts).await {
        Ok(()) => metrics().await,
        Err(refused) => refused.into_answer(&packhouse_wire::request_id::next()),
    }
}

/// Checks whether the request may read the metrics: its address or its API token can allow that.
async fn may_read_metrics(app: &App, parts: &Parts) -> Result<(), ApiError> {
    if is_allowed_address(app, parts) {
        return Ok(());
    }
    let refused = || ApiError::from(&catalogue::METRICS_NOT_ALLOWED);
    let presented = bearer(&parts.headers).filter(|secret| says_api_token(secret)).ok_or_else(refused)?;
    let caller = match Caller::of_api_token(app, presented).await {
        Ok(caller) => caller.ok_or_else(refused)?,
        // A token that has ended is refused like none.
        Err(error) if error.code().is_some_and(|code| code.status == 401) => return Err(refused()),
        Err(error) => return Err(error),
    };
    caller.count(app)?;
    if reads_metrics(&caller) { Ok(()) } else { Err(refused()) }
}

/// Returns whether the caller has an API token that reads, and manages the server.
fn reads_metrics(caller: &Caller) -> bool {
    let CallerCredential::ApiToken(token) = &caller.credential else { return false };
    let opens = |scope: &str| token.scopes.iter().any(|held| held == scope);
    Family::Read.scopes(true).into_iter().any(|scope| opens(scope.name()))
        && caller.permissions.holds(Permission::ManageServer)
}

/// Returns whether the client address is in `metrics_allow`, across any number of proxies.
fn is_allowed_address(app: &App, parts: &Parts) -> bool {
    let peer = parts.extensions.get::<Peer>().map(|peer| peer.0);
    let trusted = app.live.trusted_proxies.get();
    let caller = peer.and_then(|peer| proven_caller(peer, &parts.headers, &trusted));
    caller.is_some_and(|caller| app.config.metrics_allow.iter().any(|network| network.contains(caller)))
}

/// Metrics in the Prometheus text format.
pub(super) async fn metrics() -> Response {
    let kind = (CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8");
    ([kind], packhouse_app::metrics::render()).into_response()
}
