//! `POST /v1/tokens/{id}/rotation`: a successor, and an end for the token that it takes the place of.

use axum::Json;
use axum::response::IntoResponse;
use http::StatusCode;
use packhouse_store::{NewToken, Rotation, TokenRow, now_ms};
use serde::Deserialize;
use utoipa::ToSchema;

use super::judge::service_key_expiry;
use super::revoke::{find, may_manage};
use super::view::{LEGACY, NewTokenView, Replaced, TokenView, state};
use crate::Answer;
use crate::call::Call;
use crate::error::{ApiError, ErrorBody};
use crate::fields::{self, Field, given};
use crate::sessions::Action;
use packhouse_identity::access::State;
use packhouse_identity::{self as identity, Minted};
use packhouse_wire::catalogue;

/// How a token is to be rotated.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Rotate {
    /// Of the successor, in ms since 1970; null for never, absent for the old one's.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    expires_at: Field,
    /// For how many hours the old one works on, 0 to 168; 24 where it is absent.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    overlap_hours: Field,
    /// From POST /v1/confirmations for `rotate_token`; or in the header X-Confirmation-Token.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    confirmation_token: Field,
}

/// What the body asks for.
struct Wanted {
    /// None: as the old one's.
    expires_at: Option<Option<i64>>,
    overlap_ms: i64,
}

/// Rotates a token.
#[utoipa::path(post, operation_id = "rotate_token", path = "/v1/tokens/{id}/rotation",
    params(("id" = String, Path)), request_body = Rotate,
    responses((status = 201, body = NewTokenView), (status = 400, body = ErrorBody),
        (status = 401, body = ErrorBody), (status = 403, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody)))]
pub async fn rotate(mut call: Call) -> Answer {
    let body: Rotate = call.body()?;
    call.only(&[])?;
    let expires_at = body.expires_at.as_ref().map(|value| fields::expiry(value, call.now)).transpose()?;
    let wanted = Wanted { expires_at, overlap_ms: fields::overlap(&body.overlap_hours)? * HOUR_MS };
    let action = Action::RotateToken.name();
    call.confirm(body.confirmation_token.as_ref(), action, &catalogue::MISSING_CONFIRMATION_TOKEN).await?;
    let mut old = find(&call).await?;
    loop {
        may_manage(&call, &old)?;
        // After it was read: of many at one time, each is judged on what those before it left.
        let now = now_ms();
        let (successor, ends_at) = judge_state(now, &old, &wanted)?;
        let Minted { secret, sha256 } = identity::mint();
        let successor = NewToken { secret_sha256: sha256, ..successor };
        let event = call.event(action, old.name.clone())?;
        match call.app.store.rotate_token(&old, ends_at, successor, event).await? {
            Rotation::Rotated(row) => {
                let owner = owner(&call, &row).await?;
                let view = TokenView::new(&row, owner.as_deref(), now);
                let replaced = Replaced { id: old.id.to_string(), ends_at };
                let view = NewTokenView::new(view, &secret, Some(replaced));
                return Ok((StatusCode::CREATED, Json(view)).into_response());
            }
            Rotation::Gone => return Err(ApiError::from(&catalogue::TOKEN_NOT_FOUND)),
            // Another call changed it between reading and replacing: judged anew, on what there is now.
            Rotation::Changed => {
                let row = call.app.store.find_token(old.organization, old.id).await?;
                old = row.ok_or(&catalogue::TOKEN_NOT_FOUND)?;
            }
        }
    }
}

const HOUR_MS: i64 = 60 * 60 * 1000;

/// State (409) at `now` (ms since 1970), then what depends on it (400). The successor but for its secret, and when the old one ends.
fn judge_state(now: i64, old: &TokenRow, wanted: &Wanted) -> Result<(NewToken, i64), ApiError> {
    let state = state(old, now);
    if !state.works() {
        return Err(ApiError::from(&catalogue::TOKEN_REVOKED));
    }
    if old.owner.is_none() && old.backing.as_deref().is_none_or(|backing| backing == LEGACY) {
        return Err(ApiError::from(&catalogue::LEGACY_TOKEN));
    }
    let expires_at = wanted.expires_at.unwrap_or(old.expires_at);
    if old.backing.is_some() {
        service_key_expiry(expires_at, now)?;
    }
    let ends_at = now.saturating_add(wanted.overlap_ms);
    if state == State::Rotating && old.ends_at.is_some_and(|scheduled| ends_at > scheduled) {
        return Err(ApiError::from(&catalogue::TOKEN_OVERLAP_EXCEEDS_SCHEDULED_END));
    }
    if old.expires_at.is_some_and(|expiry| ends_at > expiry) {
        return Err(ApiError::from(&catalogue::OVERLAP_EXCEEDS_EXPIRY));
    }
    let successor = NewToken {
        secret_sha256: [0; 32],
        name: old.name.clone(),
        scope: old.scope,
        format: old.format.clone(),
        owner: old.owner,
        created_by: old.created_by.clone(),
        backing: old.backing.clone(),
        backing_repository: old.backing_repository,
        repositories: old.repositories.clone(),
        expires_at,
    };
    Ok((successor, ends_at))
}

/// E-mail of the token's owner, who may be another than the caller.
async fn owner(call: &Call, row: &TokenRow) -> Result<Option<String>, ApiError> {
    let Some(id) = row.owner else { return Ok(None) };
    let member = call.app.store.find_member(row.organization, id).await?;
    Ok(member.map(|member| member.email))
}
