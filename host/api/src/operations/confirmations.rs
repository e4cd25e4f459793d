//! Confirmations: who sits there has shown a moment ago who they are. One is for one member and one action: for one use where the
//! specification says so, and else for any number of uses while it lives.

use packhouse_identity::{self as identity, Minted, Secret};
use packhouse_store::{ConfirmationRow, MemberRow};
use packhouse_wire::catalogue::{self, Code};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Actor, Origin, passwords};
use crate::error::ApiError;

/// How long a confirmation lives: 5 minutes in ms.
const CONFIRMATION_MS: i64 = 5 * 60 * 1000;

/// What can be confirmed.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// POST /v1/tokens.
    CreateToken,
    /// POST /v1/tokens/{id}/rotation.
    RotateToken,
    /// POST /v1/npm-logins/{id}/finish.
    FinishNpmLogin,
    /// A subscriber's access keys.
    ManageAccessKeys,
    /// A proxy's upstream credentials.
    SetUpstreamCredentials,
    /// Changes of how members sign in.
    ChangeSignIn,
    /// POST /v1/trusted-publishers.
    ManagePublishers,
    /// Members with a password, and codes for a new one.
    ManageMembers,
    /// Installing and activating plugins.
    ManagePlugins,
    /// POST /v1/webhooks.
    ManageWebhooks,
}

impl Action {
    /// As it is kept with the confirmation, and named in the audit log.
    pub fn name(self) -> &'static str {
        match self {
            Action::CreateToken => "create_token",
            Action::RotateToken => "rotate_token",
            Action::FinishNpmLogin => "finish_npm_login",
            Action::ManageAccessKeys => "manage_access_keys",
            Action::SetUpstreamCredentials => "set_upstream_credentials",
            Action::ChangeSignIn => "change_sign_in",
            Action::ManagePublishers => "manage_publishers",
            Action::ManageMembers => "manage_members",
            Action::ManagePlugins => "manage_plugins",
            Action::ManageWebhooks => "manage_webhooks",
        }
    }

    /// The refusal where there is no confirmation.
    fn missing(self) -> &'static Code {
        match self {
            Action::CreateToken | Action::RotateToken => &catalogue::MISSING_CONFIRMATION_TOKEN,
            Action::FinishNpmLogin => &catalogue::STEP_UP_REQUIRED,
            Action::ManageAccessKeys
            | Action::SetUpstreamCredentials
            | Action::ChangeSignIn
            | Action::ManagePublishers
            | Action::ManageMembers
            | Action::ManagePlugins
            | Action::ManageWebhooks => &catalogue::STEP_UP_FORBIDDEN,
        }
    }

    /// Whether a confirmation is good for any number of calls while it lives. Those of the specification's actions are good for one.
    fn is_reusable(self) -> bool {
        matches!(
            self,
            Action::ChangeSignIn
                | Action::ManagePublishers
                | Action::ManageMembers
                | Action::ManagePlugins
                | Action::ManageWebhooks
        )
    }

    /// The refusal where there is one, and it is not good: 401, or 403 on the actions that answer so where there is none
    /// (Authentication rule 7 of the specification).
    fn wrong(self) -> &'static Code {
        match self.missing().status {
            403 => &catalogue::STEP_UP_FORBIDDEN,
            _ => &catalogue::STEP_UP_REQUIRED,
        }
    }
}

/// A confirmation as it was shown.
#[derive(Debug)]
pub enum Confirmation {
    /// None was.
    Absent,
    /// Something that cannot be one.
    Malformed,
    /// Its secret.
    Token(Secret),
}

impl Confirmation {
    /// Judges the confirmation, and spends it where it is good for one call, whatever follows. Refuses with the action's code where there
    /// is none, and where it is no confirmation of this member for this action, or expired, or spent.
    pub async fn judge(&self, actor: &Actor, action: Action) -> Result<(), ApiError> {
        let refusal = |code: &'static Code| ApiError::with(code, action.name());
        let token = match self {
            Confirmation::Absent => return Err(refusal(action.missing())),
            Confirmation::Malformed => return Err(refusal(action.wrong())),
            Confirmation::Token(token) => token,
        };
        let (member, store) = (actor.member().id, &actor.app.store);
        let is_good = match identity::fingerprint(token.reveal()) {
            Some(sha256) if action.is_reusable() => {
                store.has_confirmation(&sha256, member, action.name(), actor.now).await?
            }
            Some(sha256) => store.spend_confirmation(&sha256, member, action.name(), actor.now).await?,
            None => false,
        };
        if !is_good {
            return Err(refusal(action.wrong()));
        }
        actor.note_confirmed(action);
        Ok(())
    }
}

/// A confirmation that was just made.
pub struct Confirmed {
    /// Its secret.
    pub token: Secret,
    /// When it ends, in ms since 1970.
    pub expires_at: i64,
}

/// Makes a confirmation for a member who has just shown who they are. `action` is the name of an [`Action`].
pub async fn confirmed(origin: &Origin, member: &MemberRow, action: &str) -> Result<Confirmed, ApiError> {
    let Minted { secret, sha256 } = identity::mint();
    let expires_at = origin.now + CONFIRMATION_MS;
    let row = ConfirmationRow {
        secret_sha256: sha256,
        organization: member.organization,
        member: member.id,
        action: action.to_owned(),
        expires_at,
    };
    origin.app.store.create_confirmation(row).await?;
    Ok(Confirmed { token: secret, expires_at })
}

/// A confirmation for one action of a member who gives the password again. 401 `invalid_credentials`, or 429.
pub async fn confirm_by_password(
    actor: &Actor,
    action: Action,
    password: Secret,
) -> Result<Confirmed, ApiError> {
    actor.judged_own();
    let member = actor.member();
    passwords::check(actor, &member.email, password, std::slice::from_ref(member)).await?;
    confirmed(actor, member, action.name()).await
}
