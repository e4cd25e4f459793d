//! Rotation of a token: creates a successor and sets an end for the old token.

use packhouse_identity::{self as identity, Minted};
use packhouse_store::{NewToken, PUBLISHER_BACKING, Rotation, TokenRow};
use packhouse_wire::catalogue;

use super::{LEGACY, OwnedToken, find, rights, service_key_expiry, state};
use crate::error::ApiError;
use crate::operations::confirmations::{Action, Confirmation};
use crate::operations::credentials::RotationCodes;
use crate::operations::{Actor, NewCredential, Replaced, RotationRequest};

const CODES: RotationCodes = RotationCodes {
    ended: &catalogue::TOKEN_REVOKED,
    scheduled: &catalogue::TOKEN_OVERLAP_EXCEEDS_SCHEDULED_END,
};

/// Rotates a token; its successor reaches the same repositories and packages. Another member's
/// token is revoked instead, and no secret is returned. 409 if it has ended or has no owner; 400 if
/// the overlap exceeds its end.
pub async fn rotate(
    actor: &Actor,
    confirmation: &Confirmation,
    id: &str,
    request: RotationRequest,
) -> Result<NewCredential<OwnedToken>, ApiError> {
    confirmation.judge(actor, Action::RotateToken).await?;
    let mut old = find(actor, id).await?;
    loop {
        rights::may_rotate(actor, &old).await?;
        // The clock is read after the row, so that each of several concurrent calls is checked
        // against the result of the earlier ones.
        let Succession { successor, ends_at } = judge_state(actor.app.store.now_ms(), &old, request)?;
        if old.owner.is_some_and(|owner| owner != actor.member().id) {
            return revoke_foreign(actor, old).await;
        }
        let Minted { secret, sha256 } = identity::mint();
        let successor = NewToken { secret_sha256: sha256, ..successor };
        let event = actor.event(Action::RotateToken.name(), old.name.clone());
        match actor
            .app
            .store
            .rotate_token(&old, ends_at, request.overlap_ms == 0, successor, Some(event))
            .await?
        {
            Rotation::Rotated(row) => {
                // A member's token is the actor's own at this point; another member's was revoked
                // instead.
                let owner = row.owner.map(|_| actor.member().email.clone());
                let replaced = Some(Replaced { id: old.id.to_string(), ends_at });
                return Ok(NewCredential {
                    row: OwnedToken { row: *row, owner },
                    secret: Some(secret),
                    replaced,
                });
            }
            Rotation::Gone => return Err(ApiError::from(&catalogue::TOKEN_NOT_FOUND)),
            // Another call changed it after it was read; check again with the new state.
            Rotation::Changed => {
                let row = actor.app.store.find_token(old.organization, old.id).await?;
                old = row.ok_or(&catalogue::TOKEN_NOT_FOUND)?;
            }
        }
    }
}

/// Revokes another member's token instead of rotating it, because the holder of the new secret
/// would act as that member.
async fn revoke_foreign(actor: &Actor, old: TokenRow) -> Result<NewCredential<OwnedToken>, ApiError> {
    let owner = owner(actor, &old).await?;
    let now = actor.app.store.now_ms();
    let event = actor.event("revoke_token", old.name.clone());
    actor.app.store.revoke_token(old.organization, old.id, now, Some(event)).await?;
    let replaced = Some(Replaced { id: old.id.to_string(), ends_at: now });
    let row = TokenRow { revoked_at: Some(now), ..old };
    Ok(NewCredential { row: OwnedToken { row, owner }, secret: None, replaced })
}

/// Successor, and the end of the old token.
struct Succession {
    /// New token, still without its secret.
    successor: NewToken,
    /// End of the old token in ms since 1970.
    ends_at: i64,
}

/// Checks the state (409) at `now` (ms since 1970), then expiry and overlap (400).
fn judge_state(now: i64, old: &TokenRow, request: RotationRequest) -> Result<Succession, ApiError> {
    let state = state(old, now);
    CODES.works(state)?;
    if old.owner.is_none()
        && old.backing.as_deref().is_none_or(|backing| [LEGACY, PUBLISHER_BACKING].contains(&backing))
    {
        return Err(ApiError::from(&catalogue::LEGACY_TOKEN));
    }
    let expires_at = request.expires_at.unwrap_or(old.expires_at);
    if old.backing.is_some() {
        service_key_expiry(expires_at, now)?;
    }
    let ends_at = now.saturating_add(request.overlap_ms);
    CODES.within(state, old.ends_at, ends_at)?;
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
        packages: old.packages.clone(),
    };
    Ok(Succession { successor, ends_at })
}

/// E-mail address of the token's owner, who may be another member than the actor.
async fn owner(actor: &Actor, row: &TokenRow) -> Result<Option<String>, ApiError> {
    let Some(id) = row.owner else { return Ok(None) };
    let member = actor.app.store.find_member(row.organization, id).await?;
    Ok(member.map(|member| member.email))
}
