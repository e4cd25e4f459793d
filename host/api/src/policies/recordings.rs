//! `/v1/policies/{id}/recordings`: calls of a policy's component that failed or refused, for
//! `packhouse policies replay`.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::{RecordingId, RecordingRow, RuleRecording};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error_response::ErrorBody;
use crate::operations::policies;
use crate::paging::{self, Page};
use crate::scope::Family;

pub(super) fn endpoints() -> Vec<Described> {
    vec![routes!(record), routes!(list), routes!(find), routes!(stop)]
}

/// A request to record calls of a policy.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordPolicy {
    /// 1 to 50: the number of the latest failing or refusing calls to keep.
    count: u32,
}

/// A running recording of a policy's calls.
#[derive(Serialize, ToSchema)]
pub(crate) struct PolicyRecordingsView {
    count: u32,
    created_by: String,
    /// Time in ms since 1970.
    created_at: i64,
    /// Time in ms since 1970 at which the recording stops.
    armed_until: i64,
}

impl From<RuleRecording> for PolicyRecordingsView {
    fn from(recording: RuleRecording) -> PolicyRecordingsView {
        let RuleRecording { max_recordings, created_by, created_at, armed_until, .. } = recording;
        PolicyRecordingsView { count: max_recordings, created_by, created_at, armed_until }
    }
}

/// A recorded call of a policy.
#[derive(Serialize, ToSchema)]
pub(crate) struct PolicyRecordingView {
    id: String,
    /// Time in ms since 1970.
    recorded_at: i64,
    /// `deny` or `hold`, or the kind of failure: `trap`, `deadline`, `memory`, `hostcall_bytes`,
    /// `bad_answer`.
    outcome: String,
    /// SHA-256 of the component that ran.
    component: String,
    /// Compressed size of the file, in bytes.
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

/// Starts recording the last `count` failing or refusing calls of a policy on every server, for
/// seven days at most, and discards earlier recordings. Recordings never contain credentials; they
/// contain facts about versions and the names of callers.
#[utoipa::path(post, path = "/v1/policies/{id}/recordings", operation_id = "record_policy_calls",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path)),
    request_body = RecordPolicy,
    responses((status = 201, body = PolicyRecordingsView), (status = 409, body = ErrorBody)))]
async fn record(mut call: Call) -> HandlerResult {
    let RecordPolicy { count } = call.body()?;
    call.only(&[])?;
    let made = policies::record(call.actor()?, call.path("id"), count).await?;
    Ok((StatusCode::CREATED, Json(PolicyRecordingsView::from(made))).into_response())
}

/// Lists the recordings of a policy, newest first.
#[utoipa::path(get, path = "/v1/policies/{id}/recordings", operation_id = "list_policy_recordings",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<PolicyRecordingView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let page = paging::request::<RecordingId>(&call)?;
    let listed = policies::recordings(call.actor()?, call.path("id"), page).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), PolicyRecordingView::from)).into_response())
}

/// Returns a recording as the file that `packhouse policies replay` reads.
#[utoipa::path(get, path = "/v1/policies/{id}/recordings/{recording}", operation_id = "get_policy_recording",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path), ("recording" = String, Path)),
    responses((status = 200, body = serde_json::Value)))]
async fn find(call: Call) -> HandlerResult {
    call.only(&[])?;
    let file = policies::recording(call.actor()?, call.path("id"), call.path("recording")).await?;
    Ok(([(CONTENT_TYPE, "application/json")], file).into_response())
}

/// Stops recording a policy and deletes its recordings.
#[utoipa::path(delete, path = "/v1/policies/{id}/recordings", operation_id = "delete_policy_recordings",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Policies))),
    params(("id" = String, Path)),
    responses((status = 204)))]
async fn stop(call: Call) -> HandlerResult {
    call.only(&[])?;
    policies::stop_recording(call.actor()?, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
