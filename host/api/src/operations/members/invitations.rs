//! Invitations of new members, and their acceptance.

use packhouse_app::mail;
use packhouse_identity::permissions::Permissions;
use packhouse_identity::{self as identity, Minted, Secret};
use packhouse_store::{Accepted, InvitationRow, MemberRow, NewPassword};
use packhouse_wire::catalogue;

use super::rights::RepositoryNames;
use super::{OneTimeCode, rights};
use crate::error::ApiError;
use crate::operations::{Actor, Origin};

/// Lifetime of an invitation: 7 days in ms.
const INVITATION_MS: i64 = 7 * 24 * 60 * 60 * 1000;

/// Invites a person. The invitation ends when the permissions of the inviting member change or that
/// member is deleted.
pub async fn invite(
    actor: &Actor,
    email: String,
    permissions: &Permissions,
) -> Result<OneTimeCode, ApiError> {
    rights::may_grant(actor, permissions).await?;
    rights::servers_understand(actor, permissions).await?;
    rights::repositories_exist(actor, permissions).await?;
    let Minted { secret, sha256 } = identity::mint();
    let expires_at = actor.now + INVITATION_MS;
    let row = InvitationRow {
        secret_sha256: sha256,
        organization: actor.organization(),
        email: email.clone(),
        permissions: serde_json::to_string(permissions).map_err(anyhow::Error::from)?,
        invited_by: actor.member().id,
        expires_at,
    };
    let event = actor.event("invite_member", email.clone());
    actor.app.store.create_invitation(row, Some(event)).await?;
    let mailed = actor.app.mail.send(mail::invitation(&email, &actor.app.api_url(), &secret)).await;
    Ok(OneTimeCode { secret, expires_at, mailed })
}

/// Account of the member who accepts an invitation.
#[derive(Debug)]
pub struct Acceptance {
    /// Displayed name; may be empty.
    pub name: String,
    pub password: Secret,
}

/// Returns the invited e-mail address. 404 `not_found` for an unknown or expired code.
pub async fn invited(origin: &Origin, code: &str) -> Result<String, ApiError> {
    Ok(open(origin, code).await?.invitation.email)
}

/// Valid invitation, with the names that its check needs again when it is accepted.
struct OpenInvitation {
    invitation: InvitationRow,
    names: RepositoryNames,
}

/// Finds the invitation of this code, if it is still valid.
async fn open(origin: &Origin, code: &str) -> Result<OpenInvitation, ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let sha256 = identity::fingerprint(code).ok_or_else(gone)?;
    let store = &origin.app.store;
    let invitation = store.find_invitation(&sha256, origin.now).await?.ok_or_else(gone)?;
    let inviter = store.find_member(invitation.organization, invitation.invited_by).await?;
    let inviter = inviter.ok_or_else(gone)?;
    let names = rights::names_for_invitation(origin, &inviter, &invitation).await?;
    if rights::may_invite(&inviter, &invitation, &names) {
        Ok(OpenInvitation { invitation, names })
    } else {
        Err(gone())
    }
}

/// Accepts an invitation, once: of several concurrent attempts, one succeeds. 404 `not_found` for
/// an unknown or expired code. 409 `user_already_exists` if the e-mail address has an account in
/// the meantime; the invitation is used up too.
pub async fn accept(origin: &Origin, code: &str, acceptance: Acceptance) -> Result<MemberRow, ApiError> {
    let gone = || ApiError::from(&catalogue::NOT_FOUND);
    let sha256 = identity::fingerprint(code).ok_or_else(gone)?;
    // Checked first, so that an unknown code does not cost the hash of a password.
    let (app, store) = (&origin.app, &origin.app.store);
    let OpenInvitation { invitation, names } = open(origin, code).await?;
    let password_hash = app.passwords.hash(acceptance.password).await?;
    let email = &invitation.email;
    let event = origin.event_of(invitation.organization, email, "invitation", "accept_invitation", email);
    let accepted = NewPassword { name: acceptance.name, password_hash };
    let may =
        |inviter: &MemberRow, invitation: &InvitationRow| rights::may_invite(inviter, invitation, &names);
    match store.accept_invitation(&sha256, origin.now, accepted, may, Some(event)).await? {
        Accepted::Member(row) => Ok(*row),
        Accepted::Taken => Err(ApiError::from(&catalogue::USER_ALREADY_EXISTS)),
        Accepted::Gone => Err(gone()),
    }
}
