//! `/v1/plugins/{format}/recordings`: recorded calls of plugins, for `packhouse plugins replay`.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_store::{RecordingId, RecordingRow, RecordingSet, RecordingSetId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::recordings::{self, FoundRecording, RecordingRequest};
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(create), routes!(list), routes!(find), routes!(delete)]
}

/// A request to record calls of a plugin.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRecordings {
    /// The id of a repository of this format.
    repository: String,
    /// 1 to 50: the number of calls to record, the first ones, or with `only_failures` the latest.
    count: u32,
    /// True to record only failing calls: without a response, or with a status of 500 or above.
    only_failures: bool,
}

/// A set of recordings.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecordingSetView {
    /// Id of the set.
    id: String,
    format: String,
    repository: String,
    count: u32,
    only_failures: bool,
    created_by: String,
    /// Time in ms since 1970.
    created_at: i64,
    /// Time in ms since 1970 at which the recording stops.
    armed_until: i64,
    /// Number of recordings in it.
    recorded: u32,
    /// Ids of the recordings, newest first.
    recordings: Vec<String>,
}

impl RecordingSetView {
    fn new(set: RecordingSet, recordings: &[RecordingId]) -> RecordingSetView {
        RecordingSetView {
            id: set.id.to_string(),
            format: set.format,
            repository: set.repository.to_string(),
            count: set.max_recordings,
            only_failures: set.only_failures,
            created_by: set.created_by,
            created_at: set.created_at,
            armed_until: set.armed_until,
            recorded: set.recorded,
            recordings: recordings.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A recorded call.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecordingView {
    id: String,
    /// Id of the set, which the POST returned.
    set: String,
    repository: String,
    /// Time in ms since 1970.
    recorded_at: i64,
    /// Function of the plugin.
    function: String,
    /// Status of its response, `ok` for a function without a status, or the kind of failure:
    /// `trap`, `deadline`.
    outcome: String,
    /// SHA-256 of the component that ran.
    component: String,
    /// True if it is incomplete and cannot be replayed.
    cut: bool,
    /// Compressed size of the file, in bytes.
    bytes: u64,
}

impl From<RecordingRow> for RecordingView {
    fn from(row: RecordingRow) -> RecordingView {
        RecordingView {
            id: row.id.to_string(),
            set: row.set.to_string(),
            repository: row.repository.to_string(),
            recorded_at: row.recorded_at,
            function: row.function,
            outcome: row.outcome,
            component: row.component,
            cut: row.is_cut,
            bytes: row.bytes,
        }
    }
}

/// Starts recording the plugin's calls for a repository on every server, within two seconds and for
/// seven days at most: the first `count`, or with `only_failures` the last `count` that failed.
/// Recordings never contain credentials; they contain content of the repository.
#[utoipa::path(post, path = "/v1/plugins/{format}/recordings", operation_id = "record_plugin_calls",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Plugins))),
    params(("format" = String, Path)),
    request_body = NewRecordings,
    responses((status = 201, body = RecordingSetView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> HandlerResult {
    let NewRecordings { repository, count, only_failures } = call.body()?;
    call.only(&[])?;
    let request = RecordingRequest { repository, count, only_failures };
    let set = recordings::create(call.actor()?, call.path("format"), request).await?;
    Ok((StatusCode::CREATED, Json(RecordingSetView::new(set, &[]))).into_response())
}

/// Lists the recordings of the format, newest first.
#[utoipa::path(get, path = "/v1/plugins/{format}/recordings", operation_id = "list_plugin_recordings",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Plugins))),
    params(("format" = String, Path),
        ("set" = Option<String>, Query, description = "Only recordings of this set: the id that the POST returned"),
        ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<RecordingView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["set", "limit", "after"])?;
    let set = call.query("set").map(str::parse::<RecordingSetId>).transpose();
    let set = set.map_err(|_| ApiError::invalid("`set` must be the id that a POST returned."))?;
    let page = paging::request(&call)?;
    let listed = recordings::list(call.actor()?, call.path("format"), set, page).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), RecordingView::from)).into_response())
}

/// Returns a recording as the file that `packhouse plugins replay` reads; for the id of a set, the
/// set.
#[utoipa::path(get, path = "/v1/plugins/{format}/recordings/{id}", operation_id = "get_plugin_recording",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Plugins))),
    params(("format" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = serde_json::Value), (status = 404, body = ErrorBody)))]
async fn find(call: Call) -> HandlerResult {
    call.only(&[])?;
    Ok(match recordings::find(call.actor()?, call.path("format"), call.path("id")).await? {
        FoundRecording::File(file) => ([(CONTENT_TYPE, "application/json")], file).into_response(),
        FoundRecording::Set(set, recordings) => Json(RecordingSetView::new(set, &recordings)).into_response(),
    })
}

/// Deletes a recording, or a set with its recordings, which stops recording.
#[utoipa::path(delete, path = "/v1/plugins/{format}/recordings/{id}", operation_id = "delete_plugin_recording",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Plugins))),
    params(("format" = String, Path), ("id" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
async fn delete(call: Call) -> HandlerResult {
    call.only(&[])?;
    recordings::delete(call.actor()?, call.path("format"), call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
