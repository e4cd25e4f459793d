//! Password resets: making a code for one, and completing it.

use packhouse_app::mail;
use packhouse_identity::{self as identity, Minted, Secret};
use packhouse_store::{PasswordReset, PasswordResetRow};
use packhouse_wire::catalogue;

use super::{Code, rights};
use crate::error::ApiError;
use crate::operations::confirmations::{Action, Confirmation};
use crate::operations::{Actor, Origin};

/// How long a reset is good: an hour in ms.
const RESET_MS: i64 = 60 * 60 * 1000;

/// Makes a code with which a member can set a new password. A read-only member, or one lacking a permission that the member
/// holds, cannot reset another's: 403 `role_mismatch`.
pub async fn reset(actor: &Actor, confirmation: &Confirmation, id: &str) -> Result<Code, ApiError> {
    confirmation.judge(actor, Action::ManageMembers).await?;
    // No object decides this: a read-only member resets nobody's password but its own.
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
    Ok(Code { secret, expires_at, mailed })
}

/// Whose password a code sets: 404 `not_found` for a code that is none, or has ended.
pub async fn resetting(origin: &Origin, code: &str) -> Result<String, ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let sha256 = identity::fingerprint(code).ok_or_else(gone)?;
    let reset = origin.app.store.find_password_reset(&sha256, origin.now).await?.filter(rights::may_reset);
    Ok(reset.ok_or_else(gone)?.member.email)
}

/// Sets a new password, once, and ends the member's sessions. A code ends when the permissions of who made it change, or those of the
/// member, or when either is deleted: 404 `not_found` as for any other that is none.
pub async fn complete_reset(origin: &Origin, code: &str, password: Secret) -> Result<(), ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let sha256 = identity::fingerprint(code).ok_or_else(gone)?;
    let store = &origin.app.store;
    // Looked at first, so that a code that is none costs no password's hash.
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
