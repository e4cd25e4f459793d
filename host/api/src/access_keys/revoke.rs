//! `DELETE …/access-keys/{key}`.

use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::KeyOwnerKind;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::call::Call;
use crate::error::ErrorBody;
use crate::fields::{Field, given};
use crate::{Answer, subscribers};

/// A confirmation, unless the header has it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RevokeAccessKey {
    /// From POST /v1/confirmations for `manage_access_keys`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

/// Revokes a subscriber's access key: it is refused from the next request on. Revoking it again changes nothing.
#[utoipa::path(delete, operation_id = "revoke_subscriber_access_key",
    path = "/v1/subscribers/{id}/access-keys/{key}",
    params(("id" = String, Path), ("key" = String, Path)), request_body = Option<RevokeAccessKey>,
    responses((status = 204), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn revoke_for_subscriber(call: Call) -> Answer {
    revoke(call, KeyOwnerKind::Subscriber).await
}

/// Revokes an access key of a group of subscribers.
#[utoipa::path(delete, operation_id = "revoke_subscriber_group_access_key",
    path = "/v1/subscriber-groups/{id}/access-keys/{key}",
    params(("id" = String, Path), ("key" = String, Path)), request_body = Option<RevokeAccessKey>,
    responses((status = 204), (status = 400, body = ErrorBody), (status = 401, body = ErrorBody),
        (status = 403, body = ErrorBody), (status = 404, body = ErrorBody)))]
pub(crate) async fn revoke_for_group(call: Call) -> Answer {
    revoke(call, KeyOwnerKind::Group).await
}

async fn revoke(mut call: Call, kind: KeyOwnerKind) -> Answer {
    let body: RevokeAccessKey = call.body()?;
    call.only(&[])?;
    super::confirm(&call, &body.confirmation_token).await?;
    let owner = subscribers::find(&call, kind).await?;
    let row = super::find(&call, owner.id).await?;
    call.judge_permission()?;
    let event = super::event(&call, "revoke_access_key", &owner, row.id)?;
    call.app.store.revoke_access_key(owner.id, row.id, call.now, event).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
