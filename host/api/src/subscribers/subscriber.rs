//! `/v1/subscribers`: who is given repositories to read, without being a member.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::KeyOwnerKind::Subscriber;
use serde::Deserialize;
use utoipa::ToSchema;

use super::fields;
use super::owner::{self, Wanted};
use super::view::SubscriberView;
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::fields::{Field, given, name as judge_name};
use crate::paging::Page;

/// A subscriber to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateSubscriber {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// Where it can be reached.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    email: Field,
    /// Ids of repositories that the caller may read.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

/// What is to change; what is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeSubscriber {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// Where it can be reached; null takes it away.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    email: Field,
    /// Ids of all its repositories from now on; the caller may read those that are new.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

fn wanted(name: Option<String>, email: Field, repositories: Field) -> Result<Wanted, ApiError> {
    Ok(Wanted {
        name,
        email: email.as_ref().map(fields::email).transpose()?,
        repositories: fields::maybe_ids(&repositories, "repositories")?,
        subscribers: None,
    })
}

/// Makes a subscriber.
#[utoipa::path(post, operation_id = "create_subscriber",
    path = "/v1/subscribers", request_body = CreateSubscriber, responses(
    (status = 201, body = SubscriberView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 403, body = ErrorBody)))]
pub(crate) async fn create_subscriber(mut call: Call) -> Answer {
    let body: CreateSubscriber = call.body()?;
    call.only(&[])?;
    let name = judge_name(&body.name)?;
    let wanted = wanted(Some(name), body.email, body.repositories)?;
    let row = owner::create(&call, Subscriber, wanted).await?;
    Ok(owner::created(SubscriberView::from(row)))
}

/// Lists subscribers.
#[utoipa::path(get, operation_id = "list_subscribers", path = "/v1/subscribers",
    params(("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<SubscriberView>), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody)))]
pub(crate) async fn list_subscribers(call: Call) -> Answer {
    owner::list::<SubscriberView>(&call, Subscriber).await
}

/// Shows a subscriber.
#[utoipa::path(get, operation_id = "show_subscriber",
    path = "/v1/subscribers/{id}", params(("id" = String, Path)), responses(
    (status = 200, body = SubscriberView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    (status = 404, body = ErrorBody)))]
pub(crate) async fn show_subscriber(call: Call) -> Answer {
    let row = owner::show(&call, Subscriber).await?;
    Ok(Json(SubscriberView::from(row)).into_response())
}

/// Changes a subscriber.
#[utoipa::path(patch, operation_id = "change_subscriber", path = "/v1/subscribers/{id}",
    params(("id" = String, Path)), request_body = ChangeSubscriber,
    responses((status = 200, body = SubscriberView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn change_subscriber(mut call: Call) -> Answer {
    let body: ChangeSubscriber = call.body()?;
    call.only(&[])?;
    let name = body.name.is_some().then(|| judge_name(&body.name)).transpose()?;
    let wanted = wanted(name, body.email, body.repositories)?;
    let row = owner::change(&call, Subscriber, wanted).await?;
    Ok(Json(SubscriberView::from(row)).into_response())
}

/// Deletes a subscriber; its access keys are refused from the next request on.
#[utoipa::path(delete, operation_id = "delete_subscriber", path = "/v1/subscribers/{id}",
    params(("id" = String, Path)), responses((status = 204),
    (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn remove_subscriber(call: Call) -> Answer {
    owner::remove(&call, Subscriber).await
}
