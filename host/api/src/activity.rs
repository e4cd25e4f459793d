//! What happened on each of the last days.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::DayOfActivity;
use serde::Serialize;
use utoipa::ToSchema;

use crate::Answer;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::{Holds, OfObject};
use crate::operations::activity;

/// The endpoints of this module.
pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(of_organization), routes!(of_repository), routes!(of_package)]
}

/// What happened on a day.
#[derive(Serialize, ToSchema)]
pub(crate) struct DayView {
    /// When it begins in UTC, in ms since 1970.
    day: i64,
    /// Versions that were published.
    publishes: u64,
    /// Fetches of versions.
    downloads: u64,
}

/// The last 30 days.
#[derive(Serialize, ToSchema)]
pub(crate) struct ActivityView {
    /// The oldest first, today last.
    days: Vec<DayView>,
}

impl From<Vec<DayOfActivity>> for ActivityView {
    fn from(days: Vec<DayOfActivity>) -> ActivityView {
        let view =
            |DayOfActivity { begins, publishes, downloads }| DayView { day: begins, publishes, downloads };
        ActivityView { days: days.into_iter().map(view).collect() }
    }
}

fn answer(days: Vec<DayOfActivity>) -> Answer {
    Ok(Json(ActivityView::from(days)).into_response())
}

/// Tells of each of the last 30 days how much was published to the organization's repositories and fetched from them.
#[utoipa::path(get, path = "/v1/activity", operation_id = "show_activity",
    extensions(("x-right" = json!(Holds(ManageRepositories)))),
    responses((status = 200, body = ActivityView)))]
async fn of_organization(call: Call) -> Answer {
    call.only(&[])?;
    answer(activity::of_organization(call.actor()?).await?)
}

/// Tells the same of a repository.
#[utoipa::path(get, path = "/v1/repositories/{id}/activity", operation_id = "show_activity_of_repository",
    extensions(("x-right" = json!(OfObject))),
    params(("id" = String, Path)),
    responses((status = 200, body = ActivityView)))]
async fn of_repository(call: Call) -> Answer {
    call.only(&[])?;
    answer(activity::of_repository(call.actor()?, call.path("id")).await?)
}

/// Tells the same of a package. `{name}` is one segment, percent-encoded.
#[utoipa::path(get, path = "/v1/repositories/{id}/packages/{name}/activity", operation_id = "show_activity_of_package",
    extensions(("x-right" = json!(OfObject))),
    params(("id" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = ActivityView)))]
async fn of_package(call: Call) -> Answer {
    call.only(&[])?;
    answer(activity::of_package(call.actor()?, call.path("id"), call.path("name")).await?)
}
