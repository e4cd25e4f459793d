//! Access keys of subscribers and subscriber groups. Each endpoint exists for both kinds of owner.

pub(crate) mod bodies;
mod view;

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{AccessKeyId, AccessKeyRow, KeyOwnerKind};

use crate::HandlerResult;
use crate::call::Call;
use crate::credentials::{Rotate, WithSecret};
use crate::described::Described;
use crate::operations::access_keys::{self, KeyOwnerRef};
use crate::paging;
use bodies::{ChangeAccessKey, CreateAccessKey, RevokeAccessKey};
use view::AccessKeyView;

/// Describes the endpoints of one kind of owner. `noun` is part of the operation ids, `words` of
/// the summaries.
macro_rules! endpoints_of {
    ($kind:ident, $path:literal, $noun:literal, $words:literal) => {
        use axum::response::Response;
        use packhouse_identity::permissions::Permission::ManageSubscribers;
        use packhouse_store::KeyOwnerKind::$kind;

        use super::bodies::{ChangeAccessKey, CreateAccessKey, RevokeAccessKey};
        use super::view::AccessKeyView;
        use crate::call::Call;
        use crate::credentials::{Rotate, WithSecret};
        use crate::described::{Described, routes};
        use crate::endpoint::Right::Holds;
        use crate::error::ApiError;
        use crate::error_response::ErrorBody;
        use crate::paging::Page;
        use crate::scope::Family;

        pub(super) fn endpoints() -> Vec<Described> {
            vec![routes!(create), routes!(list), routes!(change), routes!(revoke), routes!(rotate)]
        }

        #[utoipa::path(post, path = concat!($path, "/{id}/access-keys"),
            operation_id = concat!("create_", $noun, "_access_key"),
            summary = concat!("Creates an access key for ", $words, ". The caller must be able to read \
                every repository that the key can read."),
            extensions(("x-right" = json!(Holds(ManageSubscribers))), ("x-scope" = json!(Family::Tokens)),
                ("x-confirmation" = json!(crate::operations::confirmations::Action::ManageAccessKeys))),
            params(("id" = String, Path)),
            request_body = CreateAccessKey,
            responses((status = 201, body = WithSecret<AccessKeyView>)))]
        async fn create(call: Call) -> Result<Response, ApiError> {
            super::create(call, $kind).await
        }

        #[utoipa::path(get, path = concat!($path, "/{id}/access-keys"),
            operation_id = concat!("list_", $noun, "_access_keys"),
            summary = concat!("Lists the access keys of ", $words, "."),
            extensions(("x-right" = json!(Holds(ManageSubscribers))), ("x-scope" = json!(Family::Tokens))),
            params(("id" = String, Path), ("limit" = Option<u32>, Query, description = "Page size: 1 to 200, 50 by default"),
                ("after" = Option<String>, Query, description = "The `next` of the previous page")),
            responses((status = 200, body = Page<AccessKeyView>)))]
        async fn list(call: Call) -> Result<Response, ApiError> {
            super::list(call, $kind).await
        }

        #[utoipa::path(patch, path = concat!($path, "/{id}/access-keys/{key}"),
            operation_id = concat!("change_", $noun, "_access_key"),
            summary = concat!("Changes when an access key of ", $words, " expires."),
            extensions(("x-right" = json!(Holds(ManageSubscribers))), ("x-scope" = json!(Family::Tokens)),
                ("x-confirmation" = json!(crate::operations::confirmations::Action::ManageAccessKeys))),
            params(("id" = String, Path), ("key" = String, Path)),
            request_body = ChangeAccessKey,
            responses((status = 200, body = AccessKeyView), (status = 409, body = ErrorBody)))]
        async fn change(call: Call) -> Result<Response, ApiError> {
            super::change(call, $kind).await
        }

        #[utoipa::path(delete, path = concat!($path, "/{id}/access-keys/{key}"),
            operation_id = concat!("revoke_", $noun, "_access_key"),
            summary = concat!("Revokes an access key of ", $words,
                ". The key is refused from the next request on. Revoking it again has no effect."),
            extensions(("x-right" = json!(Holds(ManageSubscribers))), ("x-scope" = json!(Family::Tokens)),
                ("x-confirmation" = json!(crate::operations::confirmations::Action::ManageAccessKeys))),
            params(("id" = String, Path), ("key" = String, Path)),
            request_body = Option<RevokeAccessKey>,
            responses((status = 204)))]
        async fn revoke(call: Call) -> Result<Response, ApiError> {
            super::revoke(call, $kind).await
        }

        #[utoipa::path(post, path = concat!($path, "/{id}/access-keys/{key}/rotation"),
            operation_id = concat!("rotate_", $noun, "_access_key"),
            summary = concat!("Rotates an access key of ", $words, ". The caller must be able to read \
                every repository that the key can read."),
            extensions(("x-right" = json!(Holds(ManageSubscribers))), ("x-scope" = json!(Family::Tokens)),
                ("x-confirmation" = json!(crate::operations::confirmations::Action::ManageAccessKeys))),
            params(("id" = String, Path), ("key" = String, Path)),
            request_body = Rotate,
            responses((status = 201, body = WithSecret<AccessKeyView>), (status = 409, body = ErrorBody)))]
        async fn rotate(call: Call) -> Result<Response, ApiError> {
            super::rotate(call, $kind).await
        }
    };
}

