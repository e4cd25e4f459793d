//! `/v1/subscriber-groups`: groups of subscribers, which are given repositories together.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::KeyOwnerKind::Group;
use serde::Deserialize;
use utoipa::ToSchema;

use super::fields;
use super::owner::{self, Wanted};
use super::view::SubscriberGroupView;
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::fields::{Field, given, name as judge_name};
use crate::paging::Page;

/// A group of subscribers to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateSubscriberGroup {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// Ids of those who are in it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    subscribers: Field,
    /// Ids of repositories that the caller may read.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

/// What is to change; what is absent stays.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeSubscriberGroup {
    /// 1 to 256 characters.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// Ids of those who are in it from now on.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    subscribers: Field,
    /// Ids of all its repositories from now on; the caller may read those that are new.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    repositories: Field,
}

fn wanted(name: Option<String>, subscribers: Field, repositories: Field) -> Result<Wanted, ApiError> {
    Ok(Wanted {
        name,
        email: None,
        repositories: fields::maybe_ids(&repositories, "repositories")?,
        subscribers: fields::maybe_ids(&subscribers, "subscribers")?,
    })
}

/// Makes a group of subscribers.
#[utoipa::path(post, operation_id = "create_subscriber_group",
    path = "/v1/subscriber-groups", request_body = CreateSubscriberGroup, responses(
    (status = 201, body = SubscriberGroupView), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
    (status = 403, body = ErrorBody)))]
pub(crate) async fn create_group(mut call: Call) -> Answer {
    let body: CreateSubscriberGroup = call.body()?;
    call.only(&[])?;
    let name = judge_name(&body.name)?;
    let wanted = wanted(Some(name), body.subscribers, body.repositories)?;
    let row = owner::create(&call, Group, wanted).await?;
    Ok(owner::created(SubscriberGroupView::from(row)))
}

/// Lists groups of subscribers.
#[utoipa::path(get, operation_id = "list_subscriber_groups", path = "/v1/subscriber-groups",
    params(("limit" = Option<u32>, Query, description = "1 to 200, 50 by default"),
        ("after" = Option<String>, Query, description = "What an earlier page gave as `next`")),
    responses((status = 200, body = Page<SubscriberGroupView>), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody)))]
pub(crate) async fn list_groups(call: Call) -> Answer {
    owner::list::<SubscriberGroupView>(&call, Group).await
}

/// Shows a group of subscribers.
#[utoipa::path(get, operation_id = "show_subscriber_group",
    path = "/v1/subscriber-groups/{id}", params(("id" = String, Path)), responses(
    (status = 200, body = SubscriberGroupView), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
    (status = 404, body = ErrorBody)))]
pub(crate) async fn show_group(call: Call) -> Answer {
    let row = owner::show(&call, Group).await?;
    Ok(Json(SubscriberGroupView::from(row)).into_response())
}

/// Changes a group of subscribers.
#[utoipa::path(patch, operation_id = "change_subscriber_group", path = "/v1/subscriber-groups/{id}",
    params(("id" = String, Path)), request_body = ChangeSubscriberGroup,
    responses((status = 200, body = SubscriberGroupView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn change_group(mut call: Call) -> Answer {
    let body: ChangeSubscriberGroup = call.body()?;
    call.only(&[])?;
    let name = body.name.is_some().then(|| judge_name(&body.name)).transpose()?;
    let wanted = wanted(name, body.subscribers, body.repositories)?;
    let row = owner::change(&call, Group, wanted).await?;
    Ok(Json(SubscriberGroupView::from(row)).into_response())
}

/// Deletes a group of subscribers; its access keys are refused from the next request on.
#[utoipa::path(delete, operation_id = "delete_subscriber_group", path = "/v1/subscriber-groups/{id}",
    params(("id" = String, Path)), responses((status = 204),
    (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn remove_group(call: Call) -> Answer {
    owner::remove(&call, Group).await
}
