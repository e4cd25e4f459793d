//! `/v1/plugins/{format}/recordings`: calls of plugins that are recorded, for `packhouse plugins replay`.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use packhouse_identity::permissions::Permission::ManageServer;
use packhouse_store::{RecordingId, RecordingRow, RecordingSet, RecordingSetId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::error::ApiError;
use crate::error_response::ErrorBody;
use crate::operations::recordings::{self, Found, Wanted};
use crate::paging::{self, Page};

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(create), routes!(list), routes!(find), routes!(delete)]
}

/// What shall be recorded.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRecordings {
    /// The id of a repository of this format.
    repository: String,
    /// 1 to 50: the first calls, or of failing ones the last.
    count: u32,
    /// Only calls that fail: no answer, or one of 500 and above.
    only_failures: bool,
}

/// What is recorded: a set of recordings.
#[derive(Serialize, ToSchema)]
pub(crate) struct RecordingSetView {
    /// Names the set.
    id: String,
    format: String,
    repository: String,
    count: u32,
    only_failures: bool,
    created_by: String,
    /// In ms since 1970.
    created_at: i64,
    /// When it records no more, in ms since 1970.
    armed_until: i64,
    /// How many it holds.
    recorded: u32,
    /// Those, by their ids, the newest first.
    recordings: Vec<String>,
}

impl RecordingSetView {
    fn new(set: RecordingSet, recordings: &[RecordingId]) -> RecordingSetView {
        RecordingSetView {
            id: set.id.to_string(),
            format: set.format,
            repository: set.repository.to_string(),
            count: set.wanted,
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
    /// The id that the POST answered.
    set: String,
    repository: String,
    /// In ms since 1970.
    recorded_at: i64,
    /// The plugin's function.
    function: String,
    /// The status of its answer, `ok` where it has none, or why there was no answer: `trap`, `deadline`.
    outcome: String,
    /// SHA-256 of the component that ran.
    component: String,
    /// Whether it is not whole, and so cannot be replayed.
    cut: bool,
    /// Of the file, compressed.
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

/// Records calls of the plugin for a repository, on every server, within two seconds: the first `count`, or, with `only_failures`, the last
/// `count` that failed, for seven days at most. Credentials are never in a recording; what the repository holds is.
#[utoipa::path(post, path = "/v1/plugins/{format}/recordings", operation_id = "record_plugin_calls",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    params(("format" = String, Path)),
    request_body = NewRecordings,
    responses((status = 201, body = RecordingSetView), (status = 409, body = ErrorBody)))]
async fn create(mut call: Call) -> Answer {
    let NewRecordings { repository, count, only_failures } = call.body()?;
    call.only(&[])?;
    let wanted = Wanted { repository, count, only_failures };
    let set = recordings::create(call.actor()?, call.path("format"), wanted).await?;
    Ok((StatusCode::CREATED, Json(RecordingSetView::new(set, &[]))).into_response())
}

/// Lists the recordings of the format, the newest first.
#[utoipa::path(get, path = "/v1/plugins/{format}/recordings", operation_id = "list_plugin_recordings",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    params(("format" = String, Path),
        ("set" = Option<String>, Query, description = "Only those of this set: the id that the POST answered"),
        ("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<RecordingView>)))]
async fn list(call: Call) -> Answer {
    call.only(&["set", "limit", "after"])?;
    let set = call.query("set").map(str::parse::<RecordingSetId>).transpose();
    let set = set.map_err(|_| ApiError::invalid("`set` is the id that a POST answered."))?;
    let page = paging::request(&call)?;
    let listed = recordings::list(call.actor()?, call.path("format"), set, page).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), RecordingView::from)).into_response())
}

/// A recording as the file that `packhouse plugins replay` takes; of the id of a set, the set.
#[utoipa::path(get, path = "/v1/plugins/{format}/recordings/{id}", operation_id = "get_plugin_recording",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    params(("format" = String, Path), ("id" = String, Path)),
    responses((status = 200, body = serde_json::Value), (status = 404, body = ErrorBody)))]
async fn find(call: Call) -> Answer {
    call.only(&[])?;
    Ok(match recordings::find(call.actor()?, call.path("format"), call.path("id")).await? {
        Found::File(file) => ([(CONTENT_TYPE, "application/json")], file).into_response(),
        Found::Set(set, recordings) => Json(RecordingSetView::new(set, &recordings)).into_response(),
    })
}

/// Removes a recording, or a set with all that it holds: nothing is recorded for it any more.
#[utoipa::path(delete, path = "/v1/plugins/{format}/recordings/{id}", operation_id = "delete_plugin_recording",
    extensions(("x-right" = json!(Holds(ManageServer)))),
    params(("format" = String, Path), ("id" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
async fn delete(call: Call) -> Answer {
    call.only(&[])?;
    recordings::delete(call.actor()?, call.path("format"), call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