mod of_subscribers {
    endpoints_of!(Subscriber, "/v1/subscribers", "subscriber", "a subscriber");
}

mod of_groups {
    endpoints_of!(Group, "/v1/subscriber-groups", "subscriber_group", "a subscriber group");
}

pub(crate) fn endpoints() -> Vec<Described> {
    [of_subscribers::endpoints(), of_groups::endpoints()].into_iter().flatten().collect()
}

/// Owner of the keys that the path names.
fn owner(call: &Call, kind: KeyOwnerKind) -> KeyOwnerRef<'_> {
    KeyOwnerRef { kind, id: call.path("id") }
}

async fn create(mut call: Call, kind: KeyOwnerKind) -> HandlerResult {
    let body: CreateAccessKey = call.body()?;
    call.only(&[])?;
    let request = body.request(call.now)?;
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    let made = access_keys::create(call.actor()?, &confirmation, owner(&call, kind), request).await?;
    let view = WithSecret::new(made, |row| AccessKeyView::new(row, kind, call.now));
    Ok((StatusCode::CREATED, Json(view)).into_response())
}

async fn list(call: Call, kind: KeyOwnerKind) -> HandlerResult {
    call.only(&["limit", "after"])?;
    let page = paging::request::<AccessKeyId>(&call)?;
    let listed = access_keys::list(call.actor()?, owner(&call, kind), page).await?;
    let id = |row: &AccessKeyRow| row.id.to_string();
    let page = paging::Page::of(listed, id, |row| AccessKeyView::new(row, kind, call.now));
    Ok(Json(page).into_response())
}

async fn change(mut call: Call, kind: KeyOwnerKind) -> HandlerResult {
    let body: ChangeAccessKey = call.body()?;
    call.only(&[])?;
    let change = body.change(call.now)?;
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    let (actor, key) = (call.actor()?, call.path("key"));
    let row = access_keys::change(actor, &confirmation, owner(&call, kind), key, change).await?;
    Ok(Json(AccessKeyView::new(row, kind, call.now)).into_response())
}

async fn revoke(mut call: Call, kind: KeyOwnerKind) -> HandlerResult {
    let body: RevokeAccessKey = call.body()?;
    call.only(&[])?;
    let confirmation = call.confirmation(body.confirmation_token.as_ref());
    access_keys::revoke(call.actor()?, &confirmation, owner(&call, kind), call.path("key")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

async fn rotate(mut call: Call, kind: KeyOwnerKind) -> HandlerResult {
    let body: Rotate = call.body()?;
    call.only(&[])?;
    let request = body.request(call.now)?;
    let confirmation = call.confirmation(body.confirmation());
    let (actor, key) = (call.actor()?, call.path("key"));
    let made = access_keys::rotate(actor, &confirmation, owner(&call, kind), key, request).await?;
    let view = WithSecret::new(made, |row| AccessKeyView::new(row, kind, call.now));
    Ok((StatusCode::CREATED, Json(view)).into_response())
}
