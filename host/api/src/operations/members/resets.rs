//! Password resets: creating a code, and setting a password with it.

use packhouse_app::mail;
use packhouse_identity::{self as identity, Minted, Secret};
use packhouse_store::{MemberRow, PasswordReset, PasswordResetRow};
use packhouse_wire::catalogue;

use super::rights::RepositoryNames;
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
    let names = rights::names_for_reset(actor, &reset).await?;
    actor.judge(rights::may_reset(&reset, &names), &catalogue::ROLE_MISMATCH)?;
    rights::may_manage(actor, &reset.member).await?;
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
    let open = open(origin, &sha256).await?.ok_or_else(gone)?;
    Ok(open.member.email)
}

/// Member of a valid code, with the names that its check needs again when it is used.
struct OpenReset {
    member: MemberRow,
    names: RepositoryNames,
}

/// Finds the reset of this code, if it is still valid.
async fn open(origin: &Origin, sha256: &[u8; 32]) -> Result<Option<OpenReset>, ApiError> {
    let found = origin.app.store.find_password_reset(sha256, origin.now).await?;
    let Some(reset) = found else { return Ok(None) };
    let names = rights::names_for_reset(origin, &reset).await?;
    // The code of a suspended member works again after the suspension.
    let is_valid = reset.member.active && rights::may_reset(&reset, &names);
    Ok(is_valid.then_some(OpenReset { member: reset.member, names }))
}

/// Sets a new password, once, and ends the member's sessions. A code becomes invalid when the
/// permissions of its creator or of the member change, or when either is deleted; then 404
/// `not_found`, as for an unknown code.
pub async fn complete_reset(origin: &Origin, code: &str, password: Secret) -> Result<(), ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let sha256 = identity::fingerprint(code).ok_or_else(gone)?;
    let store = &origin.app.store;
    // Checked first, so that an unknown code does not cost the hash of a password.
    let OpenReset { member, names } = open(origin, &sha256).await?.ok_or_else(gone)?;
    let hash = origin.app.passwords.hash(password).await?;
    let email = &member.email;
    let event = origin.event_of(member.organization, email, "password_reset", "set_password", email);
    let may = |reset: &PasswordReset| rights::may_reset(reset, &names);
    if store.complete_password_reset(&sha256, origin.now, &hash, may, Some(event)).await? {
        Ok(())
    } else {
        Err(gone())
    }
}
