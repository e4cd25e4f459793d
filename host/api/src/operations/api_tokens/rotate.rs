//! Rotation of an API token: creates a successor and sets an end for the old token.

use packhouse_identity::{self as identity, Minted};
use packhouse_store::{ApiTokenRotation, ApiTokenRow, NewApiToken};
use packhouse_wire::catalogue;

use super::{OwnedApiToken, find, rights, state, within_lifetime};
use crate::error::ApiError;
use crate::operations::confirmations::{Action, Confirmation};
use crate::operations::credentials::RotationCodes;
use crate::operations::{Actor, NewCredential, Replaced, RotationRequest};

const CODES: RotationCodes = RotationCodes {
    ended: &catalogue::TOKEN_REVOKED,
    scheduled: &catalogue::TOKEN_OVERLAP_EXCEEDS_SCHEDULED_END,
};

/// Rotates an API token. Its successor has the same owner, scopes and sensitive actions. An API
/// token rotates only itself and keeps its end: otherwise 403 `scope_mismatch_api`. 409 if it has
/// ended; 400 if the overlap exceeds its end, or if the successor would live too long.
pub async fn rotate(
    actor: &Actor,
    confirmation: &Confirmation,
    id: &str,
    request: RotationRequest,
) -> Result<NewCredential<OwnedApiToken>, ApiError> {
    let expires_at = request.expires_at.map(|at| within_lifetime(at, false, actor.now)).transpose()?;
    rights::rotates_itself(actor, id, expires_at)?;
    confirmation.judge(actor, Action::RotateToken).await?;
    let mut old = find(actor, id).await?;
    loop {
        let owner = rights::may_rotate(actor, &old).await?;
        // The clock is read after the row, so that each of several concurrent calls is checked
        // against the result of the earlier ones.
        let now = actor.app.store.now_ms();
        let ends_at = now.saturating_add(request.overlap_ms);
        let expires_at = judge_state(now, &old, expires_at, ends_at)?;
        // An earlier rotation has set an end, which the token itself cannot postpone.
        let scheduled = old.ends_at.filter(|_| actor.api_token().is_some());
        let expires_at = scheduled.map_or(expires_at, |end| end.min(expires_at));
        let Minted { secret, sha256 } = identity::mint_api_token();
        let successor = NewApiToken {
            owner: old.owner,
            secret_sha256: sha256,
            name: old.name.clone(),
            scopes: old.scopes.clone(),
            sensitive: old.sensitive.clone(),
            created_by: old.created_by.clone(),
            expires_at,
        };
        let event = actor.event(Action::RotateToken.name(), old.name.clone());
        let at_once = request.overlap_ms == 0;
        match actor.app.store.rotate_api_token(&old, ends_at, at_once, successor, Some(event)).await? {
            ApiTokenRotation::Rotated(row) => {
                let replaced = Some(Replaced { id: old.id.to_string(), ends_at });
                let row = OwnedApiToken::new(*row, &owner);
                return Ok(NewCredential { row, secret: Some(secret), replaced });
            }
            ApiTokenRotation::Gone => return Err(ApiError::from(&catalogue::TOKEN_NOT_FOUND)),
            // Another call changed it after it was read; check again with the new state.
            ApiTokenRotation::Changed => {
                let row = actor.app.store.find_api_token(old.organization, old.id).await?;
                old = row.ok_or(&catalogue::TOKEN_NOT_FOUND)?;
            }
        }
    }
}

/// Checks the state (409) at `now` (ms since 1970), then expiry and overlap (400). Returns the
/// expiry of the successor; without a requested one it is the old token's.
fn judge_state(now: i64, old: &ApiTokenRow, requested: Option<i64>, ends_at: i64) -> Result<i64, ApiError> {
    let state = state(old, now);
    CODES.works(state)?;
    if let Some(at) = requested.filter(|at| *at != old.expires_at) {
        within_lifetime(Some(at), !old.sensitive.is_empty(), now)?;
    }
    CODES.within(state, old.ends_at, ends_at)?;
    if ends_at > old.expires_at {
        return Err(ApiError::from(&catalogue::OVERLAP_EXCEEDS_EXPIRY));
    }
    Ok(requested.unwrap_or(old.expires_at))
}
