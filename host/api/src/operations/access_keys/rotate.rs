//! Rotating an access key: a successor, and an end for the key that it takes the place of.

use packhouse_identity::{self as identity, Minted};
use packhouse_store::{AccessKeyRow, KeyRotation, NewAccessKey};
use packhouse_wire::catalogue;

use super::{Owner, event, find, may_hold, state};
use crate::error::ApiError;
use crate::operations::confirmations::{Action, Confirmation};
use crate::operations::credentials::RotationCodes;
use crate::operations::{Actor, NewCredential, Replaced, RotationRequest};

const CODES: RotationCodes = RotationCodes {
    ended: &catalogue::ACCESS_KEY_REVOKED,
    scheduled: &catalogue::KEY_OVERLAP_EXCEEDS_SCHEDULED_END,
};

/// Rotates a key. 409 for one that has ended; 403 `repo_access_denied` where it reaches what the actor may not read.
pub async fn rotate(
    actor: &Actor,
    confirmation: &Confirmation,
    owner: Owner<'_>,
    key: &str,
    request: RotationRequest,
) -> Result<NewCredential<AccessKeyRow>, ApiError> {
    confirmation.judge(actor, Action::ManageAccessKeys).await?;
    let owner = owner.find(actor).await?;
    loop {
        let old = find(actor, owner.id, key).await?;
        may_hold(actor, owner.id).await?;
        // After it was read: of many at one time, each is judged on what those before it left.
        let ends_at = judge_state(actor.app.store.now_ms(), &old, request.overlap_ms)?;
        let Minted { secret, sha256 } = identity::mint();
        let successor = NewAccessKey {
            secret_sha256: sha256,
            name: old.name.clone(),
            owner: owner.id,
            created_by: actor.member().email.clone(),
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
            // Another call changed it between reading and replacing: judged anew, on what there is now.
            KeyRotation::Changed => {}
        }
    }
}

/// State (409) at `now` (ms since 1970), then what depends on it (400). When the old key ends: never past its expiry.
fn judge_state(now: i64, old: &AccessKeyRow, overlap_ms: i64) -> Result<i64, ApiError> {
    let state = state(old, now);
    CODES.works(state)?;
    let ends_at = now.saturating_add(overlap_ms).min(old.expires_at.unwrap_or(i64::MAX));
    CODES.within(state, old.ends_at, ends_at)?;
    Ok(ends_at)
}
