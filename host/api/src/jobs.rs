//! `GET /v1/jobs`: the background jobs of this server.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_app::jobs::JobStatus;
use packhouse_identity::permissions::Permission::ManageServer;
use serde::Serialize;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::Holds;
use crate::operations::jobs;
use crate::paging::{self, Page};
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(list)]
}

/// A background job of this server.
#[derive(Serialize, ToSchema)]
pub(crate) struct JobView {
    name: String,
    /// Time between two runs, in whole seconds, at least 1.
    period_s: u64,
    /// `idle`, `running`, or `failing` if the last run failed.
    state: &'static str,
    /// Unix time in ms at which the last run started; null before the first run.
    last_started_at: Option<i64>,
    /// Unix time in ms at which a run last ended; null before that.
    last_ended_at: Option<i64>,
    /// Why the last run failed; null if it succeeded.
    last_error: Option<String>,
    /// Unix time in ms of the next run; null while the job runs.
    next_at: Option<i64>,
}

impl From<JobStatus> for JobView {
    fn from(status: JobStatus) -> JobView {
        JobView {
            name: status.name.to_owned(),
            period_s: status.period_s(),
            state: status.state(),
            last_started_at: status.last_started_at,
            last_ended_at: status.last_ended_at,
            last_error: status.last_error,
            next_at: status.next_at,
        }
    }
}

/// Lists the background jobs of the server that answers, by name.
#[utoipa::path(get, path = "/v1/jobs", operation_id = "list_jobs",
    extensions(("x-right" = json!(Holds(ManageServer))), ("x-scope" = json!(Family::Organization))),
    params(("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page")),
    responses((status = 200, body = Page<JobView>)))]
async fn list(call: Call) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let items = jobs::list(call.actor()?)?.into_iter().map(JobView::from).collect();
    Ok(Json(paging::page_of(&call, items, |job: &JobView| job.name.clone())?).into_response())
}
