//! Rotation of an access key: creates a successor and sets an end for the old key.

use packhouse_identity::{self as identity, Minted};
use packhouse_store::{AccessKeyRow, KeyRotation, NewAccessKey};
use packhouse_wire::catalogue;

use super::{KeyOwnerRef, event, find, may_hold, state};
use crate::error::ApiError;
use crate::operations::confirmations::{Action, Confirmation};
use crate::operations::credentials::RotationCodes;
use crate::operations::{Actor, NewCredential, Replaced, RotationRequest};

const CODES: RotationCodes = RotationCodes {
    ended: &catalogue::ACCESS_KEY_REVOKED,
    scheduled: &catalogue::KEY_OVERLAP_EXCEEDS_SCHEDULED_END,
};

/// Rotates a key. 409 if it has ended; 403 `repo_access_denied` if it reaches a repository that the
/// actor may not read.
pub async fn rotate(
    actor: &Actor,
    confirmation: &Confirmation,
    owner: KeyOwnerRef<'_>,
    key: &str,
    request: RotationRequest,
) -> Result<NewCredential<AccessKeyRow>, ApiError> {
    confirmation.judge(actor, Action::ManageAccessKeys).await?;
    let owner = owner.find(actor).await?;
    loop {
        let old = find(actor, owner.id, key).await?;
        may_hold(actor, owner.id).await?;
        // The clock is read after the row, so that each of several concurrent calls is checked
        // against the result of the earlier ones.
        let ends_at = judge_state(actor.app.store.now_ms(), &old, request.overlap_ms)?;
        let Minted { secret, sha256 } = identity::mint();
        let successor = NewAccessKey {
            secret_sha256: sha256,
            name: old.name.clone(),
            owner: owner.id,
            created_by: actor.name().to_owned(),
            expires_at: request.expires_at.unwrap_or(old.expires_at),
        };
        let event = event(actor, "rotate_access_key", &owner, old.id);
        match actor
            .app
            .store
            .rotate_access_key(&old, ends_at, request.overlap_ms == 0, successor, Some(event))
            .await?
        {
            KeyRotation::Rotated(row) => {
                let replaced = Some(Replaced { id: old.id.to_string(), ends_at });
                return Ok(NewCredential { row: *row, secret: Some(secret), replaced });
            }
            // Another call changed it after it was read; check again with the new state.
            KeyRotation::Changed => {}
        }
    }
}

/// Checks the state (409) at `now` (ms since 1970), then the overlap (400). Returns the end of the
/// old key, at most its expiry.
fn judge_state(now: i64, old: &AccessKeyRow, overlap_ms: i64) -> Result<i64, ApiError> {
    let state = state(old, now);
    CODES.works(state)?;
    let ends_at = now.saturating_add(overlap_ms).min(old.expires_at.unwrap_or(i64::MAX));
    CODES.within(state, old.ends_at, ends_at)?;
    Ok(ends_at)
}
