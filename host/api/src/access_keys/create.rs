//! `POST …/access-keys`.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{KeyOwnerKind, NewAccessKey};
use serde::Deserialize;
use utoipa::ToSchema;

use super::view::{AccessKeyView, NewAccessKeyView};
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::fields::{self, Field, given};
use crate::{Answer, subscribers};
use packhouse_identity::{self as identity, Minted};
use packhouse_wire::catalogue;

/// An access key to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CreateAccessKey {
    /// 1 to 256 characters, where there is one.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// ms since 1970, or null for never; must be stated.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    expires_at: Field,
    /// From POST /v1/confirmations for `manage_access_keys`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

/// Makes an access key for a subscriber. The caller must be able to read all that it reaches.
#[utoipa::path(post, operation_id = "create_subscriber_access_key", path = "/v1/subscribers/{id}/access-keys",
    params(("id" = String, Path)),
    request_body = CreateAccessKey, responses((status = 201, body = NewAccessKeyView),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(crate) async fn create_for_subscriber(call: Call) -> Answer {
    create(call, KeyOwnerKind::Subscriber).await
}

/// Makes an access key for a group of subscribers. The caller must be able to read all that it reaches.
#[utoipa::path(post, operation_id = "create_subscriber_group_access_key",
    path = "/v1/subscriber-groups/{id}/access-keys", params(("id" = String, Path)),
    request_body = CreateAccessKey, responses((status = 201, body = NewAccessKeyView),
        (status = 400, body = ErrorBody), (status = 401, body = ErrorBody), (status = 403, body = ErrorBody),
        (status = 404, body = ErrorBody)))]
pub(crate) async fn create_for_group(call: Call) -> Answer {
    create(call, KeyOwnerKind::Group).await
}

async fn create(mut call: Call, kind: KeyOwnerKind) -> Answer {
    let body: CreateAccessKey = call.body()?;
    call.only(&[])?;
    let named = body.name.as_ref().is_some_and(|name| !name.is_null());
    let name = named.then(|| fields::name(&body.name)).transpose()?;
    let expires_at = fields::stated_expiry(&body.expires_at, call.now)?;
    super::confirm(&call, &body.confirmation_token).await?;
    let owner = subscribers::find(&call, kind).await?;
    let caller = call.judge_permission()?;
    super::may_hold(&call, owner.id).await?;
    let Minted { secret, sha256 } = identity::mint();
    let created_by = caller.member.email.clone();
    let new = NewAccessKey { secret_sha256: sha256, name, owner: owner.id, created_by, expires_at };
    let event = call.event("create_access_key", owner.name)?;
    let made = call.app.store.create_access_key(owner.organization, new, event).await?;
    let row = made.ok_or(ApiError::from(&catalogue::NOT_FOUND))?;
    let view = AccessKeyView::new(row, kind, call.now);
    Ok((StatusCode::CREATED, Json(NewAccessKeyView::new(view, &secret, None))).into_response())
}
