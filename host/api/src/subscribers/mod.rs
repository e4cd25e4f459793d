//! Subscribers and subscriber groups: the owners of access keys, with the repositories that they
//! were granted. Each endpoint exists for both; they differ in their bodies and views.

pub(crate) mod bodies;
mod fields;
mod view;

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{KeyOwnerId, KeyOwnerKind, KeyOwnerRow};
use serde::Serialize;

use crate::HandlerResult;
use crate::call::Call;
use crate::described::Described;
use crate::operations::key_owners;
use crate::paging::{self, Page};
use bodies::KeyOwnerBody;

/// Describes the endpoints of one kind. `noun` is part of the operation ids, `one` and `many` of
/// the summaries.
macro_rules! endpoints_of {
    ($kind:ident, $path:literal, $noun:literal, $one:literal, $many:literal,
        $create:ident, $change:ident, $view:ident) => {
        use axum::response::Response;
        use packhouse_identity::permissions::Permission::ManageSubscribers;
        use packhouse_store::KeyOwnerKind::$kind;

        use super::bodies::{$change, $create};
        use super::view::$view;
        use crate::call::Call;
        use crate::described::{Described, routes};
        use crate::endpoint::Right::Holds;
        use crate::error::ApiError;
        use crate::paging::Page;
        use crate::scope::Family;

        pub(super) fn endpoints() -> Vec<Described> {
            vec![routes!(create), routes!(list), routes!(show), routes!(change), routes!(remove)]
        }

        #[utoipa::path(post, path = $path, operation_id = concat!("create_", $noun),
            summary = concat!("Creates ", $one, "."),
            extensions(("x-right" = json!(Holds(ManageSubscribers))), ("x-scope" = json!(Family::Members))),
            request_body = $create,
            responses((status = 201, body = $view)))]
        async fn create(call: Call) -> Result<Response, ApiError> {
            super::create::<$create, $view>(call, $kind).await
        }

        #[utoipa::path(get, path = $path, operation_id = concat!("list_", $noun, "s"),
            summary = concat!("Lists ", $many, "."),
            extensions(("x-right" = json!(Holds(ManageSubscribers))), ("x-scope" = json!(Family::Members))),
            params(("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
                ("after" = Option<String>, Query, description = "The `next` of the previous page")),
            responses((status = 200, body = Page<$view>)))]
        async fn list(call: Call) -> Result<Response, ApiError> {
            super::list::<$view>(call, $kind).await
        }

        #[utoipa::path(get, path = concat!($path, "/{id}"), operation_id = concat!("show_", $noun),
            summary = concat!("Shows ", $one, "."),
            extensions(("x-right" = json!(Holds(ManageSubscribers))), ("x-scope" = json!(Family::Members))),
            params(("id" = String, Path)),
            responses((status = 200, body = $view)))]
        async fn show(call: Call) -> Result<Response, ApiError> {
            super::show::<$view>(call, $kind).await
        }

        #[utoipa::path(patch, path = concat!($path, "/{id}"), operation_id = concat!("change_", $noun),
            summary = concat!("Changes ", $one, "."),
            extensions(("x-right" = json!(Holds(ManageSubscribers))), ("x-scope" = json!(Family::Members))),
            params(("id" = String, Path)),
            request_body = $change,
            responses((status = 200, body = $view)))]
        async fn change(call: Call) -> Result<Response, ApiError> {
            super::change::<$change, $view>(call, $kind).await
        }

        #[utoipa::path(delete, path = concat!($path, "/{id}"), operation_id = concat!("delete_", $noun),
            summary = concat!("Deletes ", $one, ". Its access keys are refused from the next request on."),
            extensions(("x-right" = json!(Holds(ManageSubscribers))), ("x-scope" = json!(Family::Members))),
            params(("id" = String, Path)),
            responses((status = 204)))]
        async fn remove(call: Call) -> Result<Response, ApiError> {
            super::remove(call, $kind).await
        }
    };
}

mod of_subscribers {
    endpoints_of!(
        Subscriber,
        "/v1/subscribers",
        "subscriber",
        "a subscriber",
        "subscribers",
        CreateSubscriber,
        ChangeSubscriber,
        SubscriberView
    );
}

mod of_groups {
    endpoints_of!(
        Group,
        "/v1/subscriber-groups",
        "subscriber_group",
        "a subscriber group",
        "subscriber groups",
        CreateSubscriberGroup,
        ChangeSubscriberGroup,
        SubscriberGroupView
    );
}

pub(crate) fn endpoints() -> Vec<Described> {
    [of_subscribers::endpoints(), of_groups::endpoints()].into_iter().flatten().collect()
}

async fn create<B: KeyOwnerBody, V: From<KeyOwnerRow> + Serialize>(
    mut call: Call,
    kind: KeyOwnerKind,
) -> HandlerResult {
    let body: B = call.body()?;
    call.only(&[])?;
    let row = key_owners::create(call.actor()?, kind, body.request()?).await?;
    Ok((StatusCode::CREATED, Json(V::from(row))).into_response())
}

async fn list<V: From<KeyOwnerRow> + Serialize>(call: Call, kind: KeyOwnerKind) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let page = paging::request::<KeyOwnerId>(&call)?;
    let listed = key_owners::list(call.actor()?, kind, page).await?;
    Ok(Json(Page::of(listed, |row| row.id.to_string(), V::from)).into_response())
}

async fn show<V: From<KeyOwnerRow> + Serialize>(call: Call, kind: KeyOwnerKind) -> HandlerResult {
    call.only(&[])?;
    let row = key_owners::find(call.actor()?, kind, call.path("id")).await?;
    Ok(Json(V::from(row)).into_response())
}

async fn change<B: KeyOwnerBody, V: From<KeyOwnerRow> + Serialize>(
    mut call: Call,
    kind: KeyOwnerKind,
) -> HandlerResult {
    let body: B = call.body()?;
    call.only(&[])?;
    let row = key_owners::change(call.actor()?, kind, call.path("id"), body.request()?).await?;
    Ok(Json(V::from(row)).into_response())
}

async fn remove(call: Call, kind: KeyOwnerKind) -> HandlerResult {
    call.only(&[])?;
    key_owners::remove(call.actor()?, kind, call.path("id")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
