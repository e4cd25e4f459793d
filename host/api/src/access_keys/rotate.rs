//! `POST …/access-keys/{key}/rotation`: a successor, and an end for the key that it takes the place of.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{AccessKeyRow, KeyOwnerKind, KeyRotation, NewAccessKey, now_ms};
use serde::Deserialize;
use utoipa::ToSchema;

use super::view::{AccessKeyView, NewAccessKeyView, state};
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::fields::{self, Field, given};
use crate::tokens::Replaced;
use crate::{Answer, subscribers};
use packhouse_identity::access::State;
use packhouse_identity::{self as identity, Minted};
use packhouse_wire::catalogue;

/// How an access key is to be rotated.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RotateAccessKey {
    /// For how many hours the old one works on, 0 to 168 and never past its expiry; 24 where it is absent.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    overlap_hours: Field,
    /// Of the successor, in ms since 1970; null for never, absent for the old one's.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    expires_at: Field,
    /// From POST /v1/confirmations for `manage_access_keys`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

/// Rotates a subscriber's access key. The caller must be able to read all that it reaches.
#[utoipa::path(post, operation_id = "rotate_subscriber_access_key",
    path = "/v1/subscribers/{id}/access-keys/{key}/rotation",
    params(("id" = String, Path), ("key" = String, Path)), request_body = RotateAccessKey,
    responses((status = 201, body = NewAccessKeyView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub(crate) async fn rotate_for_subscriber(call: Call) -> Answer {
    rotate(call, KeyOwnerKind::Subscriber).await
}

/// Rotates an access key of a group of subscribers. The caller must be able to read all that it reaches.
#[utoipa::path(post, operation_id = "rotate_subscriber_group_access_key",
    path = "/v1/subscriber-groups/{id}/access-keys/{key}/rotation",
    params(("id" = String, Path), ("key" = String, Path)), request_body = RotateAccessKey,
    responses((status = 201, body = NewAccessKeyView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub(crate) async fn rotate_for_group(call: Call) -> Answer {
    rotate(call, KeyOwnerKind::Group).await
}

const HOUR_MS: i64 = 60 * 60 * 1000;

async fn rotate(mut call: Call, kind: KeyOwnerKind) -> Answer {
    let body: RotateAccessKey = call.body()?;
    call.only(&[])?;
    let expires_at = body.expires_at.as_ref().map(|value| fields::expiry(value, call.now)).transpose()?;
    let overlap_ms = fields::overlap(&body.overlap_hours)? * HOUR_MS;
    super::confirm(&call, &body.confirmation_token).await?;
    let owner = subscribers::find(&call, kind).await?;
    loop {
        let old = super::find(&call, owner.id).await?;
        let created_by = call.judge_permission()?.member.email.clone();
        super::may_hold(&call, owner.id).await?;
        // After it was read: of many at one time, each is judged on what those before it left.
        let now = now_ms();
        let ends_at = judge_state(&old, now, overlap_ms)?;
        let Minted { secret, sha256 } = identity::mint();
        let successor = NewAccessKey {
            secret_sha256: sha256,
            name: old.name.clone(),
            owner: owner.id,
            created_by,
            expires_at: expires_at.unwrap_or(old.expires_at),
        };
        let event = super::event(&call, "rotate_access_key", &owner, old.id)?;
        match call.app.store.rotate_access_key(&old, ends_at, successor, event).await? {
            KeyRotation::Rotated(row) => {
                let replaced = Replaced { id: old.id.to_string(), ends_at };
                let view = AccessKeyView::new(*row, kind, now);
                let view = NewAccessKeyView::new(view, &secret, Some(replaced));
                return Ok((StatusCode::CREATED, Json(view)).into_response());
            }
            // Another call changed it between reading and replacing: judged anew, on what there is now.
            KeyRotation::Changed => {}
        }
    }
}

/// State (409) at `now` (ms since 1970), then what depends on it (400). When the old key ends: never past its expiry.
fn judge_state(old: &AccessKeyRow, now: i64, overlap_ms: i64) -> Result<i64, ApiError> {
    let state = state(old, now);
    if !state.works() {
        return Err(ApiError::from(&catalogue::ACCESS_KEY_REVOKED));
    }
    let ends_at = now.saturating_add(overlap_ms).min(old.expires_at.unwrap_or(i64::MAX));
    if state == State::Rotating && old.ends_at.is_some_and(|scheduled| ends_at > scheduled) {
        return Err(ApiError::from(&catalogue::KEY_OVERLAP_EXCEEDS_SCHEDULED_END));
    }
    Ok(ends_at)
}
