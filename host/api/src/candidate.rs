//! `/v1/plugins/{format}/candidate`: a component that is tried beside what a format runs, as a shadow or as a canary.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_store::{RecordingId, TrialTimes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::retention::Reach;
use crate::operations::trials::{self, TrialRequest, Trialed};
use crate::retention::bodies::{ReachBody, reach};

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(begin), routes!(find), routes!(end)]
}

/// What shall be tried.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Candidate {
    /// The component.
    digest: String,
    /// `shadow`: reads that were answered are put to it too, and what it answers is compared. `canary`: it answers clients.
    mode: String,
    /// Where: ids of repositories of this format, or `*` for all.
    #[schema(value_type = ReachBody)]
    repositories: Value,
    /// 1 to 100, 100 by default: the share of clients, chosen by their credentials, so that one client sees one component.
    percent: Option<u32>,
    /// Of a canary: it is taken back once more calls than this failed; 10 by default.
    max_failures: Option<u64>,
    /// Of a canary: whether it may ask more than what the format runs.
    #[serde(default)]
    accept_changes: bool,
}

/// How a component does beside what its format runs.
#[derive(Serialize, ToSchema)]
pub(crate) struct TrialView {
    format: String,
    digest: String,
    /// `shadow` or `canary`.
    mode: String,
    /// `running`, or `taken_back` once too many calls failed.
    state: &'static str,
    #[schema(value_type = ReachBody)]
    repositories: Reach,
    percent: u32,
    max_failures: Option<u64>,
    started_by: String,
    /// In ms since 1970.
    started_at: i64,
    /// When it was taken back, in ms since 1970.
    ended_at: Option<i64>,
    /// Requests that it was put to.
    calls: u64,
    /// Of a shadow: those that it answered like the active component.
    equal: u64,
    /// Of a shadow: those that it answered otherwise.
    different: Different,
    /// Those that it gave no answer to; of a canary also its own answers of 500 and above, but for 502, 503 and 504.
    failed: u64,
    /// Of a shadow: recordings of those, as in `different`.
    failed_recordings: Vec<String>,
    /// Of a shadow: those for which it asked an upstream what the active component did not ask.
    unanswered: u64,
    /// Of a shadow: those of which nothing can be said, because records changed meanwhile or the active component answers otherwise
    /// each time.
    changed: u64,
    /// Of a shadow: further requests, which there was no time for.
    dropped: u64,
    times: Times,
}

/// What was answered otherwise.
#[derive(Serialize, ToSchema)]
struct Different {
    count: u64,
    /// Recordings of the first 50, the newest first: of the active component's calls.
    recordings: Vec<String>,
}

/// How long both took.
#[derive(Serialize, ToSchema)]
struct Times {
    active: TimesOf,
    candidate: TimesOf,
}

/// How long the calls of a component took.
#[derive(Serialize, ToSchema)]
struct TimesOf {
    calls: u64,
    /// Null where there was none.
    mean_ms: Option<f64>,
    max_ms: f64,
}

impl From<TrialTimes> for TimesOf {
    fn from(times: TrialTimes) -> TimesOf {
        let ms = |us: u64| us as f64 / 1e3;
        let mean_ms = (times.calls > 0).then(|| ms(times.total_us) / times.calls as f64);
        TimesOf { calls: times.calls, mean_ms, max_ms: ms(times.max_us) }
    }
}

impl From<Trialed> for TrialView {
    fn from(trialed: Trialed) -> TrialView {
        let Trialed { row, different, failed } = trialed;
        let ids = |ids: Vec<RecordingId>| ids.iter().map(ToString::to_string).collect();
        let counts = row.counts;
        TrialView {
            format: row.new.format,
            digest: row.new.digest,
            mode: row.new.mode,
            state: if row.ended_at.is_some() { "taken_back" } else { "running" },
            repositories: row.new.repositories.map_or(Reach::All, Reach::Only),
            percent: row.new.percent,
            max_failures: row.new.max_failures,
            started_by: row.new.started_by,
            started_at: row.started_at,
            ended_at: row.ended_at,
            calls: counts.calls,
            equal: counts.equal,
            different: Different { count: counts.different, recordings: ids(different) },
            failed: counts.failed,
            failed_recordings: ids(failed),
            unanswered: counts.unanswered,
            changed: counts.changed,
            dropped: counts.dropped,
            times: Times { active: counts.active.into(), candidate: counts.candidate.into() },
        }
    }
}

/// Tries a component beside what the format runs, on every server within a second, in place of what was tried before. A shadow is never
/// seen by a client and changes nothing. A pin goes before a canary; activating any component of the format, and going back, ends the
/// trial.
#[utoipa::path(put, path = "/v1/plugins/{format}/candidate", operation_id = "try_plugin",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    params(("format" = String, Path)),
    request_body = Candidate,
    responses((status = 200, body = TrialView),
        (status = 409, description = "`conflict`: the format runs nothing; `capabilities_changed`: a canary asks more", body = ErrorBody),
        (status = 422, description = "`plugin_refused`: it cannot be run here, or is of another format", body = ErrorBody)))]
async fn begin(mut call: Call) -> Answer {
    let Candidate { digest, mode, repositories, percent, max_failures, accept_changes } = call.body()?;
    call.only(&[])?;
    let repositories = match reach(&repositories)? {
        Reach::All => None,
        Reach::Only(ids) => Some(ids),
    };
    let request = TrialRequest { digest, mode, repositories, percent, max_failures, accept_changes };
    let trialed = trials::begin(call.actor()?, call.path("format"), request).await?;
    Ok(Json(TrialView::from(trialed)).into_response())
}

/// How the component that is tried does: what all servers counted, until a few seconds ago. 404 where none is tried.
#[utoipa::path(get, path = "/v1/plugins/{format}/candidate", operation_id = "get_plugin_trial",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    params(("format" = String, Path)),
    responses((status = 200, body = TrialView), (status = 404, body = ErrorBody)))]
async fn find(call: Call) -> Answer {
    call.only(&[])?;
    let trialed = trials::find(call.actor()?, call.path("format")).await?;
    Ok(Json(TrialView::from(trialed)).into_response())
}

/// Takes back what is tried. 404 where nothing is.
#[utoipa::path(delete, path = "/v1/plugins/{format}/candidate", operation_id = "end_plugin_trial",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    params(("format" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
async fn end(call: Call) -> Answer {
    call.only(&[])?;
    trials::end(call.actor()?, call.path("format")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
