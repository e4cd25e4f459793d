//! Publishes and downloads on each of the last 30 days.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::DayOfActivity;
use serde::Serialize;
use utoipa::ToSchema;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::{Described, routes};
use crate::endpoint::Right::{Holds, OfObject};
use crate::operations::activity;
use crate::scope::Family;

pub(crate) fn endpoints() -> Vec<Described> {
    vec![routes!(of_organization), routes!(of_repository), routes!(of_package)]
}

/// Activity of one day.
#[derive(Serialize, ToSchema)]
pub(crate) struct DayView {
    /// Start of the day in UTC, in ms since 1970.
    day: i64,
    /// Published versions.
    publishes: u64,
    /// Downloads of versions.
    downloads: u64,
}

/// Activity of the last 30 days.
#[derive(Serialize, ToSchema)]
pub(crate) struct ActivityView {
    /// The days, oldest first; today is the last.
    days: Vec<DayView>,
}

impl From<Vec<DayOfActivity>> for ActivityView {
    fn from(days: Vec<DayOfActivity>) -> ActivityView {
        let view =
            |DayOfActivity { begins, publishes, downloads }| DayView { day: begins, publishes, downloads };
        ActivityView { days: days.into_iter().map(view).collect() }
    }
}

fn answer(days: Vec<DayOfActivity>) -> HandlerResult {
    Ok(Json(ActivityView::from(days)).into_response())
}

/// Returns, for each of the last 30 days, the publishes to and downloads from the organization's
/// repositories.
#[utoipa::path(get, path = "/v1/activity", operation_id = "show_activity",
    extensions(("x-right" = json!(Holds(ManageRepositories))), ("x-scope" = json!(Family::Repositories))),
    responses((status = 200, body = ActivityView)))]
async fn of_organization(call: Call) -> HandlerResult {
    call.only(&[])?;
    answer(activity::of_organization(call.actor()?).await?)
}

/// Returns the activity of one repository for each of the last 30 days.
#[utoipa::path(get, path = "/v1/repositories/{id}/activity", operation_id = "show_activity_of_repository",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Repositories))),
    params(("id" = String, Path)),
    responses((status = 200, body = ActivityView)))]
async fn of_repository(call: Call) -> HandlerResult {
    call.only(&[])?;
    answer(activity::of_repository(call.actor()?, call.path("id")).await?)
}

/// Returns the activity of one package for each of the last 30 days. `{name}` is one
/// percent-encoded segment.
#[utoipa::path(get, path = "/v1/repositories/{id}/packages/{name}/activity", operation_id = "show_activity_of_package",
    extensions(("x-right" = json!(OfObject)), ("x-scope" = json!(Family::Packages))),
    params(("id" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = ActivityView)))]
async fn of_package(call: Call) -> HandlerResult {
    call.only(&[])?;
    answer(activity::of_package(call.actor()?, call.path("id"), call.path("name")).await?)
}
