//! Confirmations: proof that a member has just authenticated again. A confirmation is for one
//! member and one action. It can be used once if the specification says so, otherwise any number of
//! times while it is valid.

use packhouse_identity::{self as identity, Minted, Secret};
use packhouse_store::{ConfirmationRow, MemberRow};
use packhouse_wire::catalogue::{self, Code};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Actor, Origin, passwords};
use crate::error::ApiError;

/// Lifetime of a confirmation: 5 minutes in ms.
const CONFIRMATION_MS: i64 = 5 * 60 * 1000;

/// Actions that require a confirmation.
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
    /// Changes of the sign-in settings.
    ChangeSignIn,
    /// POST /v1/trusted-publishers.
    ManagePublishers,
    /// Creating members with a password, and password resets.
    ManageMembers,
    /// Installing and activating plugins.
    ManagePlugins,
    /// POST /v1/webhooks.
    ManageWebhooks,
    /// Creating API tokens by POST /v1/api-tokens.
    CreateApiToken,
}

impl Action {
    /// Actions that an API token may do without a fresh confirmation if its `sensitive` names them.
    /// The confirmation of the token's creation stands for them. Creating API tokens and changing
    /// the sign-in settings always need a person.
    pub const OF_API_TOKENS: [Action; 9] = [
        Action::CreateToken,
        Action::RotateToken,
        Action::FinishNpmLogin,
        Action::ManageAccessKeys,
        Action::SetUpstreamCredentials,
        Action::ManagePublishers,
        Action::ManageMembers,
        Action::ManagePlugins,
        Action::ManageWebhooks,
    ];

    /// Name in the database and in the audit log.
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
            Action::CreateApiToken => "create_api_token",
        }
    }

    /// Error code if the confirmation is missing.
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
            | Action::ManageWebhooks
            | Action::CreateApiToken => &catalogue::STEP_UP_FORBIDDEN,
        }
    }

    /// Returns whether a confirmation can be used repeatedly while it is valid. A confirmation for
    /// an action of the specification can be used once.
    fn is_reusable(self) -> bool {
        matches!(
            self,
            Action::ChangeSignIn
                | Action::ManagePublishers
                | Action::ManageMembers
                | Action::ManagePlugins
                | Action::ManageWebhooks
                | Action::CreateApiToken
        )
    }

    /// Error code if the confirmation is invalid: 401, or 403 if the action's code for a missing
    /// one is 403 (Authentication rule 7 of the specification).
    fn wrong(self) -> &'static Code {
        match self.missing().status {
            403 => &catalogue::STEP_UP_FORBIDDEN,
            _ => &catalogue::STEP_UP_REQUIRED,
        }
    }
}

/// Confirmation that a request presents.
#[derive(Debug)]
pub enum Confirmation {
    Absent,
    /// Value that cannot be a confirmation.
    Malformed,
    Token(Secret),
}

impl Confirmation {
    /// Checks the confirmation. A confirmation for a single use is used up, whatever follows.
    /// Refuses with the action's code if it is missing, used up or expired, or belongs to another
    /// member or action. An API token needs no confirmation for the actions that its `sensitive`
    /// names, and cannot confirm others.
    pub async fn judge(&self, actor: &Actor, action: Action) -> Result<(), ApiError> {
        let refusal = |code: &'static Code| ApiError::with(code, action.name());
        if let Some(token) = actor.api_token() {
            if !token.sensitive.iter().any(|named| named == action.name()) {
                return Err(refusal(action.missing()));
            }
            actor.note_confirmed(action);
            return Ok(());
        }
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

pub struct NewConfirmation {
    pub token: Secret,
    /// Expiry in ms since 1970.
    pub expires_at: i64,
}

/// Creates a confirmation for a member who has just authenticated. `action` is the name of an
/// [`Action`].
pub async fn issue_confirmation(
    origin: &Origin,
    member: &MemberRow,
    action: &str,
) -> Result<NewConfirmation, ApiError> {
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
    Ok(NewConfirmation { token: secret, expires_at })
}

/// Creates a confirmation for one action of a member who enters the password again, and a code if
/// the member has a second factor. 401 `invalid_credentials` or `second_factor_required`, or 429.
pub async fn confirm_by_password(
    actor: &Actor,
    action: Action,
    password: Secret,
    code: Option<Secret>,
) -> Result<NewConfirmation, ApiError> {
    actor.judged_own();
    let member = actor.member();
    passwords::authenticate(actor, member, password, code.as_ref()).await?;
    issue_confirmation(actor, member, action.name()).await
}
