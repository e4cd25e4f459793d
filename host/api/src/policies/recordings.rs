//! `/v1/policies/{id}/recordings`: calls of a policy's component that failed or refused, for `packhouse policies replay`.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{RecordingId, RecordingRow, RuleRecording};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::policies;
use crate::paging::{self, Page};

/// The endpoints of this module.
pub(super) fn endpoints() -> Vec<Described> {
    vec![routes!(record), routes!(list), routes!(find), routes!(stop)]
}

/// How many calls shall be recorded.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordPolicy {
    /// 1 to 50: the last that failed or refused.
    count: u32,
}

/// That calls of a policy are recorded.
#[derive(Serialize, ToSchema)]
pub(crate) struct PolicyRecordingsView {
    count: u32,
    created_by: String,
    /// In ms since 1970.
    created_at: i64,
    /// When nothing is recorded any more, in ms since 1970.
    armed_until: i64,
}

impl From<RuleRecording> for PolicyRecordingsView {
    fn from(recording: RuleRecording) -> PolicyRecordingsView {
        let RuleRecording { wanted, created_by, created_at, armed_until, .. } = recording;
        PolicyRecordingsView { count: wanted, created_by, created_at, armed_until }
    }
}

/// A recorded call of a policy.
#[derive(Serialize, ToSchema)]
pub(crate) struct PolicyRecordingView {
    id: String,
    /// In ms since 1970.
    recorded_at: i64,
    /// `deny` or `hold`, or how it failed: `trap`, `deadline`, `memory`, `hostcall_bytes`, `bad_answer`.
    outcome: String,
    /// SHA-256 of the component that ran.
    component: String,
    /// Of the file, compressed.
    bytes: u64,
}

impl From<RecordingRow> for PolicyRecordingView {
    fn from(row: RecordingRow) -> PolicyRecordingView {
        PolicyRecordingView {
            id: row.id.to_string(),
            recorded_at: row.recorded_at,
            outcome: row.outcome,
            component: row.component,
            bytes: row.bytes,
        }
    }
}

/// Records calls of a policy that fail or refuse, on every server: the last `count`, for seven days at most, in place of what was recorded
/// of it before. Credentials are never in a recording; facts of versions and the names of callers are.
#[utoipa::path(post, path = "/v1/policies/{id}/recordings", operation_id = "record_policy_calls",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    request_body = RecordPolicy,
    responses((status = 201, body = PolicyRecordingsView), (status = 409, body = ErrorBody)))]
async fn record(mut call: Call) -> Answer {
    let RecordPolicy { count } = call.body()?;
    call.only(&[])?;
    let made = policies::record(call.actor()?, call.path("id"), count).await?;
    Ok((StatusCode::CREATED, Json(PolicyRecordingsView::from(made))).into_response())
}

/// Lists the recordings of a policy, the newest first.
#[utoipa::path(get, path = "/v1/policies/{id}/recordings", operation_id = "list_policy_recordings",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<PolicyRecordingView>)))]
async fn list(call: Call) -> Answer {
    call.only(&["limit", "after"])?;
    let page = paging::request::<RecordingId>(&call)?;
    let listed = policies::recordings(call.actor()?, call.path("id"), page).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), PolicyRecordingView::from)).into_response())
}

/// A recording as the file that `packhouse policies replay` takes.
#[utoipa::path(get, path = "/v1/policies/{id}/recordings/{recording}", operation_id = "get_policy_recording",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path), ("recording" = String, Path)),
    responses((status = 200, body = serde_json::Value)))]
async fn find(call: Call) -> Answer {
    call.only(&[])?;
    let file = policies::recording(call.actor()?, call.path("id"), call.path("recording")).await?;
    Ok(([(CONTENT_TYPE, "application/json")], file).into_response())
}

/// Records no more of a policy, and removes what was recorded of it.
#[utoipa::path(delete, path = "/v1/policies/{id}/recordings", operation_id = "delete_policy_recordings",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn stop(call: Call) -> Answer {
    call.only(&[])?;
    policies::stop_recording(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
