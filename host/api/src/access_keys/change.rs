//! `PATCH …/access-keys/{key}`: another expiry, if the one that was read still holds.

use axum::Json;
use axum::response::IntoResponse;
use packhouse_store::{AccessKeyRow, KeyOwnerKind};
use serde::Deserialize;
use utoipa::ToSchema;

use super::view::{AccessKeyView, state};
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::fields::{self, Field, given};
use crate::{Answer, subscribers};
use packhouse_identity::access::State;
use packhouse_wire::catalogue;

/// Another expiry.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangeAccessKey {
    /// ms since 1970, or null for never; must be stated.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    expires_at: Field,
    /// The expiry as it was read.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>, required)]
    expected_expires_at: Field,
    /// From POST /v1/confirmations for `manage_access_keys`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

/// Changes when a subscriber's access key expires.
#[utoipa::path(patch, operation_id = "change_subscriber_access_key",
    path = "/v1/subscribers/{id}/access-keys/{key}",
    params(("id" = String, Path), ("key" = String, Path)), request_body = ChangeAccessKey,
    responses((status = 200, body = AccessKeyView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub(crate) async fn change_for_subscriber(call: Call) -> Answer {
    change(call, KeyOwnerKind::Subscriber).await
}

/// Changes when an access key of a group of subscribers expires.
#[utoipa::path(patch, operation_id = "change_subscriber_group_access_key",
    path = "/v1/subscriber-groups/{id}/access-keys/{key}",
    params(("id" = String, Path), ("key" = String, Path)), request_body = ChangeAccessKey,
    responses((status = 200, body = AccessKeyView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub(crate) async fn change_for_group(call: Call) -> Answer {
    change(call, KeyOwnerKind::Group).await
}

async fn change(mut call: Call, kind: KeyOwnerKind) -> Answer {
    let body: ChangeAccessKey = call.body()?;
    call.only(&[])?;
    let expires_at = fields::stated_expiry(&body.expires_at, call.now)?;
    let expected = fields::read_expiry(&body.expected_expires_at)?;
    super::confirm(&call, &body.confirmation_token).await?;
    let owner = subscribers::find(&call, kind).await?;
    loop {
        let row = super::find(&call, owner.id).await?;
        call.judge_permission()?;
        // A key whose end is set, or is past, keeps it.
        if state(&row, packhouse_store::now_ms()) != State::Active {
            return Err(ApiError::from(&catalogue::ACCESS_KEY_REVOKED));
        }
        if row.expires_at != expected {
            return Err(ApiError::from(&catalogue::ACCESS_KEY_CHANGED));
        }
        let event = super::event(&call, "change_access_key", &owner, row.id)?;
        if call.app.store.set_access_key_expiry(&row, expires_at, event).await? {
            let changed = AccessKeyRow { expires_at, ..row };
            return Ok(Json(AccessKeyView::new(changed, kind, call.now)).into_response());
        }
        // Another call changed it meanwhile: judged anew, on what there is now.
    }
}
