//! Password resets: creating a code, and setting a password with it.

use packhouse_app::mail;
use packhouse_identity::{self as identity, Minted, Secret};
use packhouse_store::{PasswordReset, PasswordResetRow};
use packhouse_wire::catalogue;

use super::{OneTimeCode, rights};
use crate::error::ApiError;
use crate::operations::confirmations::{Action, Confirmation};
use crate::operations::{Actor, Origin};

/// Lifetime of a reset: an hour in ms.
const RESET_MS: i64 = 60 * 60 * 1000;

/// Creates a code with which a member can set a new password. An actor who is read-only or lacks a
/// permission of that member cannot do this for another member: 403 `role_mismatch`.
pub async fn reset(actor: &Actor, confirmation: &Confirmation, id: &str) -> Result<OneTimeCode, ApiError> {
    confirmation.judge(actor, Action::ManageMembers).await?;
    // This does not depend on the other member: a read-only member can only reset their own
    // password.
    let read_only = actor.permissions().read_only();
    actor.judge(!read_only || rights::is_own(actor, id), &catalogue::ROLE_MISMATCH)?;
    let member = rights::find_to_manage(actor, id).await?;
    let reset = PasswordReset { member, made_by: actor.member().clone() };
    actor.judge(rights::may_reset(&reset), &catalogue::ROLE_MISMATCH)?;
    let PasswordReset { member, made_by } = reset;
    let Minted { secret, sha256 } = identity::mint();
    let expires_at = actor.now + RESET_MS;
    let event = actor.event("reset_password", member.email.clone());
    let row = PasswordResetRow { secret_sha256: sha256, member: member.id, made_by: made_by.id, expires_at };
    actor.app.store.create_password_reset(row, Some(event)).await?;
    let mailed = actor.app.mail.send(mail::reset(&member.email, &actor.app.api_url(), &secret)).await;
    Ok(OneTimeCode { secret, expires_at, mailed })
}

/// Returns the e-mail address of the member whose password a code resets. 404 `not_found` for an
/// unknown or expired code.
pub async fn resetting(origin: &Origin, code: &str) -> Result<String, ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let sha256 = identity::fingerprint(code).ok_or_else(gone)?;
    let reset = origin.app.store.find_password_reset(&sha256, origin.now).await?.filter(rights::may_reset);
    Ok(reset.ok_or_else(gone)?.member.email)
}

/// Sets a new password, once, and ends the member's sessions. A code becomes invalid when the
/// permissions of its creator or of the member change, or when either is deleted; then 404
/// `not_found`, as for an unknown code.
pub async fn complete_reset(origin: &Origin, code: &str, password: Secret) -> Result<(), ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let sha256 = identity::fingerprint(code).ok_or_else(gone)?;
    let store = &origin.app.store;
    // Checked first, so that an unknown code does not cost the hash of a password.
    let reset = store.find_password_reset(&sha256, origin.now).await?.filter(rights::may_reset);
    let member = reset.ok_or_else(gone)?.member;
    let hash = origin.app.passwords.hash(password).await?;
    let email = &member.email;
    let event = origin.event_of(member.organization, email, "password_reset", "set_password", email);
    if store.complete_password_reset(&sha256, origin.now, &hash, rights::may_reset, Some(event)).await? {
        Ok(())
    } else {
        Err(gone())
    }
}
